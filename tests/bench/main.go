// Command bench times a warm `true` by `toolrun serve` against bubblewrap and against a bare exec, interleaved in one run
// in random order so that a noisy machine is noisy for all of them. `make bench` runs it from the top of the repository.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const catalog = `[catalog]
name = "bench"
[tools.true]
description = "Does nothing."
command = ["true"]
risk = "READ"
[tools.echo]
description = "Prints its argument."
command = ["echo", "{s}"]
risk = "READ"
[tools.echo.params.s]
type = "string"
required = true
[tools.cat]
description = "Prints a GiB."
command = ["cat", "gib"]
risk = "READ"
limits = { output_total = "2GiB" }
timeout = "10m"
[tools.shell]
description = "A shell."
command = ["sh"]
risk = "READ"
mode = "session"
pty = true
env = { PS1 = "" }
[tools.lines]
description = "Prints 100 MB at a terminal."
command = ["cat", "lines"]
risk = "READ"
pty = true
limits = { output = "200MiB" }
timeout = "10m"
`

func main() {
	rounds := flag.Int("n", 300, "rounds of each kind")
	starts := flag.Int("starts", 20, "starts of the server")
	only := flag.Bool("terminals", false, "only what concerns terminals")
	flag.Parse()
	if err := run(*rounds, *starts, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// contestant is one way to run a program.
type contestant struct {
	name string
	once func() error
}

func run(rounds, starts int, onlyTerminals bool) error {
	dir, err := os.MkdirTemp("", "toolrun-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Mkdir(filepath.Join(dir, "w"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "tools.toml"), []byte(catalog), 0o644); err != nil {
		return err
	}
	s, err := start(dir)
	if err != nil {
		return err
	}
	defer s.end()
	if onlyTerminals {
		return terminals(dir, s, rounds)
	}
	contestants := []contestant{
		{"bare exec of true", func() error { return exec.Command("true").Run() }},
		{"bwrap --unshare-all … true", func() error {
			return exec.Command("bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--", "true").Run()
		}},
		{"toolrun serve: true", func() error { return s.call("true", "{}") }},
		{"toolrun serve: echo, all different", func() error { return s.call("echo", fmt.Sprintf(`{"s":"unique %d"}`, s.id)) }},
	}
	for _, c := range contestants { // warm
		for range 5 {
			if err := c.once(); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	for _, pause := range []time.Duration{0, 4 * time.Millisecond} {
		if err := compare(contestants, rounds, pause); err != nil {
			return err
		}
	}
	if err := loads(s); err != nil {
		return err
	}
	if err := terminals(dir, s, rounds); err != nil {
		return err
	}
	fresh, err := start(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(idle(fresh), capture(dir, fresh), fresh.end()); err != nil {
		return err
	}
	var first []time.Duration
	for range starts {
		began := time.Now()
		s, err := start(dir)
		if err != nil {
			return err
		}
		first = append(first, time.Since(began))
		if err := s.end(); err != nil {
			return err
		}
	}
	fmt.Printf("\nstart to the first tools/list answer, %d starts: median %.1f ms, slowest %.1f ms\n", starts, ms(median(first)), ms(slices.Max(first)))
	return nil
}

// compare runs all contestants in random order, each as often as the others, and prints a table.
func compare(contestants []contestant, rounds int, pause time.Duration) error {
	order := make([]int, 0, rounds*len(contestants))
	for i := range contestants {
		order = append(order, slices.Repeat([]int{i}, rounds)...)
	}
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	times := make([][]time.Duration, len(contestants))
	for _, i := range order {
		if pause > 0 {
			<-time.After(pause)
		}
		began := time.Now()
		if err := contestants[i].once(); err != nil {
			return fmt.Errorf("%s: %w", contestants[i].name, err)
		}
		times[i] = append(times[i], time.Since(began))
	}
	how := "one after the other"
	if pause > 0 {
		how = fmt.Sprintf("%v apart", pause)
	}
	fmt.Printf("\n%d of each in random order, %s\n  %-36s %9s %9s %9s %9s\n", rounds, how, "", "median", "p90", "× bare", "× bwrap")
	bare, bwrap := median(times[0]), median(times[1])
	for i, c := range contestants {
		m := median(times[i])
		fmt.Printf("  %-36s %6.2f ms %6.2f ms %9.2f %9.2f\n", c.name, ms(m), ms(times[i][len(times[i])*9/10]), float64(m)/float64(bare), float64(m)/float64(bwrap))
	}
	return nil
}

// median sorts times and gives the middle one.
func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// server is a `toolrun serve` that has answered tools/list.
type server struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer // told when something fails
	id     int
}

func start(dir string) (*server, error) {
	cmd := exec.Command("bin/toolrun", "serve", "--catalog", filepath.Join(dir, "tools.toml"), "--workspace", filepath.Join(dir, "w"), "--data", filepath.Join(dir, "data"))
	s := &server{cmd: cmd}
	cmd.Stderr = &s.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s.in, s.out = in, bufio.NewReader(out)
	_, err = s.ask(`"tools/list"`, "{}")
	return s, err
}

// ask sends a request and reads its answer: with one client and one request at a time the next line is it.
func (s *server) ask(method, params string) (string, error) {
	s.id++
	if _, err := fmt.Fprintf(s.in, `{"jsonrpc":"2.0","id":%d,"method":%s,"params":%s}`+"\n", s.id, method, params); err != nil {
		return "", err
	}
	line, err := s.out.ReadString('\n')
	if err != nil {
		s.end()
		return "", fmt.Errorf("%w: %s", err, s.stderr.String())
	}
	if !strings.Contains(line, fmt.Sprintf(`"id":%d`, s.id)) {
		err = fmt.Errorf("not an answer to request %d: %s", s.id, line)
	}
	return line, err
}

func (s *server) call(tool, args string) error {
	line, err := s.ask(`"tools/call"`, fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args))
	if err == nil && !strings.Contains(line, `"status":"success"`) {
		err = fmt.Errorf("call failed: %s", line)
	}
	return err
}

func (s *server) end() error {
	s.in.Close()
	return s.cmd.Wait()
}
