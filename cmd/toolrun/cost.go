package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"toolrun/archive/query"
)

func (a *app) costCmd() *cobra.Command {
	var by string
	var csv bool
	keys := strings.Join(slices.Sorted(maps.Keys(query.CostKeys)), ", ")
	cmd := &cobra.Command{
		Use:   "cost [SESSION]",
		Short: "Tell what the calls cost: estimated dollars and tokens, in total and by provider, model, day, month or session.",
		Long: "Tell what the calls cost: estimated dollars and tokens, in total and by provider, model, day, month or session.\n" +
			"A call has a cost where its provider and both token counts are known, from the client or by 'toolrun audit'; others\n" +
			"are counted and add nothing. Days and months are UTC.",
		Example:     "  toolrun cost --by day --since 30d",
		Args:        cobra.MaximumNArgs(1),
		Annotations: exitsAlso(statusFound, statusData),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, ok := query.CostKeys[by]
			if !ok {
				return usagef(cmd, "--by %q: not one of %s", by, keys)
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
			var parts []query.Cost
			var total query.Cost
			err = a.ofSession(d, &filter, &seen, func() (int, error) {
				parts, total, err = query.Costs(d, filter, key, func(err error) { seen.note(err) })
				return total.Calls, err
			})
			if err != nil {
				return err
			}
			switch {
			case a.flags.json:
				for _, part := range parts {
					err = errors.Join(err, printJSON(a.stdout, part))
				}
			case csv:
				err = a.printCostsCSV(by, parts)
			default:
				err = a.printCosts(by, parts, total)
			}
			return errors.Join(err, seen.result())
		},
	}
	cmd.Flags().StringVar(&by, "by", "provider", "divide by "+keys)
	cmd.Flags().BoolVar(&csv, "csv", false, "print CSV")
	return cmd
}

func (a *app) printCosts(by string, parts []query.Cost, total query.Cost) error {
	t := table{columns: []column{{title: by, gives: true}, {title: "USD", right: true}, {title: "tokens in", right: true}, {title: "tokens out", right: true},
		{title: "calls", right: true}, {title: "with a cost", right: true}}}
	var costs []*float64
	for _, c := range parts {
		costs = append(costs, c.USD)
	}
	usd := dollars(append(costs, total.USD))
	add := func(name string, colour colour, c query.Cost) {
		t.add(cell{name, colour}, cell{text: usd[len(t.rows)]}, cell{text: strconv.FormatInt(c.InputTokens, 10)}, cell{text: strconv.FormatInt(c.OutputTokens, 10)},
			cell{text: strconv.Itoa(c.Calls)}, cell{text: strconv.Itoa(c.Priced)})
	}
	for _, c := range parts {
		name := c.Key
		if name == "" {
			name = "(unknown)"
		}
		add(name, plain, c)
	}
	add("total", bold, total)
	return t.print(a.stdout, a.screen())
}

func (a *app) printCostsCSV(by string, parts []query.Cost) error {
	lines := [][]string{{by, "estimated_cost_usd", "input_tokens", "output_tokens", "calls", "priced"}}
	for _, c := range parts {
		usd := ""
		if c.USD != nil {
			usd = fmt.Sprintf("%.6f", *c.USD)
		}
		lines = append(lines, []string{c.Key, usd, strconv.FormatInt(c.InputTokens, 10), strconv.FormatInt(c.OutputTokens, 10), strconv.Itoa(c.Calls), strconv.Itoa(c.Priced)})
	}
	return a.printCSV(lines)
}
