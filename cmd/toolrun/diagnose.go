package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"toolrun/archive"
	"toolrun/archive/claims"
	"toolrun/archive/ledger"
	"toolrun/archive/pairing"
	"toolrun/archive/query"
	"toolrun/archive/trace"
	"toolrun/archive/transcript"
)

func (a *app) diagnoseCmd() *cobra.Command {
	var against string
	var paths []string
	cmd := &cobra.Command{
		Use:   "diagnose RUN",
		Short: "Name the likely cause of a bad run: a wrong catalog, a drifted schema, an invented tool, a pairing bug.",
		Long: "Name the likely cause of a bad run, in the order in which one would look: are the names that were called in the catalog; are\n" +
			"the schemas those of the other run; has every result its call; does the final message say what the rows say. The other run\n" +
			"is that of --against, else the last one before that has at least half of this one's tools, by name; else one with any of\n" +
			"them, else the last. Where catalogs or schemas differ the runs are not comparable, and what changed is printed first. What\n" +
			"the agent claimed is read from its transcript, if it is found or named. Status 3 where anything is found.",
		Example:     "  toolrun diagnose 3f2a9c10 --against 7c1d2e55",
		Args:        cobra.ExactArgs(1),
		Annotations: exitsAlso(statusFound, statusData),
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			return a.diagnose(d, args[0], against, paths)
		},
	}
	cmd.Flags().StringVar(&against, "against", "", "the run to compare with (default: the last before with at least half of its tools)")
	cmd.Flags().StringArrayVar(&paths, "transcript", nil, "the agent's transcript of the run, where it is not found by itself; may be repeated")
	return cmd
}

func (a *app) diagnose(d *archive.Dir, id, against string, paths []string) error {
	rec := newRecord(d)
	run, err := a.runOf(d, rec, id)
	if err != nil {
		return err
	}
	var other *ranRun
	if against == "" {
		if against, err = runBefore(d, rec, run); err != nil {
			return err
		}
	}
	if against != "" {
		if other, err = a.runOf(d, rec, against); err != nil {
			return err
		}
	}
	seen := damageSeen{a: a}
	if err := run.read(d, &seen); err != nil {
		return err
	}
	if err := a.readStory(d, run, paths); err != nil {
		return err
	}
	if err := a.findStrays(d, run); err != nil {
		return err
	}
	c := comparison{run: run, other: other}
	if other != nil {
		c.changes = other.frozen.diff(run.frozen)
	}
	found := c.symptoms()
	if err := a.printDiagnosis(&c, found); err != nil {
		return err
	}
	if len(found) > 0 || c.drifted() {
		err = told(fmt.Errorf("%s: %w", count(len(found), "symptom"), errFound))
	}
	return errors.Join(err, seen.result())
}

// ranRun is what is known of a run.
type ranRun struct {
	id     string
	header *trace.Line
	frozen *frozen

	rows    []*ledger.Row
	strays  []string          // ids of results whose call was never issued, of its trace or of the transcript
	others  map[string]string // of these, those on the record: the run that each is of
	unread  map[string]string // ids of calls of its trace whose rows are not read: why
	unused  []string          // names of the catalog that were not called; nil where the run has not ended in order
	ended   bool
	story   bool // a transcript was read
	pairing []pairing.Item
	claims  []claims.Claim
}

// runOf finds a run by its id, or by the beginning of it.
func (a *app) runOf(d *archive.Dir, rec *record, id string) (*ranRun, error) {
	id, err := runID(d, id)
	if err != nil {
		return nil, err
	}
	run := &ranRun{id: id}
	if run.header = rec.header(run.id); run.header == nil {
		for p := range d.Unread() {
			if had, err := p.HasRun(id); err == nil && had {
				return nil, fmt.Errorf("run %s cannot be judged: its trace %s", id, whyUnread(p))
			}
		}
		return nil, fmt.Errorf("%s:1: the trace does not begin with its catalog", d.RunPath(id))
	}
	run.frozen, err = frozenOfHeader(run.header, rec)
	return run, err
}

