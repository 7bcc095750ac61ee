package main

import (
	"errors"
	"iter"

	"github.com/spf13/cobra"

	"toolrun/archive"
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
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			seen := damageSeen{a: a}
			rows, err := a.sessionRows(cmd, d, args, &seen)
			if err != nil {
				return err
			}
			if len(rows) > 0 {
				if err := a.joinWhereNewer(d, rows); err != nil {
					return err
				}
			}
			err = a.listRows(rows, csv, func() error {
				if len(rows) == 0 {
					return a.say("No calls.")
				}
				return a.printSession(rows)
			})
			return errors.Join(err, seen.result())
		},
	}
	cmd.Flags().BoolVar(&csv, "csv", false, "print CSV: the first 24 keys of each row")
	return cmd
}

// sessionRows are the rows of the session that is named, else of the one that called last.
func (a *app) sessionRows(cmd *cobra.Command, d *archive.Dir, args []string, seen *damageSeen) (rows []*ledger.Row, err error) {
	filter, err := a.sessionFilter(cmd, args)
	if err != nil {
		return nil, err
	}
	if filter.Session == "" {
		if filter.Session, err = query.LastSession(d, filter); err != nil {
			return nil, err
		}
	}
	// Where nobody has called, all is read, to name what is damaged.
	err = a.ofSession(d, &filter, seen, func() (int, error) {
		rows, err = collect(query.Joined(d, query.Rows(d, filter)), seen)
		return len(rows), err
	})
	return rows, err
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

// printSession prints a head with the counts and one line a call.
func (a *app) printSession(rows []*ledger.Row) error {
	var n tally
	catalogs := map[string]bool{}
	client := ""
	for _, row := range rows {
		n.add(row)
		catalogs[row.CatalogSHA256] = true
		if row.Client != nil {
			client = row.Client.String()
		}
	}
	first, last := rows[0], rows[len(rows)-1]
	if err := a.head("session "+first.SessionID.String(), client, n.String(), first.StartedAt+" to "+last.EndedAt); err != nil {
		return err
	}
	if len(catalogs) > 1 {
		a.say("%d different catalogs were in force: calls are not all comparable", len(catalogs))
	}
	return callTable(rows).print(a.stdout, a.screen())
}
