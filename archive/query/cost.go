package query

import (
	"math"
	"slices"
	"strings"

	"toolrun/archive"
	"toolrun/archive/ledger"
)

// Cost is what a set of rows cost, as far as that is known.
type Cost struct {
	Key          string   `json:"key"`   // what the rows have in common; "" where they do not say
	Calls        int      `json:"calls"` // rows
	Priced       int      `json:"priced"`
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	USD          *float64 `json:"estimated_cost_usd"` // of the priced rows, 6 decimal places; null where there are none
}

// CostKeys are the ways to divide costs.
var CostKeys = map[string]func(*ledger.Row) string{
	"day":     func(r *ledger.Row) string { return r.StartedAt[:min(len(r.StartedAt), 10)] }, // UTC
	"month":   func(r *ledger.Row) string { return r.StartedAt[:min(len(r.StartedAt), 7)] },
	"session": func(r *ledger.Row) string { return r.SessionID.String() },
	"provider": func(r *ledger.Row) string {
		if r.Provider == nil {
			return ""
		}
		return r.Provider.String()
	},
	"model": func(r *ledger.Row) string {
		if r.Model == nil {
			return ""
		}
		return r.Model.String()
	},
}

// Costs sums the rows that f lets through up by key, sorted by it, and in total. Damaged lines go to damaged.
func Costs(d *archive.Dir, f Filter, key func(*ledger.Row) string, damaged func(error)) (parts []Cost, total Cost, err error) {
	byKey := map[string]*Cost{}
	rows := Scan{Filter: f, Columns: []string{"tool_call_id", "session_id", "started_at", "model", "provider", "input_tokens", "output_tokens", "estimated_cost_usd"}}.Rows(d)
	err = each(Joined(d, rows), damaged, func(row *ledger.Row) bool {
		k := key(row)
		if byKey[k] == nil {
			byKey[k] = &Cost{Key: k}
		}
		byKey[k].add(row)
		total.add(row)
		return true
	})
	for _, c := range byKey {
		parts = append(parts, *c)
	}
	slices.SortFunc(parts, func(a, b Cost) int { return strings.Compare(a.Key, b.Key) })
	return parts, total, err
}

func (c *Cost) add(row *ledger.Row) {
	c.Calls++
	if row.InputTokens != nil {
		c.InputTokens += *row.InputTokens
	}
	if row.OutputTokens != nil {
		c.OutputTokens += *row.OutputTokens
	}
	if row.EstimatedCostUSD != nil {
		c.Priced++
		addUSD(&c.USD, *row.EstimatedCostUSD)
	}
}

// addUSD adds to a sum of at most 6 decimal places, as rows have, so that it has no more of them.
func addUSD(sum **float64, usd float64) {
	if *sum == nil {
		*sum = new(float64)
	}
	**sum = math.Round((**sum+usd)*1e6) / 1e6
}
