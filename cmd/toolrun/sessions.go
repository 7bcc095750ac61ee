package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"toolrun/archive/query"
)

func (a *app) sessionsCmd() *cobra.Command {
	return &cobra.Command{
		Use:         "sessions",
		Short:       "List the sessions: client, first and last call, how many calls, failures and refusals.",
		Example:     "  toolrun sessions --since 7d",
		Args:        cobra.NoArgs,
		Annotations: exitsAlso(statusFound, statusData),
		RunE: func(*cobra.Command, []string) error {
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			seen := damageSeen{a: a}
			sessions, err := query.Sessions(d, a.filter(), func(err error) { seen.note(err) })
			if err != nil {
				return err
			}
			if a.flags.json {
				for _, s := range sessions {
					if err := printJSON(a.stdout, s); err != nil {
						return err
					}
				}
				return seen.result()
			}
			t := table{columns: []column{
				{title: "session"}, {title: "client"}, {title: "first"}, {title: "last"},
				{title: "calls", right: true}, {title: "failed", right: true}, {title: "refused", right: true}}}
			for _, s := range sessions {
				t.add(cell{s.SessionID, bold}, cell{text: s.Client}, cell{text: s.FirstAt}, cell{text: s.LastAt}, cell{text: strconv.Itoa(s.Calls)},
					countCell(s.Failures, red), countCell(s.Refusals, yellow))
			}
			if len(sessions) == 0 {
				a.say("No calls.")
				return seen.result()
			}
			if err := t.print(a.stdout, a.screen()); err != nil {
				return err
			}
			return seen.result()
		},
	}
}

func countCell(n int, c colour) cell {
	if n == 0 {
		c = plain
	}
	return cell{strconv.Itoa(n), c}
}
