// Command archive times sealed months against zstd and tar in one run, and seals a year of made-up use month by month. It
// sees toolrun from outside, as bin/toolrun, but for one thing taken out in process, which a benchmark of package month does.
// `make bench` runs it from the top of the repository with a small month, `make bench-archive` with one of 1 GiB and the year.
// What counts are ratios of one run; a goal that is missed is status 1.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	var b bench
	flag.IntVar(&b.rows, "rows", 60_000, "rows of the ledger that is sealed by itself")
	flag.IntVar(&b.calls, "calls", 4_000, "calls of the month that is sealed with all that they name")
	flag.IntVar(&b.rounds, "n", 5, "rounds of what is compared")
	flag.IntVar(&b.days, "days", 0, "days of a year that is sealed month by month, 0: none")
	flag.IntVar(&b.perDay, "per-day", 1000, "calls a day of it")
	flag.Parse()
	if err := b.run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type bench struct {
	rows, calls, rounds, days, perDay int
	dir                               string
	logs                              []string
	goals                             []goal
}

// goal is a bound that a figure has to keep.
type goal struct {
	name       string
	have, want float64
	atMost     bool
	unit       string
}

func (b *bench) run() (err error) {
	if b.dir, err = os.MkdirTemp("", "toolrun-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.logs, err = gather(); err != nil {
		return err
	}
	for _, part := range []func() error{b.ledger, b.month, b.year} {
		if err := part(); err != nil {
			return err
		}
	}
	missed := 0
	fmt.Println("\ngoals")
	for _, g := range b.goals {
		how, kept := "at least", g.have >= g.want
		if g.atMost {
			how, kept = "at most", g.have <= g.want
		}
		mark := "kept"
		if !kept {
			missed++
			mark = "MISSED"
		}
		fmt.Printf("  %-60s %8.2f%s, %s %g%s  %s\n", g.name, g.have, g.unit, how, g.want, g.unit, mark)
	}
	if missed > 0 {
		return fmt.Errorf("%d goals were missed", missed)
	}
	return nil
}

// line prints how long something took, and what it made of how much.
func line(name string, took time.Duration, from, to int64) {
	fmt.Printf("  %-52s %8.0f ms %8.0f MiB/s   %10s, ratio %.2f\n", name, ms(took), float64(from)/(1<<20)/took.Seconds(), mib(to), float64(from)/float64(to))
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

func toolrun(dir string, args ...string) *exec.Cmd {
	return exec.Command("bin/toolrun", append(args, "--data", dir)...)
}

// timed runs a command.
func timed(cmd *exec.Cmd) (time.Duration, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.Bytes())
	}
	return took, err
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func sizes(root string) (n int64) {
	filepath.WalkDir(root, func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}
