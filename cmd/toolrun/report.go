package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// defaultPageCalls is how many calls a page tells in full: some MiB of HTML.
const defaultPageCalls = 2000

func (a *app) reportCmd() *cobra.Command {
	var file string
	var limit int
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Write what ran as one HTML file that can be mailed: sessions, calls, what each did.",
		Long: "Write what ran as one HTML file that can be mailed: sessions, calls, what each did.\n" +
			"The file loads nothing. --session, --since and --until choose what it tells.",
		Example:     "  toolrun report --since 7d -o report.html",
		Args:        cobra.NoArgs,
		Annotations: exitsAlso(statusFound, statusData),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return usagef(cmd, "--limit %d: at least 1", limit)
			}
			if file == "" && a.screen().terminal {
				return usagef(cmd, "HTML is for a file or a pipe, not for this terminal: toolrun report -o report.html")
			}
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			if err := a.meanSession(d); err != nil {
				return err
			}
			p, seen, err := a.makePage(d, pageOptions{limit: limit})
			if err != nil {
				return err
			}
			a.tellPruned(d, a.filter())
			if file == "" {
				out := bufio.NewWriter(a.stdout)
				return errors.Join(p.write(out), out.Flush(), seen.result())
			}
			if err := writePage(file, p); err != nil {
				return err
			}
			return errors.Join(a.say("Wrote %s: %s", file, p.Total), seen.result())
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "file to write (default: stdout, into a pipe)")
	cmd.Flags().IntVar(&limit, "limit", defaultPageCalls, "calls that are told in full, the newest")
	return cmd
}

// writePage writes the file, for its owner only: it holds what tools printed.
func writePage(file string, p *page) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	out := bufio.NewWriter(f)
	return errors.Join(p.write(out), out.Flush(), f.Close())
}
