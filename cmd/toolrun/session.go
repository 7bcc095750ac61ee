package main

import (
	"errors"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"toolrun/archive/ledger"
	"toolrun/archive/query"
)

func (a *app) sessionCmd() *cobra.Command {
	var csv bool
	cmd := &cobra.Command{
		Use:         "session [ID]",
		Short:       "List the calls of a session, one line a call; without an ID, of the one that called last.",
		Example:     "  toolrun session",
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
				if last == "" {
					if _, err := collect((query.Scan{Filter: filter, Columns: []string{}}).Rows(d), &seen); err != nil {
						return err
					}
					if !a.flags.json {
						a.say("No calls.")
					}
					return seen.result()
				}
				filter.Session = last
			}
			rows, err := collect(query.Joined(d, query.Rows(d, filter)), &seen)
			if err != nil {
				return err
			}
			if len(rows) == 0 {
				return errors.Join(fmt.Errorf("no calls of session %q in %s", filter.Session, d.Path()), seen.result())
			}
			if err := a.joinWhereNewer(d, rows); err != nil {
				return err
			}
			switch {
			case a.flags.json:
				err = a.printRows(rows)
			case csv:
				err = a.printRowsCSV(rows)
			default:
				err = a.printSession(rows)
			}
			if err != nil {
				return err
			}
			return seen.result()
		},
	}
	cmd.Flags().BoolVar(&csv, "csv", false, "print CSV: the first 24 keys of each row")
	return cmd
}

// collect gathers rows, and names damaged lines on the way.
func collect(all iter.Seq2[*ledger.Row, error], seen *damageSeen) ([]*ledger.Row, error) {
	var rows []*ledger.Row
	for row, err := range all {
		if err != nil {
			if err := seen.note(err); err != nil {
				return nil, err
			}
			continue
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// lastSession is the session of the last row, "" where there is none.
func lastSession(all iter.Seq2[*ledger.Row, error], seen *damageSeen) (id string, err error) {
	for row, err := range all {
		if err != nil {
			if err := seen.note(err); err != nil {
				return "", err
			}
			continue
		}
		id = row.SessionID.String()
	}
	return id, nil
}

// printSession prints a head with the counts and one line a call.
func (a *app) printSession(rows []*ledger.Row) error {
	var n tally
	catalogs := map[string]bool{}
	client := ""
	for _, row := range rows {
		n.add(row)
		catalogs[row.CatalogSHA256] = true
		if row.Client != nil {
			client = " · " + row.Client.String()
		}
	}
	first, last := rows[0], rows[len(rows)-1]
	if err := a.say("session %s%s · %s · %s to %s", first.SessionID.String(), client, n.String(), first.StartedAt, last.EndedAt); err != nil {
		return err
	}
	if len(catalogs) > 1 {
		a.say("%d different catalogs were in force: calls are not all comparable", len(catalogs))
	}
	return callTable(rows).print(a.stdout, a.screen())
}
