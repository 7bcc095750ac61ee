package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pause is a wait of a client, which is part of how it ends its server.
func pause(d time.Duration) { <-time.After(d) }

// ways are how the clients that were measured end their servers, each with what may become of a call that runs meanwhile.
// Signals to a server that is gone already go nowhere.
var ways = []struct {
	name     string
	end      func(*server)
	script   string // of the running call; %s is its marker
	outcomes []string
}{
	{"closes stdin and waits", func(s *server) { s.stdin.Close() }, "sleep 0.5; : %s", []string{"ok"}},
	{"closes stdin, SIGTERM to the group, SIGKILL after 25 ms", func(s *server) {
		s.stdin.Close()
		s.signalGroup(syscall.SIGTERM)
		pause(25 * time.Millisecond)
		s.signalGroup(syscall.SIGKILL)
	}, forever, []string{"interrupted"}},
	{"SIGINT, SIGTERM after 100 ms, SIGKILL 400 ms later", func(s *server) {
		s.signal(syscall.SIGINT)
		pause(100 * time.Millisecond)
		s.signal(syscall.SIGTERM)
		pause(400 * time.Millisecond)
		s.signal(syscall.SIGKILL)
	}, forever, []string{"interrupted"}},
	{"SIGTERM to each descendant, then closes stdin", func(s *server) {
		for _, pid := range descendants(s.cmd.Process.Pid) {
			syscall.Kill(pid, syscall.SIGTERM)
		}
		s.stdin.Close()
		s.ends(2 * time.Second)
		s.signal(syscall.SIGTERM)
		s.ends(2 * time.Second)
		s.signal(syscall.SIGKILL)
	}, forever, []string{"signal", "interrupted"}},
	{"goes away and ends nothing", func(s *server) {
		s.stdin.Close()
		s.stdout.Close()
	}, forever, []string{"interrupted"}},
}

// forever is a call with children: one in a session of its own, one that ignores signals.
const forever = "trap '' HUP; setsid sleep %[1]s & (trap '' TERM INT; sleep %[1]s) & sleep %[1]s"

func (s *server) signal(sig syscall.Signal) { s.cmd.Process.Signal(sig) }

func (s *server) signalGroup(sig syscall.Signal) {
	select {
	case <-s.ended:
	default:
		syscall.Kill(-s.cmd.Process.Pid, sig)
	}
}

// ends tells whether the server ended within the limit.
func (s *server) ends(limit time.Duration) bool {
	select {
	case <-s.ended:
		return true
	case <-time.After(limit):
		return false
	}
}

// descendants are the processes below one.
func descendants(root int) (found []int) {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')'):]), " ")
		fields := strings.Fields(after)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], pid)
	}
	for todo := children[root]; len(todo) > 0; todo = todo[1:] {
		found = append(found, todo[0])
		todo = append(todo, children[todo[0]]...)
	}
	return found
}

// The five ways of ending a server that real clients have; TOOLRUN_ENDINGS says how often each.
func TestEveryWayOfEndingAServerLeavesNoProcessAndAWholeRecord(t *testing.T) {
	t.Parallel()
	times := 5
	if v := os.Getenv("TOOLRUN_ENDINGS"); v != "" {
		var err error
		if times, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	for i, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, shTool)
			for n := range times {
				marker := fmt.Sprintf("71%d.%03d%03d", i, os.Getpid()%1000, n)
				s := p.serveInGroup()
				s.call("sh", sh("echo before"))
				s.begin("sh", sh(fmt.Sprintf(way.script, marker)))
				eventually(t, 20*time.Second, "the call runs", func() bool { return len(processes(marker)) > 0 })
				way.end(s)
				if !s.ends(10 * time.Second) {
					t.Fatalf("time %d: the server is still there\n%s", n, s.stderr)
				}
				var left []string
				if !within(2*time.Second, func() bool { left = processes(marker); return len(left) == 0 }) {
					t.Fatalf("time %d: processes are left: %v", n, left)
				}
			}
			p.recover()
			outcomes := map[string][]string{}
			for _, r := range p.rows() {
				outcomes[r.RunID] = append(outcomes[r.RunID], r.Outcome)
			}
			if len(outcomes) != times {
				t.Errorf("rows of %d runs, want %d", len(outcomes), times)
			}
			for run, got := range outcomes {
				if len(got) != 2 || got[0] != "ok" || !slices.Contains(way.outcomes, got[1]) {
					t.Errorf("run %s has %v, want ok and one of %v", run, got, way.outcomes)
				}
			}
			if got := p.query("verify"); got.code != 0 {
				t.Errorf("verify: exit %d\n%s%s", got.code, got.stdout, got.stderr)
			}
		})
	}
}

// serveInGroup is serve in a process group of its own, as some clients start it.
func (p *place) serveInGroup() *server {
	p.t.Helper()
	cmd := p.command("serve")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return p.start(cmd)
}
