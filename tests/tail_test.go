package tests

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tail starts toolrun tail in another process; what it prints comes out of the reader.
func (p *place) tail(args ...string) (out *os.File, ended func() ran) {
	p.t.Helper()
	cmd := p.command("tail")
	cmd.Args = append(append([]string{toolrun, "tail"}, args...), "--data", p.data)
	r, w := pipe(p.t)
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = w, &errs
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	w.Close()
	p.t.Cleanup(func() { cmd.Process.Kill(); r.Close() })
	return r, func() ran {
		rest, _ := io.ReadAll(r)
		cmd.Wait()
		return ran{string(rest), errs.String(), cmd.ProcessState.ExitCode()}
	}
}

func TestARunningCallIsFollowedFromAnotherTerminal(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool+ptyTool)
	s := p.serve()
	for tool, script := range map[string]string{"sh": "", "tty": ""} {
		script = `t=gh; t=${t}p_$(printf %036d 0 | tr 0 A); echo first $t; until [ -e go-on ]; do sleep 0.05; done; printf '\033[31mred\033[0m €\n'; echo err >&2; exit 3`
		id := s.begin(tool, sh(script))
		eventually(t, patience, "the call runs and has printed", func() bool {
			got := p.query("tail")
			return got.code == 0 && got.stdout == "first [REDACTED]\n" && strings.Contains(got.stderr, "still runs")
		})
		out, ended := p.tail("-f")
		raw, rawEnded := p.tail("-f", "--raw")
		for _, r := range []*os.File{out, raw} {
			if got := readUntil(r, "REDACTED]"); !strings.Contains(got, "first [REDACTED]") {
				t.Fatalf("%q", got)
			}
		}
		p.write("go-on", "", 0o644)
		f := s.facts(id, patience)
		if got := ended(); got.code != 0 || !strings.HasSuffix(got.stdout, `\x1b[31mred\x1b[0m €`+"\nerr\n") || !strings.Contains(got.stderr, "exit status 3") {
			t.Errorf("%s: status %d, %q, %s", tool, got.code, got.stdout, got.stderr)
		}
		if got := rawEnded(); got.code != 0 || !strings.Contains(got.stdout, "\x1b[31mred\x1b[0m €") {
			t.Errorf("%s: status %d, %q, %s", tool, got.code, got.stdout, got.stderr)
		}
		if got := p.query("tail", f.ToolCallID); got.code != 0 || !strings.HasPrefix(got.stdout, "first [REDACTED]\n") || !strings.Contains(got.stderr, "exit status 3") {
			t.Errorf("%s, when it has ended: status %d, %q, %s", tool, got.code, got.stdout, got.stderr)
		}
		os.Remove(filepath.Join(p.work, "go-on"))
	}
	if got := p.query("tail"); got.code != 0 || got.stdout != "no call runs\n" {
		t.Errorf("status %d, %q", got.code, got.stdout)
	}
	atTerminal := p.command("tail", "--raw")
	atTerminal.Stdout = terminal(t)
	if err := atTerminal.Run(); atTerminal.ProcessState.ExitCode() != 2 {
		t.Errorf("raw bytes on a terminal: %v", err)
	}
	if got := p.query("tail", "never-was"); got.code != 1 || !strings.Contains(got.stderr, "never-was") {
		t.Errorf("status %d, %q", got.code, got.stderr)
	}
	nowhere(t, p, s, token)
	if left, _ := os.ReadDir(filepath.Join(p.data, "watch")); len(left) != 0 {
		t.Errorf("left of the watching: %v", left)
	}
}

func TestASessionIsFollowedByItsHandle(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shellTool("shell"))
	s := p.serve()
	h := s.open("shell", nil)
	out, ended := p.tail("-f", h)
	s.stay("shell_send", object{"handle": h, "input": "echo seen"})
	if got := readUntil(out, "seen\n"); got != "seen\n" {
		t.Fatalf("%q", got)
	}
	if f, _ := s.stay("shell_read", object{"handle": h, "pattern": "seen"}); f.Stdout != "seen\n" {
		t.Errorf("who watches takes nothing away: %q", f.Stdout)
	}
	s.kill()
	if got := ended(); got.code != 0 {
		t.Errorf("status %d after the server was killed: %s", got.code, got.stderr)
	}
	p.recover()
	if left, _ := os.ReadDir(filepath.Join(p.data, "watch")); len(left) != 0 {
		t.Errorf("left of the watching: %v", left)
	}
}

func TestAWatcherThatDoesNotReadHoldsNothingUp(t *testing.T) {
	t.Parallel()
	p := newPlace(t, fixed("flood", "until [ -e go-on ]; do sleep 0.05; done; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last"))
	s := p.serve()
	id := s.begin("flood", nil)
	eventually(t, patience, "the call runs", func() bool { return strings.Contains(p.query("tail").stderr, "flood") })
	out, ended := p.tail("-f")
	p.write("go-on", "", 0o644)
	f := s.facts(id, patience)
	expect(t, f, 0)
	_ = out // only now is it read
	if got := ended(); got.code != 0 || !strings.Contains(got.stdout, " bytes left out]\n") || !strings.HasSuffix(got.stdout, "last\n") {
		t.Errorf("status %d, %d bytes, %s", got.code, len(got.stdout), got.stderr)
	}
}