// runBefore is the run that began last before another one, "" where none did. A record may have the runs of several projects: one
// with at least half of this one's tools comes first, by their names, and one with any of them before those with none.
func runBefore(d *archive.Dir, rec *record, run *ranRun) (string, error) {
	all, err := d.Runs()
	var most, some, last struct{ id, at string }
	for _, id := range all {
		h := rec.header(id)
		if id == run.id || h == nil || h.StartedAt > run.header.StartedAt {
			continue
		}
		shared := 0
		for _, name := range run.header.CatalogNames {
			if slices.Contains(h.CatalogNames, name) {
				shared++
			}
		}
		best := &last
		switch {
		case 2*shared >= len(run.header.CatalogNames):
			best = &most
		case shared > 0:
			best = &some
		}
		if h.StartedAt >= best.at {
			best.id, best.at = id, h.StartedAt
		}
	}
	return cmp.Or(most.id, some.id, last.id), err
}

// read reads the rest of the trace, and the rows.
func (r *ranRun) read(d *archive.Dir, seen *damageSeen) error {
	issued := map[string]bool{}
	for line, err := range d.Trace(r.id) {
		if err != nil {
			if err := seen.note(err); err != nil {
				return err
			}
			continue
		}
		switch id := line.CallID.String(); line.Type {
		case trace.TypeToolCall:
			issued[id] = true
		case trace.TypeToolResult:
			if !issued[id] {
				r.strays = append(r.strays, id)
			}
		case trace.TypeUnused:
			r.unused, r.ended = line.UnusedNames, true
		}
	}
	for row, err := range query.Rows(d, query.Filter{}) {
		if err != nil {
			if err := seen.note(err); err != nil {
				return err
			}
			continue
		}
		if row.RunID == r.id {
			r.rows = append(r.rows, row)
			delete(issued, row.ToolCallID.String())
		}
	}
	r.unread = map[string]string{}
	for id := range issued {
		if p := d.UnreadWith(id); p != nil {
			r.unread[id] = whyUnread(p)
		}
	}
	return nil
}

// readStory reads what the agent told of the run, where that can be found.
func (a *app) readStory(d *archive.Dir, r *ranRun, paths []string) error {
	quiet := damageSeen{a: a, quiet: true}
	var list []*audited
	if len(paths) > 0 {
		groups, err := readTranscripts(paths, transcript.Window{})
		if err != nil {
			return err
		}
		if list, err = a.pairAll(d, groups, "", &quiet); err != nil {
			return err
		}
	} else {
		var sessions []string
		for _, row := range r.rows {
			if id := row.SessionID.String(); !slices.Contains(sessions, id) {
				sessions = append(sessions, id)
				list = append(list, a.joinSession(d, id)...)
			}
		}
	}
	for _, one := range list {
		r.story = true
		r.claims = append(r.claims, one.claims...)
		r.pairing = append(r.pairing, one.report.Items...)
		for _, item := range one.report.Items {
			if item.Kind == pairing.IDMismatch {
				r.strays = append(r.strays, item.CallID)
			}
		}
	}
	return nil
}

// findStrays looks for the calls of results that have none here in the rows of other runs.
func (a *app) findStrays(d *archive.Dir, r *ranRun) error {
	if len(r.strays) == 0 {
		return nil
	}
	r.others = map[string]string{}
	here := map[string]bool{}
	quiet := damageSeen{a: a, quiet: true} // it was named when the rows were read
	for row, err := range (query.Scan{Columns: []string{"tool_call_id", "client_call_id", "run_id"}}).Rows(d) {
		if err != nil {
			if err := quiet.note(err); err != nil {
				return err
			}
			continue
		}
		for _, id := range []string{row.ToolCallID.String(), text(row.ClientCallID)} {
			switch {
			case !slices.Contains(r.strays, id):
			case row.RunID == r.id:
				here[id] = true
			default:
				r.others[id] = row.RunID
			}
		}
	}
	for id := range here {
		delete(r.others, id)
	}
	return nil
}
