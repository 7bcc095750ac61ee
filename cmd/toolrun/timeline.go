package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"toolrun/archive/ledger"
	"toolrun/archive/query"
)

func (a *app) timelineCmd() *cobra.Command {
	var csv bool
	cmd := &cobra.Command{
		Use:   "timeline [SESSION]",
		Short: "Show the calls of a session on one time axis; without a SESSION, of the one that called last.",
		Long: "Show the calls of a session on one time axis, in the order in which they ended; bars that overlap ran at the same time.\n" +
			"Without a SESSION it is the one that called last.",
		Example:     "  toolrun timeline",
		Args:        cobra.MaximumNArgs(1),
		Annotations: exitsAlso(statusFound, statusData),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := a.sessionFilter(cmd, args)
			if err != nil {
				return err
			}
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			seen := damageSeen{a: a}
			if filter.Session == "" {
				last, err := query.LastSession(d, filter)
				if err != nil {
					return err
				}
				filter.Session = last
			}
			rows, err := collect(query.Joined(d, query.Rows(d, filter)), &seen)
			if err != nil {
				return err
			}
			switch {
			case a.flags.json:
				err = a.printRows(rows)
			case csv:
				err = a.printRowsCSV(rows)
			case len(rows) == 0 && filter.Session != "":
				err = fmt.Errorf("no calls of session %q in %s", filter.Session, d.Path())
			case len(rows) == 0:
				err = a.say("No calls.")
			default:
				err = a.printTimeline(rows)
			}
			return errors.Join(err, seen.result())
		},
	}
	cmd.Flags().BoolVar(&csv, "csv", false, "print CSV: the first 24 keys of each row")
	return cmd
}

// axisColumns is how wide the axis is where the terminal does not say, and at least.
const axisColumns, leastAxis = 60, 20

// printTimeline prints a head with the span and one line a call: when it started, its bar, what it was.
func (a *app) printTimeline(rows []*ledger.Row) error {
	starts := make([]time.Time, len(rows))
	var from, to time.Time
	for i, row := range rows {
		at, err := time.Parse(time.RFC3339, row.StartedAt)
		if err != nil {
			return fmt.Errorf("call %s: started_at: %w", row.ToolCallID, err)
		}
		starts[i] = at
		if i == 0 || at.Before(from) {
			from = at
		}
		if end := at.Add(time.Duration(row.DurationMS) * time.Millisecond); end.After(to) {
			to = end
		}
	}
	s := a.screen()
	columns := axisColumns
	if s.columns > 0 {
		columns = max(s.columns-60, leastAxis)
	}
	span := to.Sub(from)
	if err := a.say("session %s · %s to %s · %s", rows[0].SessionID.String(), ledger.FormatTime(from), ledger.FormatTime(to), duration(span)); err != nil {
		return err
	}
	t := table{columns: []column{{title: ""}, {title: "at", right: true}, {title: "took", right: true}, {title: axisTitle(columns, span)}, {title: "tool"}, {title: "ending"}, {title: "call", gives: true}}}
	for i, row := range rows {
		m := mark(row)
		t.add(m, cell{text: "+" + duration(starts[i].Sub(from))}, cell{text: rowDuration(row)}, cell{bar(starts[i].Sub(from), time.Duration(row.DurationMS)*time.Millisecond, span, columns), m.colour},
			cell{text: row.ToolName.String()}, cell{ending(row), m.colour}, cell{row.ToolCallID.String(), dim})
	}
	return t.print(a.stdout, s)
}

// bar is a call on an axis of so many columns: at least one column wide.
func bar(at, took, span time.Duration, columns int) string {
	if span <= 0 {
		return "█"
	}
	begin := min(int(int64(at)*int64(columns)/int64(span)), columns-1)
	end := min(max(int((int64(at+took)*int64(columns)+int64(span)-1)/int64(span)), begin+1), columns)
	return strings.Repeat("·", begin) + strings.Repeat("█", end-begin) + strings.Repeat("·", columns-end)
}

// axisTitle names both ends of the axis.
func axisTitle(columns int, span time.Duration) string {
	right := duration(span)
	return "0" + strings.Repeat(" ", max(columns-1-len(right), 1)) + right
}
