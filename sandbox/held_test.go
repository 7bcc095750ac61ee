package sandbox

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestADeclaredPathIsHeldWhateverItBecomes(t *testing.T) {
	host := t.TempDir()
	tree(t, host, map[string]string{"w/f": "mine", "ro/f": "read", "secret/f": "SECRET"})
	work, ro := filepath.Join(host, "w"), filepath.Join(host, "ro")
	b, _ := testBox(t, func(p *Profile) { p.Mounts = []Mount{{work, work, true}, {ro, ro, false}} })
	look := func() {
		t.Helper()
		if r, out, errs := sh(t, b, "/", "cat "+work+"/f "+ro+"/f; echo x >"+work+"/g"); out != "mineread" || r.ExitCode != 0 {
			t.Errorf("outcome %d, %v, %q, %q", r.Outcome, r.Err, out, errs)
		}
	}
	look()
	for _, dir := range []string{work, ro} {
		if err := os.Rename(dir, dir+".old"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(host, "secret"), dir); err != nil {
			t.Fatal(err)
		}
	}
	look()
	if _, err := os.Stat(filepath.Join(host, "secret", "g")); err == nil {
		t.Error("a write went where the link leads")
	}
}

// The view alone would let this write through: its mount is writable.
func TestLandlockStopsAWriteThroughAHoleInTheView(t *testing.T) {
	for _, landlock := range []bool{false, true} {
		b, _ := testBox(t, func(p *Profile) { p.Mounts = []Mount{{t.TempDir(), "/srv/w", true}} })
		needs(t, b.host, "landlock")
		if err := b.build(); err != nil {
			t.Fatal(err)
		}
		want := "written\n"
		if landlock { // no rule for what is declared writable
			b.allowed = slices.DeleteFunc(b.allowed, func(a allow) bool { return a.path == "" && a.fd != b.root })
			want = ""
		}
		if _, out, errs := sh(t, b, "/srv/w", "echo x >f && echo written"); out != want || landlock && !strings.Contains(strings.ToLower(errs), "permission denied") {
			t.Errorf("%t: %q, %q", landlock, out, errs)
		}
	}
}

func TestADirectoryAroundWhatIsHiddenOrReadOnlyStaysWhereItIs(t *testing.T) {
	b, work := testBox(t, func(p *Profile) {
		work := p.Mounts[0].Source
		tree(t, work, map[string]string{"conf/deep/secret": "SECRET", ".git/hooks/pre-commit": "hook", "docs/api/index": "doc", "free/a/b": "x"})
		p.Hide = []string{filepath.Join(work, "conf/deep/secret")}
		p.Protect = []string{filepath.Join(work, ".git/hooks")}
		p.Mounts = append(p.Mounts, Mount{filepath.Join(work, "docs/api"), filepath.Join(work, "docs/api"), false})
	})
	for script, want := range map[string]string{
		"mv conf x || mv conf/deep x || rm -rf conf/deep || echo no": "no\n",
		"mv .git x || echo no":                                       "no\n",
		"mv docs x || mv docs/api x || echo no":                      "no\n",
		"cat conf/deep/secret":                                       "",
		"echo w >.git/index && mv .git/index .git/i2 && cat .git/i2": "w\n",
		"echo w >conf/deep/y && mkdir docs/other && cat conf/deep/y": "w\n",
		"mv free f2 && mv f2/a a && cat a/b":                         "x",
	} {
		if _, out, errs := sh(t, b, work, script); out != want {
			t.Errorf("%s: %q, want %q (%s)", script, out, want, errs)
		}
	}
}

func TestHiddenSocketsAndPipesAreHidden(t *testing.T) {
	b, work := testBox(t, func(p *Profile) {
		work := p.Mounts[0].Source
		l, err := net.Listen("unix", filepath.Join(work, "daemon.sock"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		if err := unix.Mkfifo(filepath.Join(work, "pipe"), 0o666); err != nil {
			t.Fatal(err)
		}
		p.Hide = []string{filepath.Join(work, "daemon.sock"), filepath.Join(work, "pipe")}
	})
	_, out, errs := sh(t, b, work, "test -S daemon.sock && echo socket; test -p pipe && echo pipe; wc -c <pipe")
	if out != "0\n" {
		t.Errorf("%q %q", out, errs)
	}
}
