package tests

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// screen is a pseudo-terminal with somebody who types and reads.
type screen struct {
	t      *testing.T
	keys   *os.File // the master
	tty    *os.File
	mu     sync.Mutex
	text   bytes.Buffer
	marked int // what came before was expected already
}

func newScreen(t *testing.T) *screen {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keys.Close() })
	if err := unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, keys: keys, tty: tty}
	t.Cleanup(func() { tty.Close() })
	go func() {
		r := bufio.NewReader(keys)
		for {
			c, err := r.ReadByte()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.text.WriteByte(c)
			s.mu.Unlock()
		}
	}()
	return s
}

// start runs cmd as the leader of a session of its own whose terminal this is.
func (s *screen) start(cmd *exec.Cmd) (ended <-chan error) {
	s.t.Helper()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.tty, s.tty, s.tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	s.t.Cleanup(func() { cmd.Process.Kill() })
	return done
}

func (s *screen) typed(keys string) {
	s.t.Helper()
	if _, err := s.keys.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// shows waits until text comes after what was expected before.
func (s *screen) shows(text string) {
	s.t.Helper()
	ok := within(20*time.Second, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		i := bytes.Index(s.text.Bytes()[s.marked:], []byte(text))
		if i < 0 {
			return false
		}
		s.marked += i + len(text)
		return true
	})
	if !ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.t.Fatalf("the terminal does not show %q after %q\n%s", text, s.text.Bytes()[max(s.marked-40, 0):s.marked], s.text.String())
	}
}

func (s *screen) count(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Count(s.text.Bytes(), []byte(text))
}

// asks is an agent that a person talks to; a signal is told, and ends nothing but for SIGTERM.
const asks = `
trap 'echo GOT-INT' INT
trap 'echo GOT-HUP' HUP
echo "READY"
while :; do
  if read line; then
    case $line in bye) exit 9;; *) echo "HEARD $line";; esac
  fi
done
`

func TestTheTerminalAndItsSignalsAreTheAgents(t *testing.T) {
	t.Parallel()
	p := launchPlace(t)
	p.agent("claude", asks)
	s := newScreen(t)
	cmd := exec.Command(toolrun, "launch", "claude")
	cmd.Dir, cmd.Env = p.work, append(p.env, "TOOLRUN_DATA="+p.data)
	ended := s.start(cmd)
	s.shows("READY")
	s.typed("hello\n")
	s.shows("HEARD hello")
	for range 3 {
		s.typed("\x03")
		s.shows("GOT-INT")
	}
	s.typed("again\n")
	s.shows("HEARD again")
	s.typed("\x1a") // nobody could continue it, since the launch leads the session: it must not stay stopped
	s.typed("awake\n")
	s.shows("HEARD awake")
	if err := syscall.Kill(cmd.Process.Pid, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.shows("GOT-HUP")
	s.typed("bye\n")
	s.shows("Claude Code ended with exit status 9")
	if <-ended; cmd.ProcessState.ExitCode() != 9 {
		t.Errorf("launch ended with %v", cmd.ProcessState)
	}
	if n := s.count("GOT-INT"); n != 3 {
		t.Errorf("three times ^C gave the agent %d signals", n)
	}
}

func TestAShellCanStopAndContinueALaunch(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		skipFor(t, "needs bash")
	}
	p := launchPlace(t)
	p.agent("claude", asks)
	s := newScreen(t)
	cmd := exec.Command(bash, "--norc", "--noediting", "-i")
	cmd.Dir, cmd.Env = p.work, append(p.env, "TOOLRUN_DATA="+p.data, "PS1=PROMPT> ", "HISTFILE=/dev/null")
	ended := s.start(cmd)
	s.shows("PROMPT> ")
	s.typed("toolrun launch claude\n")
	s.shows("READY")
	for range 2 {
		s.typed("\x1a")
		s.shows("Stopped")
		s.shows("PROMPT> ")
		s.typed("echo still-a-$((40+2))\n")
		s.shows("still-a-42")
		s.shows("PROMPT> ")
		s.typed("fg\n")
		s.shows("toolrun launch claude")
		s.typed("back\n")
		s.shows("HEARD back")
	}
	s.typed("bye\n")
	s.shows("Claude Code ended with exit status 9")
	s.shows("PROMPT> ")
	s.typed("exit $?\n")
	if <-ended; cmd.ProcessState.ExitCode() != 9 {
		t.Errorf("the shell saw %v", cmd.ProcessState)
	}
}

func TestASignalToTheLaunchReachesTheAgentOnce(t *testing.T) {
	t.Parallel()
	p := launchPlace(t)
	// Each signal is a line; sleep is waited for, so that the shell runs its traps at once.
	p.agent("claude", `
for s in INT HUP QUIT USR1; do trap "echo $s >> signals" $s; done
echo begun >> signals
while :; do sleep 0.05 & wait $!; done
`)
	cmd := exec.Command(toolrun, "launch", "claude")
	cmd.Dir, cmd.Env = p.work, append(p.env, "TOOLRUN_DATA="+p.data)
	var out lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	seen := func() string {
		text, _ := os.ReadFile(filepath.Join(p.work, "signals"))
		return string(text)
	}
	eventually(t, 20*time.Second, "the agent runs", func() bool { return seen() == "begun\n" })
	want := "begun\n"
	for name, send := range map[string]func(syscall.Signal) error{
		"the process": func(s syscall.Signal) error { return syscall.Kill(cmd.Process.Pid, s) },
		"its group":   func(s syscall.Signal) error { return syscall.Kill(-cmd.Process.Pid, s) },
	} {
		for _, s := range []struct {
			name   string
			signal syscall.Signal
		}{{"INT", unix.SIGINT}, {"HUP", unix.SIGHUP}, {"QUIT", unix.SIGQUIT}, {"USR1", unix.SIGUSR1}} {
			if err := send(s.signal); err != nil {
				t.Fatal(err)
			}
			want += s.name + "\n"
			eventually(t, 20*time.Second, fmt.Sprintf("%s to %s arrives", s.name, name), func() bool { return seen() == want })
		}
	}
	syscall.Kill(cmd.Process.Pid, syscall.SIGTERM)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 128+15 || seen() != want {
		t.Errorf("status %d, signals %q\n%s", code, seen(), out.String())
	}
	if !strings.Contains(out.String(), "Claude Code was ended by SIGTERM after") {
		t.Errorf("%s", out.String())
	}
}
