package query

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"toolrun/archive"
	"toolrun/archive/ledger"
)

// Slow returns the slowest rows that f lets through and that took at least over, at most n, slowest first; of equal ones the
// earlier first. It holds no more than 2n rows. all is how many took that long; tally, which may be nil, counts all that f
// lets through.
func Slow(d *archive.Dir, f Filter, over time.Duration, n int, tally *Tally, damaged func(error)) (slowest []*ledger.Row, all int, err error) {
	took := func(f *ledger.Fields) bool {
		ms, err := strconv.ParseInt(string(f.Raw(columnDuration)), 10, 64)
		return err == nil && time.Duration(ms)*time.Millisecond >= over
	}
	order := func(a, b *ledger.Row) int {
		return cmp.Or(cmp.Compare(b.DurationMS, a.DurationMS), cmp.Compare(a.Seq, b.Seq))
	}
	err = each(Joined(d, Scan{Filter: f, Keep: took, Tally: tally}.Rows(d)), damaged, func(row *ledger.Row) bool {
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
