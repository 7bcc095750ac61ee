// Command archive times sealed months against zstd and tar in one run, and seals a year of made-up use month by month. It
// sees toolrun from outside, as bin/toolrun. `make bench` runs it from the top of the repository.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	month := flag.Int("month", 60_000, "calls of the month that is compared")
	rounds := flag.Int("n", 5, "rounds of each kind")
	days := flag.Int("days", 0, "days of a year that is sealed month by month, 0: none")
	perDay := flag.Int("calls", 1000, "calls a day of it")
	flag.Parse()
	if err := run(*month, *rounds, *days, *perDay); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(calls, rounds, days, perDay int) error {
	dir, err := os.MkdirTemp("", "toolrun-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	logs, err := gather()
	if err != nil {
		return err
	}
	if err := compare(filepath.Join(dir, "month"), logs, calls, rounds); err != nil || days == 0 {
		return err
	}
	return year(filepath.Join(dir, "year"), logs, days, perDay)
}

// compare seals one month again and again, beside what zstd and tar make of the same files.
func compare(dir string, logs []string, calls, rounds int) error {
	r := &record{data: dir, logs: logs, rand: rand.New(rand.NewPCG(1, 2))}
	if err := r.days(time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC), 31, (calls+30)/31); err != nil {
		return err
	}
	if err := toolrun(dir, "sessions", "--json"); err != nil { // signs for what is there
		return err
	}
	ledger := filepath.Join(dir, "ledger.jsonl")
	ledgerBytes, storeBytes := size(ledger), sizes(filepath.Join(dir, "store"))
	fmt.Printf("\na month of %d calls: ledger %s, %d traces, %d objects of %s\n", r.seq, mib(ledgerBytes), r.runs, r.objects, mib(storeBytes))

	rowsOnly := dir + "-rows"
	if err := os.MkdirAll(rowsOnly, 0o700); err != nil {
		return err
	}
	var zstd, tarred, rows, all []time.Duration
	for round := range rounds {
		took, err := timed(exec.Command("zstd", "-q", "-f", "-T2", "-3", ledger, "-o", dir+".zst"))
		if err != nil {
			return err
		}
		zstd = append(zstd, took)
		if round == 0 {
			took, err := timed(exec.Command("sh", "-c", "tar cC '"+dir+"' store | zstd -q -f -T2 -3 -o '"+dir+".tar.zst'"))
			if err != nil {
				return err
			}
			tarred = append(tarred, took)
		}
		// The rows alone: the same ledger without traces and objects, which are noted as lost.
		copied := filepath.Join(rowsOnly, fmt.Sprint(round))
		if err := signedCopy(ledger, copied); err != nil {
			return err
		}
		if took, err = timed(exec.Command("bin/toolrun", "archive", "--data", copied)); err != nil {
			return err
		}
		rows = append(rows, took)
		if err := os.RemoveAll(copied); err != nil {
			return err
		}
	}
	took, err := timed(exec.Command("bin/toolrun", "archive", "--data", dir))
	if err != nil {
		return err
	}
	all = append(all, took)
	sealed := filepath.Join(dir, "archive", "2025-03")
	line := func(name string, took time.Duration, from, to int64) {
		fmt.Printf("  %-44s %8.0f ms %9.0f MiB/s   %s, ratio %.2f\n", name, ms(took), float64(from)/(1<<20)/took.Seconds(), mib(to), float64(from)/float64(to))
	}
	line("zstd -T2 -3 of the ledger", median(zstd), ledgerBytes, size(dir+".zst"))
	line("toolrun archive of those rows, whole process", median(rows), ledgerBytes, size(filepath.Join(sealed, "ledger.jsonl.zst")))
	line("tar | zstd -T2 -3 of the store", median(tarred), storeBytes, size(dir+".tar.zst"))
	line("toolrun archive of all of it", median(all), ledgerBytes+storeBytes, sizes(sealed))
	line("  of it the store", median(all), storeBytes, size(filepath.Join(sealed, "store.tar.zst")))

	return questions(dir, r)
}

