package tests

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal opens a pseudo-terminal: what a person's shell would give toolrun.
func terminal(t *testing.T) (tty *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close(); master.Close() })
	return tty
}

func TestToolsHaveNoControllingTerminal(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool+"[tools.interactive]\ndescription = \"A test.\"\ncommand = [\"bash\", \"-ic\", \"true\"]\nrisk = \"READ\"\n")
	cmd := p.command("serve")
	cmd.ExtraFiles = []*os.File{terminal(t)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	s := p.start(cmd)
	f := s.facts(s.begin("sh", sh("read x </dev/tty; echo rc=$?")), 5*time.Second)
	if f.Stdout != "rc=1\n" && f.Stdout != "rc=2\n" || f.Stderr == "" {
		t.Errorf("stdout %q, stderr %q", f.Stdout, f.Stderr)
	}
	s.facts(s.begin("interactive", nil), 10*time.Second)
	status, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	if _, after, _ := strings.Cut(string(status), ") "); strings.HasPrefix(after, "T") {
		t.Error("toolrun is stopped")
	}
}
