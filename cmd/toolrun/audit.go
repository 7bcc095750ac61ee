package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"toolrun/archive"
	"toolrun/archive/claims"
	"toolrun/archive/ledger"
	"toolrun/archive/month"
	"toolrun/archive/pairing"
	"toolrun/archive/query"
	"toolrun/archive/transcript"
)

func (a *app) auditCmd() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "audit [TRANSCRIPT...]",
		Short: "Hold an agent's transcript against the ledger: what it tells that did not happen, and what it does not tell.",
		Long: "Hold an agent's transcript against the ledger. Told are calls without a row, results that are not what toolrun answered,\n" +
			"tools that do not exist, work done outside of toolrun, and rows that the transcript does not have; and beside each claim of\n" +
			"the final message the rows that would have to say so. Status 3 where something is found.\n" +
			"Without a TRANSCRIPT, that of the session that called last, or of --session, is looked for where its agent keeps it. With\n" +
			"both, the file is held against that session, as a file needs that tells neither sessions, ids nor times.\n" +
			"Known forms: Claude Code, Codex, Gemini CLI, OpenCode, Qwen Code, and messages of the OpenAI and the Anthropic API. Model,\n" +
			"tokens, cost and turn go into joins.jsonl, for rows that have none.",
		Example:     "  toolrun audit\n  toolrun audit messages.json --session loop-1",
		Annotations: exitsAlso(statusFound, statusData),
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			seen := damageSeen{a: a}
			list, err := a.audits(d, args, &seen)
			if err != nil {
				return err
			}
			findings, bad := 0, map[string]error{}
			var untold error
			for _, one := range list {
				if err := one.noteDamage(&seen); err != nil {
					return err
				}
				joined, err := a.joinRows(d, one)
				if err != nil {
					a.warn("what the transcript tells of rows cannot be kept: %v", err)
				}
				if err := a.printAudit(one, all, joined); err != nil {
					return err
				}
				findings += one.findings()
				untold = errors.Join(untold, one.unmatched(d))
				maps.Copy(bad, one.objects.bad)
			}
			for _, file := range slices.Sorted(maps.Keys(bad)) {
				say(a.stderr, "%s: %v", file, bad[file])
				untold = errors.Join(untold, told(errFound))
			}
			if findings > 0 {
				err = told(fmt.Errorf("%s: %w", count(findings, "finding"), errFound))
			}
			return errors.Join(untold, err, seen.result())
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list every call, not only what was found")
	return cmd
}

// audited is one session: its transcripts, held against the record.
type audited struct {
	list    []*transcript.Transcript
	report  *pairing.Report
	claims  []claims.Claim
	objects *objectsRead
}

// objectsRead gives stored objects, and keeps which of them are not what the record says. Those of a month that was pruned
// were given up, and are none of these.
type objectsRead struct {
	rec *record
	bad map[string]error // by file
}

func (o *objectsRead) content(hash string) ([]byte, error) {
	b, err := o.rec.content(hash)
	if err != nil && !errors.Is(err, month.ErrPruned) {
		o.bad[o.rec.d.Store.Path(hash)] = err
	}
	return b, err
}

// findings is the number of what an honest session does not have.
func (x *audited) findings() int {
	n := x.report.Findings
	for _, c := range x.claims {
		if c.Mark.Finding() {
			n++
		}
	}
	return n
}

// unmatched is the error of a transcript of which no session of the record is known to be its own: it is neither true nor false.
func (x *audited) unmatched(d *archive.Dir) error {
	if !x.report.Unmatched() {
		return nil
	}
	why := "matches no session of " + d.Path()
	if n := len(x.report.Alike); n > 0 {
		why = fmt.Sprintf("matches %d sessions alike (%s)", n, list(x.report.Alike))
	}
	return &foundError{fmt.Errorf("%s %s: name its session with --session; 'toolrun sessions' lists them", x.list[0].Path, why)}
}

