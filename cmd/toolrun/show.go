package main

import (
	"errors"

	"github.com/spf13/cobra"

	"toolrun/archive/joins"
	"toolrun/archive/query"
)

func (a *app) showCmd() *cobra.Command {
	var csv bool
	cmd := &cobra.Command{
		Use:   "show CALL",
		Short: "Tell the whole story of one call: what ran, how it ended, what was enforced, where it stands.",
		Long: "Tell the whole story of one call: what ran, how it ended, what was enforced, where it stands. CALL is the tool_call_id, the\n" +
			"client's own id of the call, which all its attempts have, or the beginning of an id that no other call shares.",
		Example:     "  toolrun show toolu_01AbC",
		Args:        cobra.ExactArgs(1),
		Annotations: exitsAlso(statusFound, statusData),
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			rows, damage, err := a.find(d, args[0])
			if err != nil {
				return err
			}
			known, err := joins.Load(d.Path(), nil)
			if err != nil {
				return err
			}
			told := make([]story, len(rows))
			for i, row := range rows {
				told[i].row, told[i].again = row, a.sameRecord
				if j := known[row.ToolCallID.String()]; j != nil {
					told[i].learned = query.Fill(row, j)
				}
			}
			switch {
			case a.flags.json:
				return errors.Join(a.printRows(rows), damage)
			case csv:
				return errors.Join(a.printRowsCSV(rows), damage)
			}
			for i, s := range told {
				if s.attempts, err = query.Attempts(d, s.row); err != nil {
					return err
				}
				s.file, s.line = query.Place(d, s.row)
				if i > 0 {
					if err := a.say(""); err != nil {
						return err
					}
				}
				if err := s.table(d).printWrapped(a.stdout, a.screen()); err != nil {
					return err
				}
			}
			return damage
		},
	}
	cmd.Flags().BoolVar(&csv, "csv", false, "print CSV: the first 24 keys of each row")
	return cmd
}
