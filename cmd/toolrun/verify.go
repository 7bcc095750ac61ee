package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"toolrun/archive"
	"toolrun/archive/audit"
	"toolrun/archive/evidence"
	"toolrun/archive/index"
)

func (a *app) verifyCmd() *cobra.Command {
	var (
		key         string
		checkpoints []string
		repair      bool
	)
	cmd := &cobra.Command{
		Use:   "verify [RECEIPT]",
		Short: "Check the whole data directory against what was signed, or one receipt.",
		Long: "Check the whole data directory: every row, every hash, every pair of trace lines, and all of it against every\n" +
			"checkpoint that was signed. Each finding is named with its file, line, call and hash. Any is status 4; 3 if only\n" +
			"something derived is wrong, which --repair-derived makes anew. index.db, which nothing signs, is removed: the next\n" +
			"question makes it anew. With a RECEIPT, or - for stdin, check that one row: this needs the key and no data directory.",
		Example:     "  toolrun verify\n  toolrun verify --checkpoint kept-elsewhere.txt\n  toolrun verify receipt.txt --key checkpoint.pub",
		Args:        cobra.MaximumNArgs(1),
		Annotations: exitsAlso(statusFound, statusUnverified, statusData, statusInterrupted),
		RunE: func(cmd *cobra.Command, args []string) error {
			var options audit.Options
			var err error
			if key != "" {
				if options.Key, err = parseKey(key); err != nil {
					return usagef(cmd, "%v", err)
				}
			}
			if len(args) == 1 {
				if len(checkpoints) > 0 || repair {
					return usagef(cmd, "--checkpoint and --repair-derived are for the data directory, not for a receipt")
				}
				return a.verifyReceipt(cmd, args[0], options.Key)
			}
			if options.Kept, err = a.keptNotes(checkpoints); err != nil {
				return usagef(cmd, "%v", err)
			}
			return a.verifyData(cmd.Context(), options, repair)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&key, "key", "", "the public key that must have signed, or a file with it")
	f.StringArrayVar(&checkpoints, "checkpoint", nil, "a file with a checkpoint that was kept elsewhere (- for stdin)")
	f.BoolVar(&repair, "repair-derived", false, "first make anew what is derived: hashes, ids, ledger.cuts, indexes and seals of months")
	return cmd
}

// keptNotes reads the files of --checkpoint: signed notes, or lines as a run prints one at its end.
func (a *app) keptNotes(files []string) (kept []audit.Kept, err error) {
	for _, name := range files {
		text, err := a.readAll(name, maxNotesBytes)
		if err != nil {
			return nil, fmt.Errorf("--checkpoint: %w", err)
		}
		found := evidence.FindNotes(text)
		if len(found) == 0 {
			return nil, fmt.Errorf("--checkpoint %q: there is no checkpoint in it", name)
		}
		for _, n := range found {
			kept = append(kept, audit.Kept{Note: n, File: name})
		}
	}
	return kept, nil
}

func (a *app) verifyData(ctx context.Context, options audit.Options, repair bool) error {
	if repair {
		if err := a.becomeOwner(); err != nil {
			return err
		}
	}
	d, err := a.openForReading()
	if err != nil {
		return err
	}
	if repair {
		if err := archive.RepairDerived(d.Path(), archive.Options{Logger: a.logger(), Now: a.now}); err != nil {
			a.warn("not everything derived was made anew: %v", err)
		}
	}
	// Nothing signs it, and the next question makes it anew.
	if err := index.Forget(d.Path()); err != nil {
		a.warn("index.db was not removed, and is not verified: %v", err)
	}
	in := catchSignals(ctx)
	defer in.stop()
	bar := progressBar{w: a.stderr, now: a.now, on: screenOf(a.stderr, a.getenv).terminal && !a.flags.json}
	options.Progress = bar.show
	report, err := audit.Verify(in.ctx, d, options)
	bar.clear()
	if errors.Is(err, context.Canceled) || in.err() != nil {
		return errors.Join(in.err())
	}
	if err != nil {
		return err
	}
	d.NoteVerified(report.Good)
	return a.printReport(report, d.Path())
}

// summary is the last line of verify --json.
type summary struct {
	Type         string `json:"type"`
	Rows         int    `json:"rows"`
	Runs         int    `json:"runs"`
	Objects      int    `json:"objects"`
	ObjectBytes  int64  `json:"object_bytes"`
	Unreferenced int    `json:"unreferenced"`
	Months       int    `json:"months"`
	Pruned       int    `json:"pruned"`
	Checkpoints  int    `json:"checkpoints"`
	Covered      int64  `json:"covered"`
	Uncovered    int    `json:"uncovered"`
	Findings     int    `json:"findings"`
}

func (a *app) printReport(r *audit.Report, dir string) error {
	var err error
	for _, f := range r.Findings {
		if f.Kind == audit.DamagedLine && !a.screen().terminal { // there it stands next to the finding
			say(a.stderr, "%s:%d: %s", filepath.Join(dir, f.File), f.Line, f.Text)
		}
		if a.flags.json {
			err = errors.Join(err, printJSON(a.stdout, struct {
				Type string `json:"type"`
				audit.Finding
			}{"finding", f}))
		} else {
			err = errors.Join(err, a.say("%s", findingText(f)))
		}
	}
	if a.flags.json {
		err = errors.Join(err, printJSON(a.stdout, summary{"summary", r.Rows, r.Runs, r.Objects, r.ObjectBytes, r.Unreferenced,
			r.Months, r.Pruned, r.Checkpoints, r.Covered, r.Uncovered, len(r.Findings)}))
	} else {
		err = errors.Join(err, a.say("%s: %s, %s, %s (%s, %d referenced by nothing), %s%s%s: %s", dir, count(r.Rows, "row"), count(r.Runs, "run"),
			count(r.Objects, "object"), size(r.ObjectBytes), r.Unreferenced, sealedText(r), count(r.Checkpoints, "checkpoint"), uncovered(r), verdict(len(r.Findings))))
	}
	if err != nil {
		return err
	}
	return reportStatus(r)
}

// sealedText says how much of it lies in sealed months.
func sealedText(r *audit.Report) string {
	if r.Months == 0 {
		return ""
	}
	text := count(r.Months, "sealed month")
	if r.Pruned > 0 {
		text += fmt.Sprintf(" (%s pruned)", count(r.Pruned, "row"))
	}
	return text + ", "
}

// uncovered says which rows rest on no signature yet.
func uncovered(r *audit.Report) string {
	if r.Uncovered == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s not covered yet, of runs that have not ended)", count(r.Uncovered, "row"))
}

