package sandbox

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// tree writes files below dir: names to contents; a content that starts with "-> " makes a link.
func tree(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheViewShowsWhatIsDeclaredAndNothingElse(t *testing.T) {
	host := t.TempDir()
	work, data, other := filepath.Join(host, "p"), filepath.Join(host, "ro", "state"), filepath.Join(host, "p-evil")
	tree(t, host, map[string]string{
		"p/a.txt": "a", "p/tools.toml": "x", "p/.git/hooks/pre-commit": "hook", "p/.git/config": "cfg", "p/secret/key": "k",
		"ro/state/ledger.jsonl": "row", "p-evil/f": "evil", "p/out": "-> " + other, "p/.netrc": "-> " + filepath.Join(host, "nowhere"),
		"p/hidden-link": "-> " + filepath.Join(work, "secret"), "ro/r.txt": "r", "cache/c": "c",
	})
	h, err := Open(Config{Forbidden: []string{data}})
	if err != nil {
		testHost(t) // skips or fails
	}
	defer h.Close()
	p := Profile{Name: "view", Limits: testLimits, UID: os.Getuid(), GID: os.Getgid(), BestEffort: os.Getenv("TOOLRUN_REQUIRE_SANDBOX") != "1",
		Mounts:  []Mount{{work, work, true}, {filepath.Join(host, "ro"), filepath.Join(host, "ro"), false}, {filepath.Join(host, "cache"), "/var/cache/tool", true}},
		Protect: []string{filepath.Join(work, "tools.toml"), filepath.Join(work, ".git/hooks"), filepath.Join(work, ".git/config"), filepath.Join(work, ".envrc")},
		Hide:    []string{filepath.Join(work, "hidden-link"), filepath.Join(work, ".netrc"), "/root/.ssh"},
	}
	b, err := h.Box(p)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for script, want := range map[string]string{
		"cat a.txt":                                           "a",
		"echo new >b.txt; cat b.txt":                          "new\n",
		"cat ../ro/r.txt":                                     "r",
		"echo x >../ro/r.txt || echo no":                      "no\n",
		"cat /var/cache/tool/c":                               "c",
		"echo y >/var/cache/tool/d && echo ok":                "ok\n",
		"cat .git/hooks/pre-commit":                           "hook",
		"touch tools.toml || echo no":                         "no\n",
		"echo x >tools.toml || echo no":                       "no\n",
		"echo x >.git/hooks/post-commit || echo no":           "no\n",
		"rm .git/config || echo no":                           "no\n",
		"ls secret | wc -l":                                   "0\n",
		"ls ../ro/state | wc -l":                              "0\n",
		"touch ../ro/state/x || echo no":                      "no\n",
		"cat out/f || echo no":                                "no\n",
		"ls ../p-evil || echo no":                             "no\n",
		"ls " + host + " | tr '\\n' ' '":                      "p ro ",
		"touch /usr/x || touch /etc/x || touch /x || echo no": "no\n",
		"ls /home /root /run /sys | grep -v : | tr -d '\\n'":  "",
		"touch /tmp/t /dev/shm/s $HOME/h && echo ok":          "ok\n",
		"echo 1 >/proc/sys/kernel/core_pattern || echo no":    "no\n",
		"mount -t tmpfs none /mnt 2>/dev/null || echo no":     "no\n",
		"ls -d /proc/1 2>/dev/null || echo hidden":            "hidden\n",
	} {
		r, out, errs := sh(t, b, work, script)
		if out != want {
			t.Errorf("%s: %q, want %q (%s) outcome %d, exit %d, signal %d, %v", script, out, want, errs, r.Outcome, r.ExitCode, r.Signal, r.Err)
		}
	}
	if c, _ := os.ReadFile(filepath.Join(work, "b.txt")); string(c) != "new\n" {
		t.Error("what the tool wrote into the workspace is not there")
	}
	for name, m := range map[string]Mount{"the data directory": {data, data, false}, "above it, writable": {filepath.Join(host, "ro"), filepath.Join(host, "ro"), true}, "inside it": {filepath.Join(data, "ledger.jsonl"), "/x", false}, "root": {"/", "/", false}, "proc": {"/proc", "/proc/1", false}} {
		if b, err := h.Box(Profile{Name: "bad", Limits: testLimits, BestEffort: true, Mounts: []Mount{m}}); err == nil {
			b.Close()
			t.Errorf("a box shows %s", name)
		}
	}
}

func TestASwappedPathLeadsNowhereElse(t *testing.T) {
	host := t.TempDir()
	tree(t, host, map[string]string{"p/x/f": "mine", "secret/f": "SECRET"})
	work := filepath.Join(host, "p")
	h := testHost(t)
	b, err := h.Box(Profile{Name: "swap", Limits: testLimits, UID: os.Getuid(), GID: os.Getgid(), BestEffort: true, Mounts: []Mount{{work, work, true}}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	stop, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				os.Rename(filepath.Join(work, "x"), filepath.Join(work, "y"))
				os.Symlink(filepath.Join(host, "secret"), filepath.Join(work, "x"))
				os.Remove(filepath.Join(work, "x"))
				os.Rename(filepath.Join(work, "y"), filepath.Join(work, "x"))
			}
		}
	}()
	for i, end := 0, time.Now().Add(3*time.Second); i < 50 && time.Now().Before(end); i++ {
		if _, out, _ := sh(t, b, work, "for i in 1 2 3 4 5; do cat x/f; done"); strings.Contains(out, "SECRET") {
			t.Fatal("a swapped path was followed out of the box")
		}
	}
	close(stop)
	<-done
}

