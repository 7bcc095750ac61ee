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

	"toolrun/archive/audit"
)

func (a *app) verifyCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check the whole data directory: every row, every hash, every pair of trace lines.",
		Long: "Check the whole data directory: every row, every hash, every pair of trace lines. Each finding is named with its\n" +
			"file, line, call and hash; a hash that does not open or does not match is status 4, everything else status 3.",
		Example:     "  toolrun verify",
		Args:        cobra.NoArgs,
		Annotations: exitsAlso(statusFound, statusUnverified, statusData, statusInterrupted),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			in := catchSignals(cmd.Context())
			defer in.stop()
			bar := progressBar{w: a.stderr, now: a.now, on: screenOf(a.stderr, a.getenv).terminal && !a.flags.json}
			report, err := audit.Verify(in.ctx, d, bar.show)
			bar.clear()
			if errors.Is(err, context.Canceled) || in.err() != nil {
				return errors.Join(in.err())
			}
			if err != nil {
				return err
			}
			return a.printReport(report, d.Path())
		},
	}
}

// summary is the last line of verify --json.
type summary struct {
	Type         string `json:"type"`
	Rows         int    `json:"rows"`
	Runs         int    `json:"runs"`
	Objects      int    `json:"objects"`
	ObjectBytes  int64  `json:"object_bytes"`
	Unreferenced int    `json:"unreferenced"`
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
		err = errors.Join(err, printJSON(a.stdout, summary{"summary", r.Rows, r.Runs, r.Objects, r.ObjectBytes, r.Unreferenced, len(r.Findings)}))
	} else {
		err = errors.Join(err, a.say("%s: %s, %s, %s (%s, %d referenced by nothing): %s", dir, count(r.Rows, "row"), count(r.Runs, "run"),
			count(r.Objects, "object"), size(r.ObjectBytes), r.Unreferenced, verdict(len(r.Findings))))
	}
	if err != nil {
		return err
	}
	return reportStatus(r)
}

func verdict(findings int) string {
	if findings == 0 {
		return "all is well"
	}
	return count(findings, "finding")
}

// reportStatus is the worst of what was found: an object that is not what its name says is worse than a broken pair.
func reportStatus(r *audit.Report) error {
	if len(r.Findings) == 0 {
		return nil
	}
	why := errFound
	for _, f := range r.Findings {
		switch f.Kind {
		case audit.ObjectMissing, audit.ObjectEmpty, audit.ObjectCorrupt:
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
	if now := p.now(); p.on && now.Sub(p.drawn) >= 100*time.Millisecond {
		p.drawn = now
		fmt.Fprintf(p.w, "\r\x1b[K%s %d of %d", escape(step), done, total)
	}
}

func (p *progressBar) clear() {
	if !p.drawn.IsZero() {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
