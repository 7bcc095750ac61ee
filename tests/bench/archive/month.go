package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// theMonth is the one that is sealed, of 31 days.
var theMonth = time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC)

// ledger seals rows alone, whole processes in turn: zstd reads a file and writes one; toolrun holds each line against what was
// signed, reads back and compares what it wrote, syncs it, signs it, and cuts the lines out of the ledger.
func (b *bench) ledger() error {
	dir := filepath.Join(b.dir, "rows")
	r := &record{data: dir, logs: b.logs, rand: rand.New(rand.NewPCG(5, 6)), only: true}
	if err := r.days(theMonth, 31, (b.rows+30)/31); err != nil {
		return err
	}
	if _, err := timed(toolrun(dir, "sessions", "--json")); err != nil { // signs for what is there
		return err
	}
	from := size(filepath.Join(dir, "ledger.jsonl"))
	fmt.Printf("\n%d rows of %s, sealed by themselves, median of %d\n", r.seq, mib(from), b.rounds)
	packed := filepath.Join(b.dir, "rows.zst")
	var zstd, rows []time.Duration
	var to int64
	for range b.rounds {
		took, err := timed(exec.Command("zstd", "-q", "-f", "-T2", "-3", filepath.Join(dir, "ledger.jsonl"), "-o", packed))
		if err != nil {
			return err
		}
		zstd = append(zstd, took)
		copied := filepath.Join(b.dir, "copied")
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			return err
		}
		if err := os.Chmod(copied, 0o700); err != nil {
			return err
		}
		unix.Sync() // of the copy: it is not sealing that has to wait for it
		if took, err = timed(toolrun(copied, "archive")); err != nil {
			return err
		}
		rows = append(rows, took)
		to = size(filepath.Join(copied, "archive", "2025-03", "ledger.jsonl.zst"))
		if err := os.RemoveAll(copied); err != nil {
			return err
		}
	}
	line("zstd -T2 -3", median(zstd), from, size(packed))
	line("toolrun archive, the whole process", median(rows), from, to)
	if err := b.parts(filepath.Join(dir, "ledger.jsonl")); err != nil {
		return err
	}
	// Not as fast: what it cannot do without takes longer than zstd does. The bound keeps what there is.
	b.goals = append(b.goals,
		goal{"sealing rows, times as fast as zstd -T2 -3", median(zstd).Seconds() / median(rows).Seconds(), 0.25, false, ""},
		goal{"rows, ratio against that of zstd -3", float64(size(packed)) / float64(to), 1, false, ""})
	return os.RemoveAll(dir)
}

// month seals a month with all that its calls name, and takes things out of it.
func (b *bench) month() error {
	dir := filepath.Join(b.dir, "month")
	r := &record{data: dir, logs: b.logs, rand: rand.New(rand.NewPCG(1, 2))}
	if err := r.days(theMonth, 31, (b.calls+30)/31); err != nil {
		return err
	}
	if _, err := timed(toolrun(dir, "sessions", "--json")); err != nil { // signs for what is there
		return err
	}
	store, packed := sizes(filepath.Join(dir, "store")), filepath.Join(b.dir, "store.tar.zst")
	all := store + size(filepath.Join(dir, "ledger.jsonl")) + sizes(filepath.Join(dir, "runs"))
	fmt.Printf("\na month of %d calls: %s, of it %d objects of %s\n", r.seq, mib(all), r.objects, mib(store))
	tarred, err := timed(exec.Command("sh", "-c", "tar cC '"+dir+"' store | zstd -q -f -T2 -3 -o '"+packed+"'"))
	if err != nil {
		return err
	}
	took, err := timed(toolrun(dir, "archive"))
	if err != nil {
		return err
	}
	sealed := filepath.Join(dir, "archive", "2025-03")
	line("tar | zstd -T2 -3 of the store", tarred, store, size(packed))
	line("toolrun archive of all", took, all, sizes(sealed))
	own := size(filepath.Join(sealed, "store.tar.zst"))
	fmt.Printf("  %-52s %33s   %10s, ratio %.2f\n", "of it the store", "", mib(own), float64(store)/float64(own))
	b.goals = append(b.goals, goal{"store, ratio against that of tar | zstd -3", float64(size(packed)) / float64(own), 1, false, ""})
	if err := b.processes(dir, r); err != nil {
		return err
	}
	if err := b.inProcess(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// processes takes one thing out of the sealed month by a process of its own.
func (b *bench) processes(dir string, r *record) error {
	const n = 41
	var output, show, session, nothing []time.Duration
	for i := range n {
		call := r.sample[(i*7919)%len(r.sample)]
		for _, q := range []struct {
			to   *[]time.Duration
			args []string
		}{{&output, []string{"output", call.output}}, {&show, []string{"show", call.id, "--json"}}, {&session, []string{"session", call.session, "--json"}}, {&nothing, []string{"version"}}} {
			took, err := timed(toolrun(dir, q.args...))
			if err != nil {
				return err
			}
			*q.to = append(*q.to, took)
		}
	}
	fmt.Printf("  out of it, a process each, median of %d: output %.1f ms, show %.1f ms, session %.1f ms, of which version alone takes %.1f ms\n",
		n, ms(median(output)), ms(median(show)), ms(median(session)), ms(median(nothing)))
	b.goals = append(b.goals, goal{"toolrun output HASH out of the month", ms(median(output)), 20, true, " ms"},
		goal{"toolrun session ID out of the month", ms(median(session)), 100, true, " ms"})
	return nil
}

// inProcess runs the benchmarks of package month on it.
func (b *bench) inProcess(dir string) error {
	cmd := exec.Command("go", "test", "-run", "^$", "-bench", "OutOfAMonth", "-benchtime", "500x", "./archive/month")
	cmd.Env = append(os.Environ(), "TOOLRUN_BENCH_ARCHIVE="+filepath.Join(dir, "archive"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	found := 0
	for text := range strings.Lines(string(out)) {
		name, rest, ok := strings.Cut(text, " ")
		var times int
		var ns float64
		if _, err := fmt.Sscan(rest, &times, &ns); !ok || err != nil || !strings.HasPrefix(name, "Benchmark") {
			continue
		}
		found++
		name, _, _ = strings.Cut(strings.TrimPrefix(name, "BenchmarkOne"), "OutOf")
		b.goals = append(b.goals, goal{"one " + strings.ToLower(name) + " out of the month, in process", ns / 1e6, 2, true, " ms"})
	}
	if found != 2 {
		return fmt.Errorf("%s: %d benchmarks\n%s", strings.Join(cmd.Args, " "), found, out)
	}
	return nil
}
