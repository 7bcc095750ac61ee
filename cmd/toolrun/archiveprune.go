package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"toolrun/archive"
	"toolrun/archive/index"
)

func (a *app) archivePruneCmd() *cobra.Command {
	var (
		keep string
		yes  bool
	)
	cmd := &cobra.Command{
		Use:   "prune --keep 24mo",
		Short: "Give up the rows, traces and objects of old sealed months. What proves the other months stays.",
		Long: "Give up the rows, traces and objects of sealed months that are older. Of each month its manifest, its seal and the\n" +
			"leaves of its tree stay, so that verify and prove of all that is left go on. It asks first; without a terminal it\n" +
			"needs --yes.",
		Example:     "  toolrun archive prune --keep 24mo",
		Args:        cobra.NoArgs,
		Annotations: exitsAlso(statusData),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if keep == "" {
				return usagef(cmd, "say by --keep how old the months may be that stay whole, as in --keep 24mo")
			}
			before, err := archive.ParseKeepMonths(keep, a.now())
			if err != nil {
				return usagef(cmd, "--keep %v", err)
			}
			d, err := a.openToSeal()
			if err != nil {
				return err
			}
			defer d.Close()
			list, err := d.Prunable(before)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				return a.say("No sealed month is that old.")
			}
			if !yes {
				if yes, err = a.askPrune(cmd, list); err != nil {
					return err
				}
				if !yes {
					return a.say("Nothing was given up.")
				}
			}
			if err := errors.Join(d.Prune(list), index.Forget(d.Path())); err != nil {
				return err
			}
			for _, s := range list {
				if err := a.say("Gave up the content of %v: %s.", s.Ref(), count(int(s.Rows), "row")); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&keep, "keep", "", "months that ended longer ago are given up, as in 24mo, 2y, 730d")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// askPrune shows what would be given up and waits for a person's yes.
func (a *app) askPrune(cmd *cobra.Command, list []archive.SealedMonth) (bool, error) {
	if !screenOf(a.stdin, a.getenv).terminal || !screenOf(a.stderr, a.getenv).terminal {
		return false, usagef(cmd, "%s would be given up: say --yes, or run it on a terminal", count(len(list), "sealed month"))
	}
	rows, bytes := int64(0), int64(0)
	for _, s := range list {
		rows, bytes = rows+s.Rows, bytes+s.Bytes
		fmt.Fprintf(a.stderr, "  %v: %s, %s\n", s.Ref(), count(int(s.Rows), "row"), size(s.Bytes))
	}
	fmt.Fprintf(a.stderr, "Give up %s (%s) for ever? [y/N] ", count(int(rows), "row"), size(bytes))
	text, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil && text == "" {
		return false, errors.Join(a.say("")) // an end without an answer is a no
	}
	answer := strings.ToLower(strings.TrimSpace(text))
	return answer == "y" || answer == "yes", nil
}
