package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"
)

// year seals a year of use, each month when it is over.
func (b *bench) year() error {
	if b.days == 0 {
		return nil
	}
	dir := filepath.Join(b.dir, "year")
	fmt.Printf("\na year of %d days, %d calls a day, sealed month by month\n  %-9s %8s %10s %10s %10s %10s %7s %9s\n", b.days, b.perDay, "", "calls", "ledger", "traces", "objects", "sealed", "ratio", "took")
	r := &record{data: dir, logs: b.logs, rand: rand.New(rand.NewPCG(3, 4))}
	began := time.Date(2024, 7, 1, 0, 0, 0, 0, time.UTC)
	var from, to [3]int64
	var took time.Duration
	for day := 0; day < b.days; {
		month := began.AddDate(0, 0, day)
		n := min(b.days-day, month.AddDate(0, 1, 0).Add(-time.Hour).Day())
		calls := r.seq
		if err := r.days(month, n, b.perDay); err != nil {
			return err
		}
		day += n
		if _, err := timed(toolrun(dir, "sessions", "--json", "--since", "2099-01-01")); err != nil { // signs for what is there
			return err
		}
		hot := [3]int64{size(filepath.Join(dir, "ledger.jsonl")), sizes(filepath.Join(dir, "runs")), sizes(filepath.Join(dir, "store"))}
		t, err := timed(toolrun(dir, "archive", "--month", month.Format("2006-01")))
		if err != nil {
			return err
		}
		took += t
		sealed := filepath.Join(dir, "archive", month.Format("2006-01"))
		for i, name := range []string{"ledger.jsonl.zst", "runs.tar.zst", "store.tar.zst"} {
			from[i], to[i] = from[i]+hot[i], to[i]+size(filepath.Join(sealed, name))
		}
		all := sum(hot)
		fmt.Printf("  %-9s %8d %10s %10s %10s %10s %7.1f %7.1f s\n", month.Format("2006-01"), r.seq-calls, mib(hot[0]), mib(hot[1]), mib(hot[2]), mib(sizes(sealed)), float64(all)/float64(sizes(sealed)), t.Seconds())
	}
	sealed := sizes(filepath.Join(dir, "archive"))
	fmt.Printf("  %-9s %8d %10s %10s %10s %10s %7.1f %7.1f s\n", "all", r.seq, mib(from[0]), mib(from[1]), mib(from[2]), mib(sealed), float64(sum(from))/float64(sealed), took.Seconds())
	fmt.Printf("  %-9s %8s %10.1f %10.1f %10.1f\n", "ratio", "", float64(from[0])/float64(to[0]), float64(from[1])/float64(to[1]), float64(from[2])/float64(to[2]))
	t, err := timed(toolrun(dir, "verify"))
	if err != nil {
		return err
	}
	fmt.Printf("  verify of all of it: %.1f s\n", t.Seconds())
	return nil
}

func sum(n [3]int64) int64 { return n[0] + n[1] + n[2] }
