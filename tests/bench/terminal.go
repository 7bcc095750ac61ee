package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/creack/pty"
)

// What must hold of terminals.
const (
	mostTrip  = 2 * time.Millisecond // what a send and a read may take beyond the bare terminal
	leastRate = 0.5                  // of the rate of script -qc
)

// terminals compares a shell session with a bare terminal, and a large output through a terminal with script(1).
func terminals(dir string, s *server, rounds int) error {
	return errors.Join(trips(s, rounds), through(dir, s))
}

// trips asks the same of a shell at a bare terminal and of one in a session, by turns.
func trips(s *server, rounds int) error {
	line, err := s.ask(`"tools/call"`, `{"name":"shell_start"}`)
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(line, `"process":{"handle":"`)
	handle, _, ok := strings.Cut(rest, `"`)
	if !ok {
		return fmt.Errorf("no handle: %s", line)
	}
	cmd := exec.Command("sh")
	cmd.Env = []string{"PS1=", "PATH=/usr/bin:/bin"}
	bare, err := pty.Start(cmd)
	if err != nil {
		return err
	}
	defer func() { bare.Close(); cmd.Process.Kill(); cmd.Wait() }()
	buf := make([]byte, 64<<10)
	var times [2][]time.Duration
	for i := range rounds {
		began := time.Now()
		if _, err := fmt.Fprintf(bare, "echo a$((%d+1))z\n", i); err != nil {
			return err
		}
		want := fmt.Appendf(nil, "a%dz", i+1)
		for n := 0; !bytes.Contains(buf[:n], want); {
			k, err := bare.Read(buf[n:])
			if err != nil {
				return err
			}
			n += k
		}
		times[0] = append(times[0], time.Since(began))
		began = time.Now()
		if err := s.call("shell_send", fmt.Sprintf(`{"handle":%q,"input":"echo a$((%d+1))z"}`, handle, i)); err != nil {
			return err
		}
		line, err := s.ask(`"tools/call"`, fmt.Sprintf(`{"name":"shell_read","arguments":{"handle":%q,"pattern":"a%dz"}}`, handle, i+1))
		if err == nil && !strings.Contains(line, `"waited_for":"pattern"`) {
			err = fmt.Errorf("not read: %s", line)
		}
		if err != nil {
			return err
		}
		times[1] = append(times[1], time.Since(began))
	}
	if err := s.call("shell_stop", fmt.Sprintf(`{"handle":%q}`, handle)); err != nil {
		return err
	}
	direct, session := median(times[0]), median(times[1])
	fmt.Printf("\na line typed into a shell and its answer read, %d times: bare terminal %.2f ms, shell_send and shell_read %.2f ms\n", rounds, ms(direct), ms(session))
	if session-direct > mostTrip {
		return fmt.Errorf("a send and a read take %v more than the bare terminal, the most is %v", session-direct, mostTrip)
	}
	return nil
}

// through prints 100 MB at a terminal: nothing may be lost.
func through(dir string, s *server) error {
	const lines, turns = 1_000_000, 3
	row := strings.Repeat("x", 99) + "\n"
	if err := os.WriteFile(filepath.Join(dir, "w", "lines"), []byte(strings.Repeat(row, lines)), 0o644); err != nil {
		return err
	}
	var times [2][]time.Duration
	for range turns {
		began := time.Now()
		if err := exec.Command("script", "-qc", "cat "+filepath.Join(dir, "w", "lines"), "/dev/null").Run(); err != nil {
			return fmt.Errorf("script: %w", err)
		}
		times[0] = append(times[0], time.Since(began))
		began = time.Now()
		line, err := s.ask(`"tools/call"`, `{"name":"lines"}`)
		if err == nil && !strings.Contains(line, fmt.Sprintf(`"stdout_bytes":%d,`, lines*(len(row)+1))) {
			err = fmt.Errorf("not all of it came: %.300s", line)
		}
		if err != nil {
			return err
		}
		times[1] = append(times[1], time.Since(began))
	}
	script, ours := median(times[0]), median(times[1])
	fmt.Printf("100 MB through a terminal: script -qc %.0f ms, toolrun %.0f ms, stored and redacted: %.2f of its rate\n", ms(script), ms(ours), float64(script)/float64(ours))
	if rate := float64(script) / float64(ours); rate < leastRate {
		return fmt.Errorf("%.2f of the rate of script, the least is %.2f", rate, leastRate)
	}
	return nil
}
