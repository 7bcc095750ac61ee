package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"toolrun/archive/ledger"
	"toolrun/archive/query"
)

func (a *app) slowCmd() *cobra.Command {
	var over time.Duration
	var limit int
	var csv bool
	cmd := &cobra.Command{
		Use:         "slow [SESSION]",
		Short:       "List the slowest calls, slowest first.",
		Example:     "  toolrun slow --over 30s --since 7d",
		Args:        cobra.MaximumNArgs(1),
		Annotations: exitsAlso(statusFound, statusData),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case over < 0:
				return usagef(cmd, "--over %v: not a time that a call takes", over)
			case limit < 1:
				return usagef(cmd, "--limit %d: at least 1", limit)
			}
			filter, err := a.sessionFilter(cmd, args)
			if err != nil {
				return err
			}
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			seen := damageSeen{a: a}
			var rows []*ledger.Row
			var all int
			var n query.Tally
			err = a.ofSession(d, &filter, &seen, func() (int, error) {
				rows, all, err = query.Slow(d, filter, over, limit, &n, func(err error) { seen.note(err) })
				return n.Calls, err
			})
			if err != nil {
				return err
			}
			err = a.listRows(rows, csv, func() error { return a.printSlow(rows, all, n.Calls, over) })
			return errors.Join(err, seen.result())
		},
	}
	cmd.Flags().DurationVar(&over, "over", 5*time.Second, "calls that took at least this long")
	cmd.Flags().IntVar(&limit, "limit", 20, "at most so many")
	cmd.Flags().BoolVar(&csv, "csv", false, "print CSV: the first 24 keys of each row")
	return cmd
}

// printSlow prints the slowest of all calls that took so long, and that there are more.
func (a *app) printSlow(rows []*ledger.Row, all, calls int, over time.Duration) error {
	if len(rows) == 0 {
		return a.say("None of %s took %s or more.", count(calls, "call"), over.String())
	}
	t := table{columns: []column{{title: ""}, {title: "took", right: true}, {title: "tool", gives: true, order: 4, least: 8}, {title: "ending", gives: true, order: 3},
		{title: "started", goes: 2}, {title: "session", gives: true, goes: 1}, {title: "call", gives: true, order: 1, least: leastID},
		{title: "input", gives: true, order: 2, least: 16}}}
	for _, row := range rows {
		m := mark(row)
		t.add(m, cell{rowDuration(row), bold}, cell{text: row.ToolName.String()}, cell{ending(row), m.colour}, cell{text: row.StartedAt},
			cell{row.SessionID.String(), dim}, cell{text: row.ToolCallID.String()}, cell{row.InputSummary.String(), dim})
	}
	if err := t.print(a.stdout, a.screen()); err != nil || all == len(rows) {
		return err
	}
	return a.say("The %d slowest of %s that took %s or more; --limit shows more.", len(rows), count(all, "call"), over.String())
}
