package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// slice is how long each contestant of a load has its turn; they take turns rounds times.
const (
	slice  = 1500 * time.Millisecond
	rounds = 5
)

// loads compares how many calls a second are done when the next call comes as soon as there is room for it, clearing away
// included.
func loads(s *server) error {
	one := []load{
		{"bare exec, 1 caller", func(end time.Time) (n int, err error) {
			for ; time.Now().Before(end); n++ {
				if err := exec.Command("true").Run(); err != nil {
					return n, err
				}
			}
			return n, nil
		}},
		{"toolrun serve, 1 caller", func(end time.Time) (int, error) { return s.window(1, end) }},
	}
	if err := turns("calls a second, closed loop", one); err != nil {
		return err
	}
	return turns("calls a second, 8 at a time", []load{
		{"xargs -P8 bwrap --unshare-all …", func(end time.Time) (int, error) { return xargs(end) }},
		{"toolrun serve, 8 callers", func(end time.Time) (int, error) { return s.window(8, end) }},
	})
}

type load struct {
	name string
	run  func(end time.Time) (calls int, err error)
}

func turns(title string, loads []load) error {
	rates := make([][]float64, len(loads))
	for range rounds {
		for i, l := range loads {
			began := time.Now()
			n, err := l.run(began.Add(slice))
			if err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
			rates[i] = append(rates[i], float64(n)/time.Since(began).Seconds())
		}
	}
	fmt.Printf("\n%s, median of %d turns of %v\n", title, rounds, slice)
	for i, l := range loads {
		slices.Sort(rates[i])
		slices.Sort(rates[0])
		fmt.Printf("  %-36s %7.0f %9.2f × the first\n", l.name, rates[i][rounds/2], rates[i][rounds/2]/rates[0][rounds/2])
	}
	return nil
}

// window keeps n calls under way until end, and waits for the last ones.
func (s *server) window(n int, end time.Time) (done int, err error) {
	send := func() error {
		s.id++
		_, err := fmt.Fprintf(s.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"true","arguments":{}}}`+"\n", s.id)
		return err
	}
	for range n {
		if err := send(); err != nil {
			return done, err
		}
	}
	for under := n; under > 0; {
		line, err := s.out.ReadString('\n')
		if err != nil {
			return done, err
		}
		if !strings.Contains(line, `"status":"success"`) {
			return done, fmt.Errorf("call failed: %s", line)
		}
		done++
		if time.Now().After(end) {
			under--
		} else if err := send(); err != nil {
			return done, err
		}
	}
	return done, nil
}

// xargs runs batches of bwrap, eight at a time.
func xargs(end time.Time) (n int, err error) {
	const batch = 40
	for time.Now().Before(end) {
		c := exec.Command("xargs", "-P8", "-I{}", "bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--", "true")
		c.Stdin = strings.NewReader(strings.Repeat("x\n", batch))
		if err := c.Run(); err != nil {
			return n, err
		}
		n += batch
	}
	return n, nil
}

// capture times one GiB of output, redacted, hashed and capped as the tool's default says, against a plain hash of it.
func capture(dir string, s *server) error {
	file := filepath.Join(dir, "w", "gib")
	line := bytes.Repeat([]byte("2026-11-30T18:05:12.123Z INFO build: compiled package 1234 of 5678 in 0.123s, 0 warnings\n"), 12000)
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	for size := 0; size < 1<<30; size += len(line) {
		if _, err := f.Write(line); err != nil {
			return err
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	defer os.Remove(file)
	var ours, plain []time.Duration
	for range 3 {
		began := time.Now()
		if err := exec.Command("sh", "-c", "cat '"+file+"' | sha256sum").Run(); err != nil {
			return err
		}
		plain = append(plain, time.Since(began))
		began = time.Now()
		if err := s.call("cat", "{}"); err != nil {
			return err
		}
		ours = append(ours, time.Since(began))
	}
	status, err := memory(s.cmd.Process.Pid, "VmHWM:")
	if err != nil {
		return err
	}
	fmt.Printf("\n1 GiB of output: cat | sha256sum %.2f s, toolrun %.2f s, rate %.2f of it; the server's memory at most %s\n",
		median(plain).Seconds(), median(ours).Seconds(), float64(median(plain))/float64(median(ours)), status)
	return nil
}

// idle tells the memory of a server that has just started.
func idle(s *server) error {
	status, err := memory(s.cmd.Process.Pid, "VmRSS:")
	if err == nil {
		fmt.Printf("\nmemory of an idle server: %s\n", status)
	}
	return err
}

func memory(pid int, key string) (string, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return "", err
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if rest, ok := strings.CutPrefix(sc.Text(), key); ok {
			return strings.TrimSpace(rest), nil
		}
	}
	return "", fmt.Errorf("/proc/%d/status has no %s", pid, key)
}
