package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
