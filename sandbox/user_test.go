package sandbox

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// copyOfSelf puts the test binary where every user may execute it; `go test` keeps it in a directory of its own user's.
func copyOfSelf(t testing.TB, dir string, mode os.FileMode) string {
	t.Helper()
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(dir, "test")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(to, from)
	for _, e := range []error{err, to.Close(), os.Chmod(path, mode)} {
		if e != nil {
			t.Fatal(e)
		}
	}
	return path
}

// openDir is a temporary directory that every user may enter, and its owner alone may write.
func openDir(t testing.TB, uid int) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "box-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, err := range []error{os.Chown(dir, uid, uid), os.Chmod(dir, 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The walls of an ordinary user's boxes are built in another way, one user namespace deeper: the same tests hold them.
func TestTheWallsStandForAnOrdinaryUserToo(t *testing.T) {
	if os.Geteuid() != 0 { // who runs all the tests as himself
		t.Skip("this is an ordinary user")
	}
	if testing.Short() {
		t.Skip("in the emulated machines an ordinary user runs all tests")
	}
	self, temp, home := copyOfSelf(t, openDir(t, 0), 0o755), openDir(t, 1000), openDir(t, 1000)
	if err := os.WriteFile(filepath.Join(home, "private"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []string{"TestEveryAttackIsRefused", "TestPtraceIsAllowed.*", "TestTheViewShows.*", "TestASwappedPath.*", "TestTwoCalls.*",
		"TestSelfReportOfABox", "TestPrivateFiles.*", "TestAKilledServer.*", "TestATimeoutEnds.*", "TestABackgroundHelper.*", "TestACommandRuns.*", "TestTheNetworkIs.*"}
	c := exec.Command(self, "-test.v", "-test.run", "^("+strings.Join(tests, "|")+")$", "-test.timeout", "5m")
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); name != "TOOLRUN_REQUIRE_SANDBOX" && name != "HOME" && name != "TMPDIR" {
			c.Env = append(c.Env, v) // limits by cgroups are not an ordinary user's everywhere, and no part of these tests
		}
	}
	c.Env = append(c.Env, "HOME="+home, "TMPDIR="+temp)
	c.Dir = temp
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, test := range tests {
		if name := "--- PASS: " + strings.TrimSuffix(test, ".*"); !bytes.Contains(out, []byte(name)) {
			lacks(t, fmt.Sprintf("no %q in\n%s", name, out))
		}
	}
}

func TestASetuidProgramGivesNothing(t *testing.T) {
	if os.Geteuid() != 0 { // as in TestAToolIsNotRootOutside
		t.Skip("only root can make a program that is setuid to root")
	}
	self := copyOfSelf(t, openDir(t, 0), os.ModeSetuid|os.ModeSetgid|0o755)
	run := func(c *exec.Cmd) string {
		c.Env = []string{"SANDBOX_TEST_ATTACK=gain by setuid", "WAS_UID=1000"}
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatal(err, string(out))
		}
		return string(out)
	}
	if out := run(exec.Command(self)); out != "DONE\n" {
		lacks(t, fmt.Sprintf("it gives nothing outside a box either: %q", out))
	}
	b, _ := testBox(t, func(p *Profile) {
		p.UID, p.GID = 1000, 1000
		p.Mounts = []Mount{{filepath.Dir(self), filepath.Dir(self), false}}
	})
	var out bytes.Buffer
	r := b.Run(t.Context(), Command{Argv: []string{self}, Exe: self, Dir: "/", Stdout: &out, Timeout: 20 * time.Second, Env: []string{"SANDBOX_TEST_ATTACK=gain by setuid", "WAS_UID=1000"}})
	if !strings.HasPrefix(out.String(), "refused: ") {
		t.Errorf("outcome %d, %v, %q", r.Outcome, r.Err, out.String())
	}
}