func TestTheNetworkIsLoopbackOnlyAndEmptyForEachCall(t *testing.T) {
	needsBash(t)
	b, work := testBox(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_, out, errs := sh(t, b, work, "cat /proc/net/dev | tail -n +3 | cut -d: -f1; exec 3<>/dev/tcp/127.0.0.1/"+port+" || echo refused")
	if !strings.Contains(out, "lo\n") || strings.Contains(out, "eth") {
		t.Errorf("interfaces %q", out)
	}
	r, out2 := run(t, b, 10*time.Second, "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/"+port+" && echo connected")
	if strings.Contains(out2, "connected") || r.ExitCode == 0 {
		t.Errorf("the host's loopback can be reached: %q %q", out2, errs)
	}
}

func TestAToolIsNotRootOutside(t *testing.T) {
	if os.Geteuid() != 0 { // the tests are run as an ordinary user too, on purpose
		t.Skip("only root can run a tool as somebody else")
	}
	b, work := testBox(t, func(p *Profile) { p.UID, p.GID = 1234, 1235 })
	if err := os.Chown(work, 1234, 1235); err != nil {
		t.Fatal(err)
	}
	_, out, errs := sh(t, b, work, "id -u; id -g; touch f && echo ok; cat /proc/self/uid_map | tr -s ' '; kill -0 1 2>/dev/null || echo no")
	if out != "1234\n1235\nok\n 1234 1234 1\nno\n" {
		t.Errorf("%q %q", out, errs)
	}
	if st, err := os.Stat(filepath.Join(work, "f")); err != nil || st.Sys().(*syscall.Stat_t).Uid != 1234 {
		t.Errorf("owner: %v", err)
	}
}

// TestMain runs the test binary as a server that dies, or as a client in a box, where the environment says so.
func TestMain(m *testing.M) {
	if os.Getenv("SANDBOX_TEST_VICTIM") == "1" {
		victim()
	}
	if attack := os.Getenv("SANDBOX_TEST_ATTACK"); attack != "" {
		hostile(attack)
		return
	}
	if os.Getenv(clientVariable) == "1" {
		client(os.Args[1:])
		return
	}
	os.Exit(m.Run())
}

// victim starts a call that does not end, says so, and waits to be killed.
func victim() {
	h, err := Open(Config{})
	if err != nil {
		panic(err)
	}
	b, err := h.Box(Profile{Name: "victim", Limits: testLimits, UID: os.Getuid(), GID: os.Getgid(), BestEffort: true})
	if err != nil {
		panic(err)
	}
	b.Run(context.Background(), Command{Argv: []string{"sh", "-c", "setsid sleep 61.3 & echo up; sleep 61.3"}, Exe: "/bin/sh", Dir: "/", Env: []string{"PATH=/bin:/usr/bin"}, Stdout: os.Stdout})
}

func TestAKilledServerLeavesNothing(t *testing.T) {
	testHost(t)
	before := groups(t)
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "SANDBOX_TEST_VICTIM=1")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if n, err := out.Read(make([]byte, 8)); err != nil || n == 0 {
		t.Fatal("the victim did not start a call", err)
	}
	var theirs []string // perhaps also of servers that other tests run meanwhile: those are not ours to judge
	for path := range groups(t) {
		if !before[path] {
			theirs = append(theirs, path)
		}
	}
	c.Process.Kill()
	c.Wait()
	for end := time.Now().Add(2 * time.Second); processes(t, "sleep 61.3") > 0; {
		if time.Now().After(end) {
			t.Fatal("processes outlive the server")
		}
	}
	h, err := Open(Config{}) // sweeps
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	after := groups(t)
	for _, path := range theirs {
		if after[path] && !held(path) {
			t.Errorf("%s of the dead server is left", path)
		}
	}
}

