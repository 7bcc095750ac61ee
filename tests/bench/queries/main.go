// Command queries times questions about a ledger of a million rows against the tools that people have for such files: grep,
// jq, a loop in Python, Python's json and sqlite3. `make bench-queries` runs it from the top of the repository. All times are of
// one run on one machine, interleaved, each with what comes before it warm in memory; what counts are the ratios.
package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

//go:embed loop.py
var loopPy string

//go:embed load.py
var loadPy string

func main() {
	rows := flag.Int("rows", 1_000_000, "rows of the ledger")
	rounds := flag.Int("rounds", 5, "turns of what is fast")
	flag.Parse()
	if err := run(*rows, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// goal is a bound that a figure has to keep.
type goal struct {
	name   string
	have   float64
	want   float64
	atMost bool
	unit   string
}

func (g goal) kept() bool {
	if g.atMost {
		return g.have <= g.want
	}
	return g.have >= g.want
}

type bench struct {
	dir    string
	made   made
	rounds int
	goals  []goal
}

func run(rows, rounds int) error {
	dir, err := os.MkdirTemp("", "toolrun-queries-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{dir: dir, rounds: rounds}
	if b.made, err = makeLedger(dir, rows); err != nil {
		return err
	}
	fmt.Printf("%d rows, %d MB, %d of them failed\n", b.made.rows, b.made.bytes/1e6, b.made.failed)
	for name, text := range map[string]string{"loop.py": loopPy, "load.py": loadPy} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if err := errors.Join(b.scans(), b.load(), b.indexed()); err != nil {
		return err
	}
	missed := 0
	fmt.Println("\ngoals")
	for _, g := range b.goals {
		how, mark := "at least", "kept"
		if g.atMost {
			how = "at most"
		}
		if !g.kept() {
			missed++
			mark = "MISSED"
		}
		fmt.Printf("  %-52s %9.2f%s, %s %g%s  %s\n", g.name, g.have, g.unit, how, g.want, g.unit, mark)
	}
	if missed > 0 {
		return fmt.Errorf("%d goals were missed", missed)
	}
	return nil
}

func (b *bench) ledger() string { return filepath.Join(b.dir, "ledger.jsonl") }

func (b *bench) toolrun(args ...string) *exec.Cmd {
	return exec.Command("bin/toolrun", append(args, "--data", b.dir)...)
}

// cost is what a process took of the clock and of the processors, and how much memory it had at most.
type cost struct {
	wall, cpu time.Duration
	peak      int64 // bytes
}

// statusFound is toolrun's exit status where check has something to tell, which it has of this ledger.
const statusFound = 3

// measure runs a command.
func measure(c *exec.Cmd) (took cost, out string, err error) {
	var stdout strings.Builder
	c.Stdout, c.Stderr = &limited{&stdout}, os.Stderr
	began := time.Now()
	err = c.Run()
	took.wall = time.Since(began)
	if c.ProcessState != nil {
		took.cpu = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
		if usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
			took.peak = usage.Maxrss << 10
		}
	}
	if c.ProcessState != nil && c.ProcessState.ExitCode() == statusFound && strings.HasSuffix(c.Path, "/toolrun") {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(c.Args[:min(3, len(c.Args))], " "), err)
	}
	return took, stdout.String(), err
}

// limited keeps the beginning of what is printed.
type limited struct{ to *strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if n := 4096 - l.to.Len(); n > 0 {
		l.to.Write(p[:min(n, len(p))])
	}
	return len(p), nil
}

// contestant is one way to answer.
type contestant struct {
	name  string
	turns int
	make  func() *exec.Cmd
	after func(out string) error // may be nil
}

// compare runs all in turn and returns their medians in seconds, and the most memory that any of toolrun's had.
func (b *bench) compare(title string, all []contestant) ([]float64, int64, error) {
	times := make([][]cost, len(all))
	var peak int64
	for round := range b.rounds {
		for i, c := range all {
			if round >= c.turns {
				continue
			}
			cmd := c.make()
			took, out, err := measure(cmd)
			if err == nil && c.after != nil {
				err = c.after(out)
			}
			if err != nil {
				return nil, 0, err
			}
			times[i] = append(times[i], took)
			if strings.HasPrefix(c.name, "toolrun") {
				peak = max(peak, took.peak)
			}
		}
	}
	fmt.Printf("\n%-46s %9s    %8s of the first  %8s   load %s\n", title, "time", "rate", "CPU", load())
	medians := make([]float64, len(all))
	for i, c := range all {
		slices.SortFunc(times[i], func(x, y cost) int { return int(x.wall - y.wall) })
		median := times[i][len(times[i])/2]
		medians[i] = median.wall.Seconds()
		fmt.Printf("  %-44s %9.3f s  %8.2f               %8.3f s\n", c.name, medians[i], medians[0]/medians[i], median.cpu.Seconds())
	}
	return medians, peak, nil
}

// load is how many processes wanted a processor in the last minute: where they are more than there are, times are those of a
// busy machine.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// scans are questions that read the whole ledger.
func (b *bench) scans() error {
	const failed = `"status":"error"`
	python := func(args ...string) func() *exec.Cmd {
		return func() *exec.Cmd {
			return exec.Command("python3", append([]string{filepath.Join(b.dir, "loop.py")}, args...)...)
		}
	}
	all := []contestant{
		{"grep -c", b.rounds, func() *exec.Cmd { return exec.Command("grep", "-c", failed, b.ledger()) }, nil},
		{"toolrun errors", b.rounds, func() *exec.Cmd { return b.toolrun("errors") }, nil},
		{"toolrun session ID", b.rounds, func() *exec.Cmd { return b.toolrun("session", b.made.session) }, b.hasSession},
		{"toolrun sessions", 3, func() *exec.Cmd { return b.toolrun("sessions") }, nil},
		{"toolrun cost --by day", 3, func() *exec.Cmd { return b.toolrun("cost", "--by", "day") }, nil},
		{"toolrun slow", 3, func() *exec.Cmd { return b.toolrun("slow") }, nil},
		{"toolrun timeline ID", 3, func() *exec.Cmd { return b.toolrun("timeline", b.made.session) }, nil},
		{"toolrun show CALL", 3, func() *exec.Cmd { return b.toolrun("show", b.made.call) }, nil},
		{"toolrun check, all rows", 3, func() *exec.Cmd { return b.toolrun("check", "--since", stamp(begin)) }, nil},
		{"jq -c 'select(.status == \"error\")'", 1, func() *exec.Cmd { return exec.Command("jq", "-c", `select(.status == "error")`, b.ledger()) }, nil},
		{"python3, json.loads of each line", 1, python(b.ledger()), nil},
	}
	m, peak, err := b.compare("the whole ledger, without an index", all)
	if err != nil {
		return err
	}
	b.goals = append(b.goals,
		goal{"errors, rate against grep -c", m[0] / m[1], 0.8, false, ""}, goal{"session, rate against grep -c", m[0] / m[2], 0.8, false, ""},
		goal{"errors, times as fast as jq", m[9] / m[1], 20, false, ""}, goal{"errors, times as fast as a loop in Python", m[10] / m[1], 8, false, ""},
		goal{"session, times as fast as jq", m[9] / m[2], 20, false, ""}, goal{"session, times as fast as a loop in Python", m[10] / m[2], 8, false, ""},
		goal{"slowest question, as many times the time of grep -c", slices.Max(m[1:8]) / m[0], 5, true, ""},
		goal{"check, as many times the time of grep -c", m[8] / m[0], 8, true, ""},
		goal{"memory of a reading", float64(peak) / (1 << 20), 200, true, " MiB"})
	return nil
}

func (b *bench) hasSession(out string) error {
	if want := fmt.Sprintf(" %d calls,", b.made.sessionRows); !strings.Contains(out, want) {
		return fmt.Errorf("session %s: want%s have %.200s", b.made.session, want, out)
	}
	return nil
}

// load is index.db from nothing, against the same tables and indexes made by Python.
func (b *bench) load() error {
	count := fmt.Sprintf(`{"n":%d}`, b.made.rows)
	if _, _, err := measure(b.toolrun("sql", "SELECT 1")); err != nil {
		return err
	}
	sqlite := filepath.Join(b.dir, "index.db")
	all := []contestant{
		{"python3, json and sqlite3", 1, func() *exec.Cmd {
			return exec.Command("python3", filepath.Join(b.dir, "load.py"), b.ledger(), sqlite, filepath.Join(b.dir, "python.db"))
		}, nil},
		{"toolrun sql, all rows loaded", 2, func() *exec.Cmd {
			os.Remove(sqlite)
			return b.toolrun("sql", "--json", "SELECT COUNT(*) AS n FROM tool_calls")
		}, func(out string) error {
			if strings.TrimSpace(out) != count {
				return fmt.Errorf("loaded %s, want %s", out, count)
			}
			return nil
		}},
	}
	m, peak, err := b.compare("loading index.db", all)
	if err != nil {
		return err
	}
	os.Remove(filepath.Join(b.dir, "python.db"))
	b.goals = append(b.goals, goal{"full load, times as fast as Python", m[0] / m[1], 1.2, false, ""}, goal{"memory of a full load", float64(peak) / (1 << 20), 200, true, " MiB"})
	return nil
}

// indexed are questions that index.db answers, each a process of its own. A process that only prints its version is what
// is there without a question.
func (b *bench) indexed() error {
	more := 0
	grow := func() *exec.Cmd {
		more++
		if err := appendRows(b.dir, b.made.rows, more, 100); err != nil {
			return exec.Command("false")
		}
		return b.toolrun("sql", "SELECT 1")
	}
	all := []contestant{
		{"toolrun version", b.rounds, func() *exec.Cmd { return b.toolrun("version") }, nil},
		{"toolrun sql after 100 new rows", b.rounds, grow, nil},
		{"toolrun session ID", b.rounds, func() *exec.Cmd { return b.toolrun("session", b.made.session) }, b.hasSession},
	}
	for _, view := range []string{"tool_failure_rates", "daily_spend", "retries_by_session", "autonomous_calls"} {
		all = append(all, contestant{"toolrun sql, view " + view, 3, func() *exec.Cmd { return b.toolrun("sql", "SELECT * FROM "+view) }, nil})
	}
	m, peak, err := b.compare("with index.db", all)
	if err != nil {
		return err
	}
	b.goals = append(b.goals, goal{"100 new rows", m[1] * 1000, 50, true, " ms"}, goal{"session by its places", m[2] * 1000, 50, true, " ms"},
		goal{"slowest view", slices.Max(m[3:]), 1, true, " s"}, goal{"memory of a question", float64(peak) / (1 << 20), 200, true, " MiB"})
	return nil
}

// appendRows adds rows as another run would.
func appendRows(dir string, from, round, n int) error {
	f, err := os.OpenFile(filepath.Join(dir, "ledger.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	g := newGenerator(uint64(round), from)
	var text []byte
	for i := range n {
		text = g.row(text, from+round*n+i)
	}
	_, err = f.Write(text)
	return err
}
