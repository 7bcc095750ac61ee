package query

import (
	"iter"

	"toolrun/archive"
	"toolrun/archive/joins"
	"toolrun/archive/ledger"
)

// Joined yields rows with what was learned of them later, where they themselves do not say it: model, provider, tokens,
// cost, turn. Damaged lines of joins.jsonl come first, as errors.
func Joined(d *archive.Dir, rows iter.Seq2[*ledger.Row, error]) iter.Seq2[*ledger.Row, error] {
	return func(yield func(*ledger.Row, error) bool) {
		var damage []error
		known, err := joins.Load(d.Path(), func(err error) { damage = append(damage, err) })
		if err != nil {
			damage = append(damage, err)
		}
		for _, err := range damage {
			if !yield(nil, err) {
				return
			}
		}
		for row, err := range rows {
			if err == nil && len(known) > 0 {
				if j := known[row.ToolCallID.String()]; j != nil {
					Fill(row, j)
				}
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// Fill gives a row what a join knows and the row does not, and tells whether that was anything.
func Fill(row *ledger.Row, j *joins.Join) (filled bool) {
	if row.Turn == 0 && j.Turn != 0 {
		row.Turn, filled = j.Turn, true
	}
	filled = fill(&row.Model, j.Model) || filled
	filled = fill(&row.Provider, j.Provider) || filled
	filled = fill(&row.InputTokens, j.InputTokens) || filled
	filled = fill(&row.OutputTokens, j.OutputTokens) || filled
	return fill(&row.EstimatedCostUSD, j.EstimatedCostUSD) || filled
}

func fill[T any](to **T, from *T) bool {
	if *to != nil || from == nil {
		return false
	}
	*to = from
	return true
}
