package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// testLimits are the defaults of a tool.
var testLimits = Limits{MemoryBytes: 1 << 30, Pids: 256, CPUs: 2, CPUTime: 10 * time.Minute, Files: 1024, FileSizeBytes: 1 << 30, OutputTotalBytes: 1 << 30}

// lacks skips a test where the host lacks what it is about; with TOOLRUN_REQUIRE_SANDBOX=1 it fails instead.
func lacks(t testing.TB, why ...any) {
	t.Helper()
	if os.Getenv("TOOLRUN_REQUIRE_SANDBOX") == "1" {
		t.Fatal(why...)
	}
	t.Skip(why...)
}

// testHost opens a host, or skips the test where there is none; with TOOLRUN_REQUIRE_SANDBOX=1 it fails instead.
func testHost(t testing.TB) *Host {
	t.Helper()
	h, err := Open(Config{})
	if err != nil {
		lacks(t, err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// needs skips a test where the host lacks limits that it is about; with TOOLRUN_REQUIRE_SANDBOX=1 it fails instead.
func needs(t testing.TB, h *Host, limits ...string) {
	t.Helper()
	for _, l := range limits {
		if why := h.missing[l]; why != "" {
			lacks(t, l, ": ", why)
		}
	}
}

func testBox(t testing.TB, change func(*Profile)) (*Box, string) {
	t.Helper()
	h := testHost(t)
	work := t.TempDir()
	p := Profile{Name: "test", Mounts: []Mount{{work, work, true}}, Limits: testLimits, UID: os.Getuid(), GID: os.Getgid(), BestEffort: os.Getenv("TOOLRUN_REQUIRE_SANDBOX") != "1"}
	if change != nil {
		change(&p)
	}
	b, err := h.Box(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b, work
}

// sh runs a script in the box.
func sh(t testing.TB, b *Box, dir, script string) (Result, string, string) {
	t.Helper()
	var out, errs bytes.Buffer
	r := b.Run(t.Context(), Command{Argv: []string{"sh", "-c", script}, Exe: "/bin/sh", Env: []string{"PATH=/usr/bin:/bin", "HOME=" + HomeDir}, Dir: dir, Stdout: &out, Stderr: &errs, Timeout: 20 * time.Second})
	return r, out.String(), errs.String()
}

func TestACommandRunsAndItsEndIsReported(t *testing.T) {
	b, work := testBox(t, nil)
	for _, c := range []struct {
		script, out string
		outcome     Outcome
		code        int
		signal      unix.Signal
	}{
		{"echo hi", "hi\n", Exited, 0, 0},
		{"exit 7", "", Exited, 7, 0},
		{"exit 255", "", Exited, 255, 0},
		{"printf before; kill -9 $$", "before", Signaled, 0, unix.SIGKILL},
		{"printf before; kill -TERM $$", "before", Signaled, 0, unix.SIGTERM},
		{"printf before; kill -SEGV $$", "before", Signaled, 0, unix.SIGSEGV},
		{"echo $$; id -u; pwd", "2\n" + fmt.Sprint(os.Getuid()) + "\n" + work + "\n", Exited, 0, 0},
	} {
		r, out, errs := sh(t, b, work, c.script)
		if r.Err != nil {
			t.Fatalf("%s: %v", c.script, r.Err)
		}
		if r.Outcome != c.outcome || r.ExitCode != c.code || r.Signal != c.signal || out != c.out {
			t.Errorf("%s: outcome %d, exit %d, signal %v, out %q, err %q", c.script, r.Outcome, r.ExitCode, r.Signal, out, errs)
		}
	}
}

func TestCancellationEndsTheTree(t *testing.T) {
	b, work := testBox(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	pr, pw, _ := os.Pipe()
	defer pr.Close()
	go func() {
		pr.Read(make([]byte, 1))
		cancel()
	}()
	r := b.Run(ctx, Command{Argv: []string{"sh", "-c", "echo up; sleep 61.7 | cat"}, Exe: "/bin/sh", Dir: work, Stdout: pw, Timeout: time.Minute})
	if r.Outcome != Cancelled || r.Duration > 5*time.Second {
		t.Errorf("outcome %d after %v: %v", r.Outcome, r.Duration, r.Err)
	}
}

func TestSelfReport(t *testing.T) {
	b, work := testBox(t, nil)
	_, out, errs := sh(t, b, work, "cat /proc/self/status /proc/self/mounts /proc/self/cgroup; ls -la / /dev /proc /etc; hostname; id")
	t.Log(out, errs)
	if strings.Contains(out, "toolrun-") {
		t.Error("a cgroup name shows")
	}
}

func BenchmarkTrue(b *testing.B) {
	box, work := testBox(b, nil)
	for b.Loop() {
		r := box.Run(b.Context(), Command{Argv: []string{"true"}, Exe: "/bin/true", Dir: work, Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}, Timeout: 20 * time.Second})
		if r.Outcome != Exited {
			b.Fatal(r)
		}
	}
}

func BenchmarkBareTrue(b *testing.B) {
	for b.Loop() {
		var out, errs bytes.Buffer
		c := exec.Command("/bin/true")
		c.Stdout, c.Stderr = &out, &errs
		if err := c.Run(); err != nil {
			b.Fatal(err)
		}
	}
}

func TestWithoutDescriptorsNothingIsClosedThatIsNotOurs(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	before := openFiles(t)
	for _, c := range []*Command{{Stdin: []byte("x")}, {Stderr: io.Discard}, {Stdin: []byte("x"), Stderr: io.Discard}} {
		failed := 0
		for room := range uint64(before + 32) { // each number of free descriptors below it is among these
			low := limit
			low.Cur = room
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
				t.Fatal(err)
			}
			var p pipes
			err := p.open(c, Terminal{})
			if err == nil {
				p.close()
			}
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
				t.Fatal(err)
			}
			if err != nil {
				failed++
			}
			if _, err := unix.FcntlInt(0, unix.F_GETFD, 0); err != nil {
				t.Fatalf("stdin is closed, with a limit of %d: %v", room, err)
			}
			n := openFiles(t)
			if n > before {
				t.Fatalf("%d descriptors, before %d, with a limit of %d", n, before, room)
			}
			before = n // boxes of other tests may still be cleared away
		}
		if failed < 3 {
			t.Errorf("failed %d times", failed)
		}
	}
}
