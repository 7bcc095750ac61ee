package main

import (
	"errors"

	"github.com/spf13/cobra"

	"toolrun/archive/ledger"
	"toolrun/archive/query"
)

func (a *app) errorsCmd() *cobra.Command {
	var refused, csv bool
	cmd := &cobra.Command{
		Use:   "errors [SESSION]",
		Short: "List the calls that failed, with error type and message, and how many of all did.",
		Long: "List the calls that failed, with error type and message, and how many of all did. An attempt that was followed by\n" +
			"another counts. Refused calls, of which nothing was started, are counted, and listed with --refused.",
		Example:     "  toolrun errors --since 1d",
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
			var n query.Tally
			var failed []*ledger.Row
			err = a.ofSession(d, &filter, &seen, func() (int, error) {
				scan := query.Scan{Filter: filter, Keep: query.Failed(refused), Tally: &n}
				if !a.flags.json && !csv {
					scan.Columns = []string{"tool_call_id", "session_id", "tool_name", "status", "started_at", "error_type", "error_message"}
				}
				failed, err = collect(query.Joined(d, scan.Rows(d)), &seen)
				return n.Calls, err
			})
			if err != nil {
				return err
			}
			err = a.listRows(failed, csv, func() error { return a.printErrors(failed, n) })
			return errors.Join(err, seen.result())
		},
	}
	cmd.Flags().BoolVar(&refused, "refused", false, "refused calls too")
	cmd.Flags().BoolVar(&csv, "csv", false, "print CSV: the first 24 keys of each row")
	return cmd
}

func (a *app) printErrors(rows []*ledger.Row, n query.Tally) error {
	if len(rows) > 0 {
		t := table{columns: []column{{title: ""}, {title: "started", goes: 2}, {title: "session", gives: true, goes: 1}, {title: "tool", gives: true, order: 3, least: 8},
			{title: "error"}, {title: "call", gives: true, order: 1, least: leastID}, {title: "message", gives: true, order: 2, least: 24}}}
		for _, row := range rows {
			m := mark(row)
			t.add(m, cell{text: row.StartedAt}, cell{row.SessionID.String(), dim}, cell{text: row.ToolName.String()}, cell{string(row.ErrorType), m.colour},
				cell{text: row.ToolCallID.String()}, cell{text: text(row.ErrorMessage)})
		}
		if err := t.print(a.stdout, a.screen()); err != nil {
			return err
		}
	}
	line := "%d of %s failed"
	args := []any{n.Failures, count(n.Calls, "call")}
	if n.Refusals > 0 {
		line += ", %d refused"
		args = append(args, n.Refusals)
	}
	return a.say(line, args...)
}