// noteDamage names what of the transcripts could not be read.
func (x *audited) noteDamage(seen *damageSeen) error {
	for _, t := range x.list {
		for _, damage := range t.Damaged {
			if err := seen.note(damage); err != nil {
				return err
			}
		}
	}
	return nil
}

// audits reads the transcripts that are named, or those of the session, and pairs them.
func (a *app) audits(d *archive.Dir, paths []string, seen *damageSeen) ([]*audited, error) {
	if err := a.meanSession(d); err != nil {
		return nil, &foundError{err}
	}
	session := a.flags.session
	if len(paths) > 0 {
		groups, err := readTranscripts(paths, transcript.Window{From: a.flags.since, To: a.flags.until})
		if err != nil {
			return nil, err
		}
		list, err := a.pairAll(d, groups, session, seen)
		return relevant(list), err
	}
	if session == "" {
		last, err := query.LastSession(d, a.filter())
		if err != nil {
			return nil, err
		}
		if session = last; session == "" {
			return nil, fmt.Errorf("no calls in %s: name a transcript", d.Path())
		}
	}
	return a.auditSession(d, session, seen)
}

// relevant leaves, of the sessions of one file, those that called toolrun; where none did, the last one.
func relevant(list []*audited) (kept []*audited) {
	last := map[string]*audited{}
	called := map[string]bool{}
	for _, one := range list {
		path := one.list[0].Path
		last[path] = one
		called[path] = called[path] || one.paired() > 0
	}
	for _, one := range list {
		if path := one.list[0].Path; one.paired() > 0 || !called[path] && last[path] == one {
			kept = append(kept, one)
		}
	}
	return kept
}

// openAfter is how long after a session's last call its transcript may begin: a row may be older than what tells of it only by
// what clocks are apart.
const openAfter = time.Minute

// auditSession finds the transcript of a session by its agent's own place.
func (a *app) auditSession(d *archive.Dir, session string, seen *damageSeen) ([]*audited, error) {
	rows, err := collect(query.Rows(d, query.Filter{Session: session}), seen)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, &foundError{fmt.Errorf("no calls of session %q in %s", session, d.Path())}
	}
	quiet := damageSeen{a: a, quiet: true} // named already
	first, last, client := time.Time{}, time.Time{}, ""
	for _, row := range rows {
		if at, err := time.Parse(time.RFC3339, row.StartedAt); err == nil {
			if first.IsZero() || at.Before(first) {
				first = at
			}
			if at.After(last) {
				last = at
			}
		}
		if row.Client != nil {
			client = row.Client.String()
		}
	}
	window := transcript.Window{From: first.Add(-openAfter), To: last.Add(openAfter)}
	var all []*audited
	for _, path := range (transcript.Places{Getenv: a.getenv}).Find(transcript.FormatOf(client), session, first) {
		groups, err := readTranscripts([]string{path}, window)
		if errors.Is(err, transcript.ErrFormat) {
			continue // not written by the agent, or by another version of it
		}
		if err != nil {
			return nil, err
		}
		list, err := a.pairAll(d, groups, session, &quiet)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	best := ofSession(all, session)
	if len(best) == 0 {
		return nil, &foundError{fmt.Errorf("no transcript of session %q (client %q) where its agent keeps them: name the file", session, client)}
	}
	if len(best) > 1 { // of one session all files count together: what one lacks another has
		var one []*transcript.Transcript
		for _, b := range best {
			one = append(one, b.list...)
		}
		return a.pairAll(d, [][]*transcript.Transcript{one}, session, &quiet)
	}
	return best, nil
}

// ofSession are those that are named for the session, and those of which a call agrees with a row of it; where there are none,
// those of which a call may be one: what it tells of it is not so.
func ofSession(all []*audited, session string) (best []*audited) {
	for _, agrees := range []bool{true, false} {
		for _, one := range all {
			if one.list[0].SessionID == session || agrees && one.agreeing() > 0 || !agrees && one.paired() > 0 {
				best = append(best, one)
			}
		}
		if len(best) > 0 {
			break
		}
	}
	return best
}

