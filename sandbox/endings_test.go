package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"toolrun/sandbox/cgroup"
)

// processes counts those on the host whose command line holds a marker.
func processes(t testing.TB, marker string) int {
	t.Helper()
	n := 0
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, _ := os.ReadFile(f)
		if strings.Contains(string(bytes.ReplaceAll(b, []byte{0}, []byte{' '})), marker) {
			n++
		}
	}
	return n
}

func run(t testing.TB, b *Box, timeout time.Duration, argv ...string) (Result, string) {
	t.Helper()
	var out bytes.Buffer
	exe, err := lookPath(argv[0], []string{"/usr/bin", "/bin"})
	if err != nil {
		t.Fatal(err)
	}
	r := b.Run(t.Context(), Command{Argv: argv, Exe: exe, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", Stdout: &out, Timeout: timeout})
	return r, out.String()
}

// needsBash skips a test where there is no bash. The emulated machines have none, and their tests are short.
func needsBash(t testing.TB) {
	t.Helper()
	if _, err := lookPath("bash", []string{"/usr/bin", "/bin"}); err != nil && testing.Short() {
		t.Skip(err)
	} else if err != nil {
		lacks(t, err)
	}
}

func TestATimeoutEndsEveryShapeOfShellCommand(t *testing.T) {
	b, _ := testBox(t, nil)
	var wg sync.WaitGroup
	for _, shell := range []string{"sh", "dash", "bash"} {
		if _, err := lookPath(shell, []string{"/usr/bin", "/bin"}); err != nil {
			continue
		}
		for _, script := range []string{"sleep 62.1", "sleep 62.1; true", "sleep 62.1 & wait", "(sleep 62.1)", "echo up; sleep 62.1 | cat", "setsid sleep 62.1 & wait", "trap '' TERM INT HUP; sleep 62.1; sleep 62.1"} {
			wg.Go(func() {
				r, _ := run(t, b, 500*time.Millisecond, shell, "-c", script)
				if r.Outcome != TimedOut || r.Duration < 500*time.Millisecond || r.Duration > 2500*time.Millisecond || r.HasExit {
					t.Errorf("%s -c %q: outcome %d after %v (%v)", shell, script, r.Outcome, r.Duration, r.Err)
				}
			})
		}
	}
	wg.Wait()
	if n := processes(t, "sleep 62.1"); n != 0 {
		t.Errorf("%d sleepers live on", n)
	}
}

func TestABackgroundHelperDoesNotHoldTheCall(t *testing.T) {
	b, _ := testBox(t, nil)
	start := time.Now()
	r, out := run(t, b, 10*time.Second, "sh", "-c", "echo started; sleep 62.3 & exit 0")
	if r.Outcome != Exited || r.ExitCode != 0 || out != "started\n" || time.Since(start) > 2*time.Second {
		t.Errorf("outcome %d, exit %d, out %q after %v", r.Outcome, r.ExitCode, out, time.Since(start))
	}
	if n := processes(t, "sleep 62.3"); n != 0 {
		t.Error("the helper lives on after the answer")
	}
}

func TestAHelperThatStillWritesIsHeard(t *testing.T) {
	needsBash(t)
	b, _ := testBox(t, nil)
	for range 20 {
		r, out := run(t, b, 5*time.Second, "bash", "-c", "exec > >(cat) 2>&1; echo hi")
		if r.Outcome != Exited || r.ExitCode != 0 || out != "hi\n" {
			t.Fatalf("outcome %d, exit %d, out %q", r.Outcome, r.ExitCode, out)
		}
	}
}

func TestNoByteIsLostAtTheEnd(t *testing.T) {
	b, _ := testBox(t, nil)
	var wg sync.WaitGroup
	rounds := 5
	if testing.Short() {
		rounds = 1
	}
	for range 4 {
		wg.Go(func() {
			for range rounds {
				r, out := run(t, b, 20*time.Second, "seq", "1", "100000")
				if r.Outcome != Exited || len(out) != 588895 {
					t.Errorf("outcome %d, %d bytes", r.Outcome, len(out))
				}
			}
		})
	}
	wg.Wait()
}

// hog holds 100 MB in one buffer.
const hog = `dd if=/dev/zero of=/dev/null bs=100M count=1`

func TestMemoryLimit(t *testing.T) {
	b, _ := testBox(t, func(p *Profile) { p.Limits.MemoryBytes = 32 << 20 })
	needs(t, b.host, cgroup.Memory)
	r, _ := run(t, b, 20*time.Second, "sh", "-c", "exec "+hog)
	if r.Outcome != OutOfMemory || r.OOMKills < 1 || r.Signal != unix.SIGKILL || r.HasExit {
		t.Errorf("the main process: outcome %d, %d kills, signal %v", r.Outcome, r.OOMKills, r.Signal)
	}
	if r.MemoryPeakBytes < 30<<20 || r.MemoryPeakBytes > 33<<20 {
		t.Errorf("peak %d", r.MemoryPeakBytes)
	}
	r, out := run(t, b, 20*time.Second, "sh", "-c", "("+hog+"); echo rc=$?; exit 0")
	if r.Outcome != Exited || r.ExitCode != 0 || r.OOMKills < 1 || !strings.Contains(out, "rc=") {
		t.Errorf("a child: outcome %d, exit %d, %d kills, out %q", r.Outcome, r.ExitCode, r.OOMKills, out)
	}
	for script, want := range map[string]Outcome{"kill -9 $$": Signaled, "exit 137": Exited} {
		if r, _ := run(t, b, 20*time.Second, "sh", "-c", script); r.Outcome != want || r.OOMKills != 0 {
			t.Errorf("%s: outcome %d, %d kills", script, r.Outcome, r.OOMKills)
		}
	}
}

func TestAnOOMKillInOneCallLeavesTheServerAlone(t *testing.T) {
	b, _ := testBox(t, func(p *Profile) { p.Limits.MemoryBytes = 4 << 20 })
	needs(t, b.host, cgroup.Memory)
	for range 10 {
		r, _ := run(t, b, 20*time.Second, "sh", "-c", "exec "+hog)
		if r.Outcome != OutOfMemory && r.Outcome != SpawnFailed {
			t.Errorf("outcome %d (%v)", r.Outcome, r.Err)
		}
	}
}

func TestPidsLimitAndForkBomb(t *testing.T) {
	b, _ := testBox(t, func(p *Profile) { p.Limits.Pids = 16 })
	needs(t, b.host, cgroup.Pids)
	done := make(chan Result, 1)
	limit := 3 * time.Second // enough to meet the limit on a busy machine
	go func() {
		r, _ := run(t, b, limit, "sh", "-c", "while :; do (sleep 64.2 &) ; done")
		done <- r
	}()
	start := time.Now()
	if r, _ := run(t, b, 10*time.Second, "true"); r.Outcome != Exited || time.Since(start) > 2*limit || r.PidsRefused != 0 {
		t.Errorf("a call beside the bomb: outcome %d after %v", r.Outcome, time.Since(start))
	}
	r := <-done
	if r.Outcome != TimedOut && r.Outcome != Exited || r.PidsRefused == 0 {
		t.Errorf("the bomb: outcome %d, %d forks refused", r.Outcome, r.PidsRefused)
	}
	if n := processes(t, "sleep 64.2"); n != 0 {
		t.Errorf("%d processes of the bomb live on", n)
	}
}

func TestCPUTimeIsOfTheWholeTreeAndNotOfTheClock(t *testing.T) {
	b, _ := testBox(t, func(p *Profile) { p.Limits.CPUTime = 500 * time.Millisecond; p.Limits.CPUs = 2 })
	needs(t, b.host, cgroup.CPUTime)
	for script, want := range map[string]Outcome{
		"while :; do :; done": CPULimit,
		"for i in 1 2 3 4; do (while :; do :; done) & done; wait": CPULimit,
		"sleep 1": Exited,
	} {
		r, _ := run(t, b, 20*time.Second, "sh", "-c", script)
		if r.Outcome != want || r.HasExit != (want == Exited) {
			t.Errorf("%s: outcome %d after %v of CPU", script, r.Outcome, r.CPU)
		}
		if want == CPULimit && (r.CPU < 500*time.Millisecond || r.CPU > 1500*time.Millisecond) {
			t.Errorf("%s: ended after %v of CPU", script, r.CPU)
		}
		if want == Exited && r.CPU > 200*time.Millisecond {
			t.Errorf("%s: charged %v of CPU", script, r.CPU)
		}
	}
}

func TestOutputTotal(t *testing.T) {
	b, _ := testBox(t, func(p *Profile) { p.Limits.OutputTotalBytes = 1 << 20 })
	start := time.Now()
	r, _ := run(t, b, 20*time.Second, "yes")
	if r.Outcome != OutputLimit || time.Since(start) > 5*time.Second {
		t.Errorf("outcome %d after %v", r.Outcome, time.Since(start))
	}
}

type failingWriter struct{}

func (failingWriter) Write(b []byte) (int, error) { return 0, fmt.Errorf("disk full") }

func TestAWriterThatFailsEndsTheCall(t *testing.T) {
	b, _ := testBox(t, nil)
	r := b.Run(t.Context(), Command{Argv: []string{"sh", "-c", "echo x; sleep 60"}, Exe: "/bin/sh", Dir: "/", Stdout: failingWriter{}, Timeout: 20 * time.Second})
	if r.Outcome != CaptureFailed || r.Err == nil || r.Duration > 5*time.Second {
		t.Errorf("outcome %d, %v, after %v", r.Outcome, r.Err, r.Duration)
	}
}

func TestWhatCannotBeExecutedIsNamed(t *testing.T) {
	b, work := testBox(t, nil)
	for name, mode := range map[string]os.FileMode{"plain": 0o644, "noshebang": 0o755} {
		if err := os.WriteFile(filepath.Join(work, name), []byte("#!/no/such/interpreter\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for exe, want := range map[string]error{
		"/no/such": unix.ENOENT, work: unix.EACCES, filepath.Join(work, "plain"): unix.EACCES, filepath.Join(work, "noshebang"): unix.ENOENT,
	} {
		r := b.Run(t.Context(), Command{Argv: []string{"x"}, Exe: exe, Dir: "/", Timeout: time.Second})
		if r.Outcome != SpawnFailed || r.HasExit || r.Err == nil || !strings.Contains(r.Err.Error(), exe) || !strings.Contains(r.Err.Error(), want.Error()) {
			t.Errorf("%s: outcome %d, %v", exe, r.Outcome, r.Err)
		}
	}
	r := b.Run(t.Context(), Command{Argv: []string{"true"}, Exe: "/bin/true", Dir: "/no/dir", Timeout: time.Second})
	if r.Outcome != SpawnFailed || !strings.Contains(r.Err.Error(), "/no/dir") {
		t.Errorf("no directory: outcome %d, %v", r.Outcome, r.Err)
	}
	if r, _ := run(t, b, time.Second, "true"); r.Outcome != Exited {
		t.Errorf("afterwards: outcome %d, %v", r.Outcome, r.Err)
	}
}

func TestInput(t *testing.T) {
	b, _ := testBox(t, nil)
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for _, c := range []struct {
		script, want string
		stdin        []byte
	}{
		{"cat", "", nil},
		{"wc -c", "1048576\n", big},
		{"wc -c", "0\n", []byte{}},
		{"true", "", big},
		{"head -c 3; exec <&-; sleep 0.3", "012", big},
		{`od -An -c | tr -d ' '`, "a\\0b\n", []byte("a\x00b")},
	} {
		var out bytes.Buffer
		start := time.Now()
		r := b.Run(t.Context(), Command{Argv: []string{"sh", "-c", c.script}, Exe: "/bin/sh", Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", Stdin: c.stdin, Stdout: &out, Timeout: 20 * time.Second})
		if r.Outcome != Exited || r.ExitCode != 0 || out.String() != c.want || time.Since(start) > 3*time.Second {
			t.Errorf("%s: outcome %d, exit %d, out %q after %v", c.script, r.Outcome, r.ExitCode, out.String(), time.Since(start))
		}
	}
}

func TestConcurrentCallsDoNotMix(t *testing.T) {
	b, _ := testBox(t, nil)
	rounds := 10
	if testing.Short() {
		rounds = 2
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range rounds {
				want := fmt.Sprintf("%d-%d", i, k)
				r, out := run(t, b, 20*time.Second, "sh", "-c", "echo "+want+" >/tmp/x; test -z \"$(ls -A /box/home)\" && touch /box/home/y; cat /tmp/x; ls /tmp | wc -l")
				if r.Outcome != Exited || !strings.HasPrefix(out, want+"\n") {
					t.Errorf("outcome %d %v, out %q", r.Outcome, r.Err, out)
				}
			}
		})
	}
	wg.Wait()
}

func TestAProcessThatTheKernelCannotKillIsNamedAndClearedAwayWhenItEnds(t *testing.T) {
	if _, err := os.Stat("/sys/fs/cgroup/freezer"); err != nil {
		t.Skip("a host with cgroup v2 only") // v1's freezer is what makes such a process
	}
	freezer := filepath.Join("/sys/fs/cgroup/freezer", fmt.Sprintf("toolrun-test-%d", os.Getpid()))
	if err := os.Mkdir(freezer, 0o755); err != nil {
		lacks(t, "no freezer of cgroup v1: ", err)
	}
	if _, err := os.Stat(filepath.Join(freezer, "freezer.state")); err != nil {
		os.Remove(freezer)
		lacks(t, "no freezer of cgroup v1: ", err)
	}
	defer os.Remove(freezer)
	state := func(s string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(freezer, "freezer.state"), []byte(s), 0); err != nil {
			t.Error(err)
		}
	}
	b, _ := testBox(t, nil)
	run(t, b, 5*time.Second, "true")
	before := openFiles(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan Result)
	go func() {
		ended <- b.Run(ctx, Command{Argv: []string{"sleep", "64.75"}, Exe: "/bin/sleep", Dir: "/", Stdout: io.Discard, Timeout: time.Minute})
	}()
	var frozen string
	for frozen == "" {
		select {
		case r := <-ended:
			t.Fatalf("it ended before it was found: %d, %v", r.Outcome, r.Err)
		default:
		}
		files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, f := range files {
			if c, _ := os.ReadFile(f); string(c) == "sleep\x0064.75\x00" {
				frozen = filepath.Base(filepath.Dir(f))
			}
		}
	}
	if err := os.WriteFile(filepath.Join(freezer, "tasks"), []byte(frozen), 0); err != nil {
		t.Fatal(err)
	}
	for now := ""; now != "FROZEN\n"; { // else it reads FREEZING
		state("FROZEN")
		b, _ := os.ReadFile(filepath.Join(freezer, "freezer.state"))
		now = string(b)
	}
	cancel()
	r := <-ended
	if r.Outcome != Cancelled || fmt.Sprint(r.Leftover) != "["+frozen+"]" {
		t.Errorf("outcome %d, left over %v, want [%s]", r.Outcome, r.Leftover, frozen)
	}
	state("THAWED")
	gone := make(chan struct{})
	go func() { b.host.lingering.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-time.After(30 * time.Second):
		t.Fatal("it is not cleared away")
	}
	if n := processes(t, "sleep 64.75"); n > 0 {
		t.Error("it lives on")
	}
	b.host.janitor.settle()
	b.expire()
	if n := openFiles(t); n > before {
		t.Errorf("%d descriptors, before %d", n, before)
	}
}