// groups lists our directories in all cgroup hierarchies.
func groups(t testing.TB) map[string]bool {
	t.Helper()
	paths := map[string]bool{}
	filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "toolrun-") {
			paths[path] = true
		}
		return nil
	})
	return paths
}

// held tells whether a living process holds the directory.
func held(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}

// Boxes are built while calls of others start, which hold copies of the descriptor table for a moment.
func TestBoxesAreBuiltBesideRunningCalls(t *testing.T) {
	h := testHost(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 4 {
				b, err := h.Box(Profile{Name: fmt.Sprint(i), Limits: testLimits, UID: os.Getuid(), GID: os.Getgid(), BestEffort: os.Getenv("TOOLRUN_REQUIRE_SANDBOX") != "1"})
				if err != nil {
					t.Error(err)
					return
				}
				for range 3 {
					if r, _ := run(t, b, 20*time.Second, "true"); r.Outcome != Exited {
						t.Errorf("outcome %d, %v", r.Outcome, r.Err)
					}
				}
				b.Close()
			}
		})
	}
	wg.Wait()
	if n := openFiles(t); n > 100 {
		t.Errorf("%d descriptors are open", n)
	}
}

func TestABoxThatCannotBeBuiltLeavesNoDescriptor(t *testing.T) {
	h := testHost(t)
	work := t.TempDir()
	before := 0
	for i := range 5 {
		b := &Box{host: h, profile: Profile{Name: "bad", Limits: testLimits, UID: os.Getuid(), GID: os.Getgid()}, template: -1, root: -1}
		v, err := planView(h.system(), &Profile{Name: "bad", Mounts: []Mount{{work, "/srv/x", false}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		v.binds[len(v.binds)-1].source = "/no/such/place"
		b.view = v
		if err := b.build(); err == nil {
			t.Fatal("built")
		}
		b.Close()
		if i == 0 {
			before = openFiles(t)
		} else if n := openFiles(t); n > before {
			t.Fatalf("%d descriptors, before %d", n, before)
		}
	}
}

func TestABoxThatCouldNotBeBuiltOnceIsBuiltForTheNextCall(t *testing.T) {
	first, _ := testBox(t, nil) // built at once
	p := first.profile
	work := filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	p.Mounts = []Mount{{work, work, true}}
	b, err := first.host.Box(p)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := os.Rename(work, work+"2"); err != nil {
		t.Fatal(err)
	}
	if r, _, _ := sh(t, b, work, "true"); r.Outcome != Unavailable {
		t.Fatalf("outcome %d without its place", r.Outcome)
	}
	if err := os.Rename(work+"2", work); err != nil {
		t.Fatal(err)
	}
	if r, out, errs := sh(t, b, work, "echo back"); out != "back\n" {
		t.Errorf("outcome %d, %v, %q %q", r.Outcome, r.Err, out, errs)
	}
}

func openFiles(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
