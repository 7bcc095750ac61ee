package main

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"toolrun/archive/ledger"
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
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			seen := damageSeen{a: a}
			rows, err := a.sessionRows(cmd, d, args, &seen)
			if err != nil {
				return err
			}
			err = a.listRows(rows, csv, func() error {
				if len(rows) == 0 {
					return a.say("No calls.")
				}
				return a.printTimeline(rows)
			})
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
	span := to.Sub(from)
	if err := a.head("session "+rows[0].SessionID.String(), ledger.FormatTime(from)+" to "+ledger.FormatTime(to), duration(span)); err != nil {
		return err
	}
	const axis = 3
	t := table{columns: []column{{title: ""}, {title: "at", right: true}, {title: "took", right: true}, {title: ""}, {title: "tool", gives: true, order: 2, least: 8},
		{title: "ending", gives: true, order: 1}, {title: "call", gives: true, least: leastID}}}
	for i, row := range rows {
		m := mark(row)
		t.add(m, cell{text: "+" + duration(starts[i].Sub(from))}, cell{text: rowDuration(row)}, cell{colour: m.colour},
			cell{text: row.ToolName.String()}, cell{ending(row), m.colour}, cell{row.ToolCallID.String(), dim})
	}
	s := a.screen()
	columns := axisColumns
	if s.columns > 0 { // what the others leave
		columns = s.columns - 2*(len(t.columns)-1)
		for i, w := range t.widths() {
			if t.columns[i].gives {
				w = min(w, 16)
			}
			columns -= w
		}
		columns = max(columns, leastAxis)
	}
	t.columns[axis].title = axisTitle(columns, span)
	for i, row := range rows {
		t.rows[i][axis].text = bar(starts[i].Sub(from), time.Duration(row.DurationMS)*time.Millisecond, span, columns)
	}
	return t.print(a.stdout, s)
}

// bar is a call on an axis of so many columns: at least one column wide.
func bar(at, took, span time.Duration, columns int) string {
	if span <= 0 {
		return "█"
	}
	column := func(d time.Duration) float64 { return float64(columns) * float64(d) / float64(span) }
	begin := min(int(column(at)), columns-1)
	end := min(max(int(math.Ceil(column(at+took))), begin+1), columns)
	return strings.Repeat("·", begin) + strings.Repeat("█", end-begin) + strings.Repeat("·", columns-end)
}

// axisTitle names both ends of the axis.
func axisTitle(columns int, span time.Duration) string {
	right := duration(span)
	return "0" + strings.Repeat(" ", max(columns-1-len(right), 1)) + right
}
