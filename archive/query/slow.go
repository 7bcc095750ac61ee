package query

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"toolrun/archive/ledger"
)

// Slow returns the slowest rows that took at least over, at most n, slowest first; of equal ones the earlier first. It
// holds no more than 2n rows. all is how many took that long.
func Slow(rows iter.Seq2[*ledger.Row, error], over time.Duration, n int, damaged func(error)) (slowest []*ledger.Row, all int, err error) {
	order := func(a, b *ledger.Row) int {
		return cmp.Or(cmp.Compare(b.DurationMS, a.DurationMS), cmp.Compare(a.Seq, b.Seq))
	}
	err = each(rows, damaged, func(row *ledger.Row) bool {
		if time.Duration(row.DurationMS)*time.Millisecond < over {
			return true
		}
		all++
		if slowest = append(slowest, row); len(slowest) >= 2*n {
			slices.SortFunc(slowest, order)
			slowest = slowest[:n]
		}
		return true
	})
	slices.SortFunc(slowest, order)
	return slowest[:min(n, len(slowest))], all, err
}
