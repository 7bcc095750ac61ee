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
			scan := query.Scan{Filter: filter, Keep: query.Failed(refused), Tally: &n}
			if !a.flags.json && !csv {
				scan.Columns = []string{"tool_call_id", "session_id", "tool_name", "status", "started_at", "error_type", "error_message"}
			}
			failed, err := collect(query.Joined(d, scan.Rows(d)), &seen)
			if err != nil {
				return err
			}
			switch {
			case a.flags.json:
				err = a.printRows(failed)
			case csv:
				err = a.printRowsCSV(failed)
			default:
				err = a.printErrors(failed, n)
			}
			return errors.Join(err, seen.result())
		},
	}
	cmd.Flags().BoolVar(&refused, "refused", false, "refused calls too")
	cmd.Flags().BoolVar(&csv, "csv", false, "print CSV: the first 24 keys of each row")
	return cmd
}

// sessionFilter is the filter of a command that takes a session as its argument too.
func (a *app) sessionFilter(cmd *cobra.Command, args []string) (query.Filter, error) {
	filter := a.filter()
	if len(args) == 1 {
		if filter.Session != "" && filter.Session != args[0] {
			return filter, usagef(cmd, "two sessions are named: %q and --session %q", args[0], filter.Session)
		}
		filter.Session = args[0]
	}
	return filter, nil
}

func (a *app) printErrors(rows []*ledger.Row, n query.Tally) error {
	if len(rows) > 0 {
		t := table{columns: []column{{title: ""}, {title: "started"}, {title: "session", gives: true}, {title: "tool"}, {title: "error"}, {title: "call"}, {title: "message", gives: true}}}
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