// agreeing is how many calls agree with their rows.
func (x *audited) agreeing() (n int) {
	for _, item := range x.report.Items {
		if item.Kind == pairing.Paired {
			n++
		}
	}
	return n
}

// paired is how many rows belong to calls, whether they agree or not.
func (x *audited) paired() (n int) {
	for _, item := range x.report.Items {
		if item.Call != nil {
			n += len(item.Rows)
		}
	}
	return n
}

// readTranscripts reads files, and puts those of one session together.
func readTranscripts(paths []string, w transcript.Window) (groups [][]*transcript.Transcript, err error) {
	byID := map[string]int{}
	for _, path := range paths {
		list, err := transcript.Read(path, w)
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			key := t.Format + " " + t.SessionID
			if i, ok := byID[key]; ok && t.SessionID != "" {
				groups[i] = append(groups[i], t)
				continue
			}
			byID[key] = len(groups)
			groups = append(groups, []*transcript.Transcript{t})
		}
	}
	return groups, nil
}

// pairAll holds each session against the record.
func (a *app) pairAll(d *archive.Dir, groups [][]*transcript.Transcript, session string, seen *damageSeen) (list []*audited, err error) {
	rec := newRecord(d)
	rows, err := candidates(d, groups, session, seen)
	if err != nil {
		return nil, err
	}
	var every []*ledger.Row
	for _, group := range groups {
		one := &audited{list: group, objects: &objectsRead{rec, map[string]error{}}}
		record := pairing.Record{Rows: rows, Session: session, Catalog: rec.catalog, Content: one.objects.content, Unread: unread(d), Drawn: newDrawer(rec).draw}
		one.report = pairing.Pair(group, record)
		if session != "" && one.report.Findings > 0 { // of what the session does not have, another may have the row
			if every == nil {
				if every, err = a.rowsBeside(d, groups, rows); err != nil {
					return nil, err
				}
			}
			record.Rows = every
			one.report = pairing.Pair(group, record)
		}
		if !one.report.Unmatched() { // no row could bear out what it claims
			one.claims = claims.Judge(final(group), one.report.Rows, rec.names(one.report.Rows), one.objects.content)
			one.spareClaims()
		}
		list = append(list, one)
	}
	return list, nil
}

// unread tells pairing why no row of a call is read. A client's id is the model's: it counts where the part has rows of that
// time, and the call is of one of the sessions.
func unread(d *archive.Dir) func(id string, c *transcript.Call, sessions []string) string {
	return func(id string, c *transcript.Call, sessions []string) string {
		for p := range d.Unread() {
			had, err := p.HasCall(id)
			if err != nil || !had || !c.At.IsZero() && (ledger.FormatTime(c.At.Add(openAfter)) < p.FirstStart || ledger.FormatTime(c.At.Add(-openAfter)) > p.LastStart) {
				continue
			}
			if len(sessions) == 0 || slices.ContainsFunc(sessions, func(s string) bool { had, err := p.HasCallOf(id, s); return err == nil && had }) {
				return "it was on the record, and " + whyUnread(p)
			}
		}
		return ""
	}
}

// spareClaims takes back that a claim is without evidence where a row that could bear it out is not read.
func (x *audited) spareClaims() {
	i := slices.IndexFunc(x.report.Items, func(i pairing.Item) bool { return i.Kind == pairing.Unread })
	if i < 0 {
		return
	}
	for j := range x.claims {
		if c := &x.claims[j]; c.Mark == claims.WithoutEvidence {
			c.Mark, c.Why = claims.NotJudged, "a row that could bear it out is not read: "+x.report.Items[i].Why
		}
	}
}

// final is what the agent said last to its user.
func final(group []*transcript.Transcript) (text string) {
	for _, t := range group {
		if !t.Sub {
			text = t.Final
		}
	}
	return text
}
