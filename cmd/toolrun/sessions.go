package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"toolrun/archive/query"
)

func (a *app) sessionsCmd() *cobra.Command {
	var csv bool
	cmd := &cobra.Command{
		Use:         "sessions",
		Short:       "List the sessions: client, first and last call, how many calls, failures and refusals, and the cost where known.",
		Example:     "  toolrun sessions --since 7d",
		Args:        cobra.NoArgs,
		Annotations: exitsAlso(statusFound, statusData),
		RunE: func(*cobra.Command, []string) error {
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			if err := a.meanSession(d); err != nil {
				return err
			}
			seen := damageSeen{a: a}
			sessions, err := query.Sessions(d, a.filter(), func(err error) { seen.note(err) })
			if err != nil {
				return err
			}
			a.tellPruned(d, a.filter())
			if a.flags.json {
				for _, s := range sessions {
					if err := printJSON(a.stdout, s); err != nil {
						return err
					}
				}
				return seen.result()
			}
			if csv {
				return errors.Join(a.printSessionsCSV(sessions), seen.result())
			}
			t := table{columns: []column{
				{title: "session", gives: true, order: 1, least: leastID}, {title: "client", gives: true, goes: 1}, {title: "first", goes: 2}, {title: "last"},
				{title: "calls", right: true}, {title: "failed", right: true}, {title: "refused", right: true}, {title: "USD", right: true}}}
			costs := make([]*float64, len(sessions))
			for i, s := range sessions {
				costs[i] = s.USD
			}
			usd := dollars(costs)
			for i, s := range sessions {
				t.add(cell{s.SessionID, bold}, cell{text: s.Client}, cell{text: s.FirstAt}, cell{text: s.LastAt}, cell{text: strconv.Itoa(s.Calls)},
					countCell(s.Failures, red), countCell(s.Refusals, yellow), cell{text: usd[i]})
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
	cmd.Flags().BoolVar(&csv, "csv", false, "print CSV")
	return cmd
}

func (a *app) printSessionsCSV(sessions []query.Session) error {
	lines := [][]string{{"session_id", "client", "first_at", "last_at", "calls", "failures", "refusals", "estimated_cost_usd"}}
	for _, s := range sessions {
		usd := ""
		if s.USD != nil {
			usd = fmt.Sprintf("%.6f", *s.USD)
		}
		lines = append(lines, []string{s.SessionID, s.Client, s.FirstAt, s.LastAt, strconv.Itoa(s.Calls), strconv.Itoa(s.Failures), strconv.Itoa(s.Refusals), usd})
	}
	return a.printCSV(lines)
}

func countCell(n int, c colour) cell {
	if n == 0 {
		c = plain
	}
	return cell{strconv.Itoa(n), c}
}