// questions times taking one thing out of the sealed month.
func questions(dir string, r *record) error {
	var output, show, session []time.Duration
	for i := range 41 {
		call := r.sample[(i*7919)%len(r.sample)]
		for _, q := range []struct {
			to   *[]time.Duration
			args []string
		}{{&output, []string{"output", call.output}}, {&show, []string{"show", call.id, "--json"}}, {&session, []string{"session", call.session, "--json"}}} {
			took, err := timed(exec.Command("bin/toolrun", append(q.args, "--data", dir)...))
			if err != nil {
				return err
			}
			*q.to = append(*q.to, took)
		}
	}
	nothing, err := timed(exec.Command("bin/toolrun", "version"))
	if err != nil {
		return err
	}
	fmt.Printf("  out of the sealed month, whole process, median of %d: output HASH %.1f ms, show CALL %.1f ms, session ID %.1f ms (toolrun version %.1f ms)\n",
		len(output), ms(median(output)), ms(median(show)), ms(median(session)), ms(nothing))
	return nil
}

// year seals a year of use, each month when it is due.
func year(dir string, logs []string, days, perDay int) error {
	fmt.Printf("\na year of %d days, %d calls a day, sealed month by month\n  %-9s %8s %10s %10s %10s %10s %7s %9s\n", days, perDay, "", "calls", "ledger", "traces", "objects", "sealed", "ratio", "took")
	r := &record{data: dir, logs: logs, rand: rand.New(rand.NewPCG(3, 4))}
	began := time.Date(2024, 7, 1, 0, 0, 0, 0, time.UTC)
	var from, to int64
	var took time.Duration
	for day := 0; day < days; {
		month := began.AddDate(0, 0, day)
		n := min(days-day, month.AddDate(0, 1, 0).Add(-time.Hour).Day())
		before := r.seq
		if err := r.days(month, n, perDay); err != nil {
			return err
		}
		day += n
		if err := toolrun(dir, "sessions", "--json", "--since", "2099-01-01"); err != nil {
			return err
		}
		ledger, traces, objects := size(filepath.Join(dir, "ledger.jsonl")), sizes(filepath.Join(dir, "runs")), sizes(filepath.Join(dir, "store"))
		t, err := timed(exec.Command("bin/toolrun", "archive", "--month", month.Format("2006-01"), "--data", dir))
		if err != nil {
			return err
		}
		sealed := sizes(filepath.Join(dir, "archive", month.Format("2006-01")))
		fmt.Printf("  %-9s %8d %10s %10s %10s %10s %7.1f %7.1f s\n", month.Format("2006-01"), r.seq-before, mib(ledger), mib(traces), mib(objects), mib(sealed), float64(ledger+traces+objects)/float64(sealed), t.Seconds())
		from, to, took = from+ledger+traces+objects, to+sealed, took+t
	}
	fmt.Printf("  %-9s %8d %32s %10s %7.1f %7.1f s\n", "all", r.seq, mib(from), mib(to), float64(from)/float64(to), took.Seconds())
	t, err := timed(exec.Command("bin/toolrun", "verify", "--data", dir))
	if err != nil {
		return err
	}
	fmt.Printf("  verify of all of it: %.1f s\n", t.Seconds())
	return nil
}

func signedCopy(ledger, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	content, err := os.ReadFile(ledger)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "ledger.jsonl"), content, 0o600); err != nil {
		return err
	}
	first := content[bytes.Index(content, []byte(`"tool_call_id":"`))+len(`"tool_call_id":"`):]
	return toolrun(dir, "prove", string(first[:bytes.IndexByte(first, '"')])) // signs for it
}

func toolrun(dir string, args ...string) error {
	var stderr bytes.Buffer
	cmd := exec.Command("bin/toolrun", append(args, "--data", dir)...)
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("toolrun %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return nil
}

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

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
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
