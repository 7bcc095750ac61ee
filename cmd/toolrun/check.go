package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"toolrun/archive"
	"toolrun/archive/anomaly"
	"toolrun/archive/joins"
	"toolrun/archive/ledger"
	"toolrun/archive/query"
	"toolrun/archive/redact"
	"toolrun/archive/trace"
)

// execWait is how long the command of check --exec may take.
const execWait = time.Minute

func (a *app) checkCmd() *cobra.Command {
	var command string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Tell what looks wrong in the ledger, each thing once; print nothing when all is well.",
		Long: "Tell what looks wrong in the ledger, each thing once; print nothing when all is well: sessions with many failures or a high\n" +
			"cost, repeated and slow calls, SEND and DESTRUCTIVE calls that nobody was asked about, unknown tools, catalogs, schemas,\n" +
			"definitions of tools and programs that changed, missing walls, secrets in output, clocks that step, calls without an end, and\n" +
			"durations, outputs and failures far outside of a tool's own history. Up to where it was told is kept, so that it fits an hourly\n" +
			"timer; with --since, --until or --session all of that range is told, and nothing is kept. The limits are in [check] of\n" +
			"config.toml.",
		Example:     "  toolrun check\n  toolrun check --since 7d --json\n  toolrun check --exec 'mail -s toolrun me@example.org'",
		Args:        cobra.NoArgs,
		Annotations: exitsAlso(statusFound, statusData),
		RunE: func(*cobra.Command, []string) error {
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			return a.check(d, command)
		},
	}
	cmd.Flags().StringVar(&command, "exec", "", "run this command of sh with what was found on its stdin, where something was")
	return cmd
}

func (a *app) check(d *archive.Dir, command string) error {
	unknown := a.meanSession(d) // unless a call of it is open that has no row yet
	ranged := a.flags.session != "" || !a.flags.since.IsZero() || !a.flags.until.IsZero()
	var place *checkPlace
	if !ranged {
		var err error
		if place, err = openCheckPlace(d.Path()); err != nil {
			return err
		}
		defer place.close()
	}
	found, damage, err := a.anomalies(d, place)
	if err != nil {
		return err
	}
	if ranged {
		found = slices.DeleteFunc(found, func(f anomaly.Anomaly) bool { return !a.inRange(f) })
	}
	for _, line := range damage {
		say(a.stderr, "%s", line)
	}
	if unknown != nil && len(found) == 0 {
		return unknown
	}
	if ranged { // without, all is well where nothing is said
		a.tellPruned(d, a.filter())
	}
	if err := a.writeAnomalies(a.stdout, found, a.screen()); err != nil {
		return err
	}
	if command != "" && len(found)+len(damage) > 0 {
		var text bytes.Buffer
		if err := a.writeAnomalies(&text, found, screen{}); err != nil {
			return err
		}
		for _, line := range damage {
			say(&text, "%s", line)
		}
		if err := a.runExec(command, &text); err != nil {
			return err // nothing is kept: it is told again
		}
	}
	if place != nil {
		if err := place.keep(); err != nil {
			return fmt.Errorf("keep up to where it was told: %w", err)
		}
	}
	if n := len(found) + len(damage); n > 0 {
		return told(fmt.Errorf("%s: %w", count(n, "anomaly"), errFound))
	}
	return nil
}

// anomalies applies the rules to all rows, and returns what place was not told of before; with a nil place, all.
func (a *app) anomalies(d *archive.Dir, place *checkPlace) (found []anomaly.Anomaly, damage []string, err error) {
	limits, rec := d.Config.Check, newRecord(d)
	learned, err := joins.Load(d.Path(), func(err error) { damage = append(damage, err.Error()) })
	if err != nil {
		return nil, nil, err
	}
	checker := anomaly.New(anomaly.Options{Limits: limits, Zone: time.Local, Now: a.now(),
		Cost: func(row *ledger.Row) (float64, bool) {
			if row.EstimatedCostUSD != nil {
				return *row.EstimatedCostUSD, true
			}
			if j := learned[row.ToolCallID.String()]; j != nil && j.EstimatedCostUSD != nil {
				return *j.EstimatedCostUSD, true
			}
			return 0, false
		},
		Changes: rec.changes,
		Partial: func(session string) bool {
			for p := range d.Unread() {
				if n, err := p.SessionRows(session); err == nil && n > 0 {
					return true
				}
			}
			return false
		},
		InputMarks: func(row *ledger.Row) int {
			b, err := rec.content(row.InputHash)
			if err != nil {
				return row.Redactions // nothing can be said of the output
			}
			return bytes.Count(b, []byte(redact.Mark))
		},
	})
	since := a.historyFrom(limits, place)
	scope := archive.Scope{From: place.from(), Since: since}
	if place.known() {
		scope.Since = time.Time{} // what is new may be of any month
	}
	var last *ledger.Row
	fits := false     // place is of this ledger
	from := int64(-1) // of the first line that counts
	for row, err := range (query.Scan{Columns: anomaly.Columns}).Placed(d, scope) {
		var bad *ledger.Damage
		switch {
		case errors.As(err, &bad):
			damage = append(damage, bad.Error())
			continue
		case err != nil:
			return nil, nil, err
		}
		last, fits = row.Row, fits || place.isAt(row.Row)
		if at, err := time.Parse(time.RFC3339, row.StartedAt); err == nil && at.Before(since) && at.Year() > 2019 && !(place.known() && place.isNew(row.Seq)) {
			continue
		}
		if from < 0 {
			from = row.Place
		}
		checker.Add(row.Row)
	}
	if place.known() && !fits && !a.flags.hot {
		a.warn("%s is of rows that the ledger does not have: all of the last %d days is told again", place.path, limits.HistoryDays)
		place.forget()
		return a.anomalies(d, place)
	}
	found = append(checker.Found(), a.openCalls(d, limits)...)
	if place != nil {
		found, damage = place.filter(found, damage, last)
		place.next.From = max(from, place.From)
	}
	return found, damage, nil
}