func verdict(findings int) string {
	if findings == 0 {
		return "all is well"
	}
	return count(findings, "finding")
}

// reportStatus is 4 for anything that was found, and 3 where that is only something derived.
func reportStatus(r *audit.Report) error {
	if len(r.Findings) == 0 {
		return nil
	}
	why := errFound
	for _, f := range r.Findings {
		if !f.Derived() {
			why = errUnverified
		}
	}
	return told(fmt.Errorf("%s: %w", count(len(r.Findings), "finding"), why))
}

// findingText is one finding on one line.
func findingText(f audit.Finding) string {
	var parts []string
	if f.File != "" {
		place := f.File
		if f.Line > 0 {
			place = fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		parts = append(parts, place+":")
	}
	parts = append(parts, f.Kind)
	if f.Hash != "" {
		parts = append(parts, f.Hash)
	}
	if f.Seq != nil {
		parts = append(parts, fmt.Sprintf("seq %d", *f.Seq))
	}
	if len(f.CallIDs) > 0 {
		parts = append(parts, "call "+strings.Join(f.CallIDs, ", "))
	}
	return strings.Join(parts, " ") + ": " + f.Text
}

// progressBar shows on a terminal how far a long command is.
type progressBar struct {
	w     io.Writer
	on    bool
	now   func() time.Time
	drawn time.Time // zero: not yet
}

func (p *progressBar) show(step string, done, total int) {
	p.draw(func() string { return fmt.Sprintf("%s %d of %d", step, done, total) })
}

// draw replaces the line, now and then.
func (p *progressBar) draw(text func() string) {
	if now := p.now(); p.on && now.Sub(p.drawn) >= 100*time.Millisecond {
		p.drawn = now
		fmt.Fprintf(p.w, "\r\x1b[K%s", escape(text()))
	}
}

func (p *progressBar) clear() {
	if !p.drawn.IsZero() {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
