package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"toolrun/archive"
	"toolrun/archive/month"
)

func (a *app) archiveCmd() *cobra.Command {
	var (
		keep, only string
		gentle     bool
	)
	cmd := &cobra.Command{
		Use:   "archive",
		Short: "Seal the months that are over long enough: ledger, traces and store, in archives that every question still reads.",
		Long: "Seal the months that are over long enough: ledger, traces and store go into archive/<month>/, which zstd and tar read\n" +
			"and every question still answers from. What is sealed is read back and compared before anything is taken away. A month\n" +
			"is by UTC and by when a call began; the one in progress is never sealed. serve does the same at its start.",
		Example:     "  toolrun archive\n  toolrun archive --month 2026-10",
		Args:        cobra.NoArgs,
		Annotations: exitsAlso(statusUnverified, statusData, statusInterrupted),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := a.openToSeal()
			if err != nil {
				return err
			}
			defer d.Close()
			o := archive.SealOptions{Keep: d.Config.Keep, Month: only}
			switch {
			case only != "" && !month.Valid(only):
				return usagef(cmd, "--month %q: want a month, as in 2026-10", only)
			case only != "" && month.End(only).After(a.now()):
				return usagef(cmd, "--month %s: it is not over (by UTC), and a month in progress is never sealed", only)
			case keep != "":
				if o.Keep, err = archive.ParseKeep(keep); err != nil {
					return usagef(cmd, "--keep %v", err)
				}
			case only != "":
				o.Keep = 0 // who names a month means it
			}
			if gentle {
				o.Urgent = gently()
			}
			return a.seal(cmd, d, o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&keep, "keep", "", "how long after its end a month stays hot (default keep of config.toml, else 30d; 0s where --month is given)")
	f.StringVar(&only, "month", "", "only this month, as in 2026-10")
	f.BoolVar(&gentle, "gently", false, "at the lowest priority, as serve does it")
	cmd.AddCommand(a.archiveListCmd(), a.archiveRestoreCmd(), a.archivePruneCmd())
	return cmd
}

// seal seals what is due and tells of it.
func (a *app) seal(cmd *cobra.Command, d *archive.Dir, o archive.SealOptions) error {
	if _, err := d.Recover(fmt.Sprintf("pid %d", os.Getpid())); err != nil {
		a.logger().Warn("calls that dead runs left open cannot be closed", "err", err)
	}
	in := catchSignals(cmd.Context())
	defer in.stop()
	bar := progressBar{w: a.stderr, now: a.now, on: screenOf(a.stderr, a.getenv).terminal && !a.flags.json}
	o.Say = func(format string, args ...any) { bar.clear(); a.warn(format, args...) }
	o.Progress = func(step string, done, total int64) { bar.draw(func() string { return sealing(step, done, total) }) }
	made, err := d.Seal(in.ctx, o)
	bar.clear()
	if errors.Is(err, archive.ErrSealing) {
		a.warn("another process is sealing")
		return nil
	}
	for _, m := range made {
		if tellErr := a.tellSealed(m); tellErr != nil {
			return tellErr
		}
	}
	switch {
	case in.err() != nil:
		return in.err()
	case errors.Is(err, month.ErrUnsigned):
		return &unverifiedError{err}
	case err == nil && len(made) == 0 && !a.flags.json:
		return a.say("Nothing is due.")
	}
	return err
}

// sealedLine is a line of archive --json and archive list --json.
type sealedLine struct {
	Month        string  `json:"month"`
	Part         int     `json:"part"`
	Rows         int64   `json:"rows"`
	Sessions     int64   `json:"sessions"`
	Runs         int64   `json:"runs"`
	Objects      int64   `json:"objects"`
	FirstSeq     *int64  `json:"first_seq"`
	LastSeq      *int64  `json:"last_seq"`
	ContentBytes int64   `json:"content_bytes"`
	Bytes        int64   `json:"bytes"`
	SealedAt     string  `json:"sealed_at"`
	VerifiedAt   *string `json:"verified_at"`
	Pruned       bool    `json:"pruned"`
	Lost         int     `json:"lost"`
}

func lineOfManifest(m *month.Manifest) sealedLine {
	l := sealedLine{Month: m.Month, Part: m.Part, Rows: m.Rows, Sessions: m.Sessions, Runs: m.Runs, Objects: m.Objects,
		FirstSeq: m.FirstSeq, LastSeq: m.LastSeq, SealedAt: m.SealedAt, Lost: len(m.Lost)}
	for name, f := range m.Files {
		if name != month.IndexFile {
			l.ContentBytes += f.Content
		}
		l.Bytes += f.Bytes
	}
	return l
}

func (l *sealedLine) ratio() string {
	if l.Bytes == 0 || l.Pruned {
		return "-"
	}
	return fmt.Sprintf("%.1f", float64(l.ContentBytes)/float64(l.Bytes))
}

func (a *app) tellSealed(m *month.Manifest) error {
	l := lineOfManifest(m)
	if done, err := a.json(l); done || err != nil {
		return err
	}
	if l.Lost > 0 {
		a.warn("%v: %s that it names were missing or not good, and are noted as lost", m.Ref(), count(l.Lost, "object"))
	}
	return a.say("Sealed %v: %s, %s, %s, %s in %s (ratio %s).", m.Ref(), count(int(l.Rows), "row"), count(int(l.Runs), "trace"),
		count(int(l.Objects), "object"), size(l.ContentBytes), size(l.Bytes), l.ratio())
}

// sealing is what a progress bar shows of a step of sealing.
func sealing(step string, done, total int64) string {
	if total > 0 {
		return fmt.Sprintf("sealing, %s: %d%%", step, done*100/total)
	}
	return "sealing, " + step
}

// ago is a time of the record as people want it, "-" where there is none.
func ago(now time.Time, stamp string) string {
	at, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return "-"
	}
	if days := int(now.Sub(at).Hours() / 24); days > 0 {
		return count(days, "day") + " ago"
	}
	return "today"
}