// historyFrom is from when on rows are looked at: history_days before what is asked for, or before what was told last; where
// neither is known, before now. A range that has no beginning has all of the past.
func (a *app) historyFrom(limits anomaly.Limits, place *checkPlace) time.Time {
	from := a.now()
	switch {
	case place == nil && a.flags.since.IsZero():
		return time.Time{}
	case place == nil:
		from = a.flags.since
	case place.known():
		if at, err := time.Parse(time.RFC3339, place.At); err == nil && at.Before(from) {
			from = at
		}
	}
	return from.AddDate(0, 0, -limits.HistoryDays)
}

func (a *app) inRange(f anomaly.Anomaly) bool {
	if a.flags.session != "" && f.SessionID != a.flags.session {
		return false
	}
	at, err := time.Parse(time.RFC3339, f.At)
	if err != nil {
		return a.flags.since.IsZero() && a.flags.until.IsZero()
	}
	return (a.flags.since.IsZero() || !at.Before(a.flags.since)) && (a.flags.until.IsZero() || at.Before(a.flags.until))
}

// openCalls are the calls of living runs that have been without an end for long.
func (a *app) openCalls(d *archive.Dir, limits anomaly.Limits) (found []anomaly.Anomaly) {
	if slices.Contains(limits.Off, anomaly.OpenCall) {
		return nil
	}
	for run := range d.Markers() {
		open := map[string]anomaly.Anomaly{}
		for line, err := range trace.Lines(d.RunPath(run)) {
			if err != nil {
				continue // verify names it
			}
			switch id := line.CallID.String(); line.Type {
			case trace.TypeToolCall:
				at, err := time.Parse(time.RFC3339, line.TS)
				if waits := a.now().Sub(at); err == nil && waits > limits.OpenFor {
					open[id] = anomaly.Anomaly{Rule: anomaly.OpenCall, At: line.TS, Seq: -1, CallID: id, SessionID: line.SessionID.String(), Tool: line.Name.String(),
						Value: waits.Seconds(), Limit: limits.OpenFor.Seconds(), Text: "it has no end for " + duration(waits)}
				}
			case trace.TypeToolResult:
				delete(open, id)
			}
		}
		for _, f := range open {
			found = append(found, f)
		}
	}
	slices.SortFunc(found, func(x, y anomaly.Anomaly) int { return bytes.Compare([]byte(x.At+x.CallID), []byte(y.At+y.CallID)) })
	return found
}

func (a *app) writeAnomalies(w io.Writer, found []anomaly.Anomaly, s screen) error {
	if a.flags.json {
		for _, f := range found {
			if err := printJSON(w, f); err != nil {
				return err
			}
		}
		return nil
	}
	if len(found) == 0 {
		return nil
	}
	t := &table{columns: []column{{title: "at", goes: 2}, {title: "rule"}, {title: "session", gives: true, goes: 1, least: leastID},
		{title: "tool", gives: true, order: 2, least: 8}, {title: "call", gives: true, least: leastID}, {title: "what", gives: true, order: 1, least: 24}}}
	for _, f := range found {
		t.add(cell{text: f.At}, cell{f.Rule, yellow}, cell{text: f.SessionID}, cell{text: f.Tool}, cell{text: f.CallID}, cell{text: f.Text})
	}
	return t.print(w, s)
}

// runExec hands what was found to a command of the user's.
func (a *app) runExec(command string, text io.Reader) error {
	ctx, cancel := context.WithTimeout(context.Background(), execWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = text, a.stderr, a.stderr
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the command of --exec failed, and what was found will be told again: %w", err)
	}
	return nil
}
