package tests

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// place is where toolrun is started in a test: a catalog, a workspace and a data directory of its own, and an
// environment with nothing of the developer's in it. At the end of the test its data directory is checked from outside.
type place struct {
	t       testing.TB
	root    string
	catalog string // the file
	work    string
	data    string
	env     []string
	uid     int    // whom toolrun runs as, 0: whoever runs the tests
	host    string // one of poorHosts, empty: this one as it is
	damaged bool   // the test damaged the data directory on purpose: no check at the end
}

// newPlace makes a place with this catalog; a [catalog] table is added.
func newPlace(t testing.TB, catalog string) *place {
	t.Helper()
	needSandbox(t)
	return barePlace(t, catalog)
}

// barePlace is newPlace for tests that start no tool: they need no sandbox.
func barePlace(t testing.TB, catalog string) *place {
	t.Helper()
	return placeAt(t, t.TempDir(), catalog)
}

// userPlace is barePlace for an ordinary user, where the tests run as root: all of it is his.
func userPlace(t testing.TB, uid int, catalog string) *place {
	t.Helper()
	root, err := os.MkdirTemp("", "user-place-") // t.TempDir is below a directory that nobody else may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	p := placeAt(t, root, catalog)
	p.uid = uid
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, uid, uid))
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// placeAt makes a place in this directory.
func placeAt(t testing.TB, root, catalog string) *place {
	t.Helper()
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, root: root, catalog: filepath.Join(root, "catalog", "tools.toml"), work: filepath.Join(root, "w"), data: filepath.Join(root, "data")}
	home := filepath.Join(root, "home")
	for _, dir := range []string{filepath.Dir(p.catalog), p.work, home} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + home, "LANG=C.UTF-8", "TERM=dumb"}
	p.writeCatalog("[catalog]\nname = \"tests\"\n" + catalog)
	t.Cleanup(func() {
		if !p.damaged && !t.Failed() {
			for _, problem := range checkData(p.data) {
				t.Error(problem)
			}
		}
	})
	return p
}

// checkedNow has the data directory verified, and checked as it would be when the test has ended: it is on a file system
// that is not there then any more.
func (p *place) checkedNow() {
	p.t.Helper()
	if got := p.query("verify"); got.code != 0 {
		p.t.Errorf("verify: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	for _, problem := range checkData(p.data) {
		p.t.Error(problem)
	}
	p.damaged = true
}

func (p *place) writeCatalog(text string) {
	p.t.Helper()
	if err := os.WriteFile(p.catalog, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// write makes a file in the workspace.
func (p *place) write(name, content string, mode os.FileMode) string {
	p.t.Helper()
	path := filepath.Join(p.work, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// command is toolrun with these arguments in this place.
func (p *place) command(args ...string) *exec.Cmd {
	cmd := exec.Command(toolrun, append(args, "--data", p.data, "--catalog", p.catalog, "--workspace", p.work)...)
	cmd.Dir, cmd.Env = p.work, p.env
	return p.on(cmd)
}

// on makes a command run as the place's user, on its kind of host.
func (p *place) on(cmd *exec.Cmd) *exec.Cmd {
	switch {
	case p.host != "":
		poorHosts[p.host].on(cmd, p.host, p.uid)
	case p.uid != 0:
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(p.uid), Gid: uint32(p.uid)}}
	}
	return cmd
}

// ran is a command that has ended.
type ran struct {
	stdout, stderr string
	code           int
}

// run runs a subcommand to its end.
func (p *place) run(args ...string) ran {
	p.t.Helper()
	return finish(p.t, p.command(args...))
}

// query runs a subcommand that asks the data directory; it takes neither catalog nor workspace.
func (p *place) query(args ...string) ran {
	p.t.Helper()
	cmd := exec.Command(toolrun, append(args, "--data", p.data)...)
	cmd.Dir, cmd.Env = p.root, p.env
	return finish(p.t, p.on(cmd))
}

func finish(t testing.TB, cmd *exec.Cmd) ran {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	err := cmd.Wait()
	if ctx.Err() != nil {
		t.Fatalf("%s did not end\n%s", strings.Join(cmd.Args, " "), errs.String())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return ran{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// rows are the rows of the ledger, all of which must be whole.
func (p *place) rows() []row {
	p.t.Helper()
	rows, problems := readRows(p.data)
	for _, problem := range problems {
		p.t.Error(problem)
	}
	return rows
}

// object is the content of the store under this hash.
func (p *place) object(hash string) string {
	p.t.Helper()
	content, err := os.ReadFile(objectPath(p.data, hash))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(content)
}

// within waits until something is so that has no event to wait for, and tells whether it came in time.
func within(limit time.Duration, ok func() bool) bool {
	deadline := time.After(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			return false
		case <-tick.C:
		}
	}
	return true
}

// eventually is within for tests that cannot go on without.
func eventually(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	if !within(limit, ok) {
		t.Fatalf("not within %v: %s", limit, what)
	}
}

// processes are the command lines of live processes that contain marker.
func processes(marker string) []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // empty for a zombie
		line := strings.TrimSpace(strings.ReplaceAll(string(cmdline), "\x00", " "))
		if strings.Contains(line, marker) {
			found = append(found, filepath.Base(dir)+" "+line)
		}
	}
	return found
}

// noProcess fails where a process with this marker lives a second from now.
func noProcess(t testing.TB, marker string) {
	t.Helper()
	var left []string
	if !within(time.Second, func() bool { left = processes(marker); return len(left) == 0 }) {
		t.Errorf("processes of a call are left: %v", left)
	}
}
