package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Whatever stands in the place of a file of a sealed month: verify says what it is, nothing waits or grows without end, and no
// answer is shorter than it was.
func TestWhatStandsInThePlaceOfAFileOfASealedMonthIsNamed(t *testing.T) {
	template := barePlace(t, "")
	template.damaged = true
	calls := threeMonths(newPast(template))
	template.query("sessions")
	template.archived(0)
	questions := [][]string{{"sessions", "--json"}, {"session", "winter", "--json"}, {"output", calls[3].id}}
	before := map[string]string{}
	for _, q := range questions {
		before[q[0]] = template.query(q...).stdout
	}
	instead := func(path string, put func(path string) error) error {
		if err := os.Remove(path); err != nil {
			return err
		}
		return put(path)
	}
	fifo := func(path string) error { return unix.Mkfifo(path, 0o600) }
	endless := func(path string) error { return os.Symlink("/dev/zero", path) }
	for name, c := range map[string]struct {
		change func(month string) error
		verify int    // status
		says   string // verify
		repair int    // status of verify --repair-derived
		answer bool   // all questions are answered as before
	}{
		"no seal":                      {func(m string) error { return os.Remove(m + "/seal") }, 3, "2025-01/seal: SEAL_WRONG", 0, true},
		"a seal without end":           {func(m string) error { return instead(m+"/seal", endless) }, 3, "2025-01/seal: SEAL_WRONG", 0, true},
		"an empty seal":                {func(m string) error { return os.Truncate(m+"/seal", 0) }, 4, "2025-01/manifest.json: MONTH_BAD", 0, false},
		"a pipe as a manifest":         {func(m string) error { return instead(m+"/manifest.json", fifo) }, 4, "2025-01/manifest.json: MONTH_BAD", 4, false},
		"a pipe as an archive":         {func(m string) error { return instead(m+"/ledger.jsonl.zst", fifo) }, 4, "2025-01/ledger.jsonl.zst: MONTH_BAD", 4, false},
		"a pipe as a further manifest": {func(m string) error { return fifo(m + "/manifest.2.json") }, 4, "2025-01/manifest.2.json: MONTH_BAD", 4, true},
		"leaves":                       {func(m string) error { return os.WriteFile(m+"/leaves", nil, 0o600) }, 0, "all is well", 0, true},
		"a copy as another part": {func(m string) error {
			manifest, err := os.ReadFile(m + "/manifest.json")
			if err != nil {
				return err
			}
			for _, name := range []string{"ledger%.jsonl.zst", "runs%.tar.zst", "store%.tar.zst", "index%"} {
				if err := os.Link(filepath.Join(m, strings.Replace(name, "%", "", 1)), filepath.Join(m, strings.Replace(name, "%", ".2", 1))); err != nil {
					return err
				}
			}
			return os.WriteFile(m+"/manifest.2.json", []byte(strings.Replace(string(manifest), `"part": 1`, `"part": 2`, 1)), 0o600)
		}, 4, "2025-01/manifest.2.json: MONTH_UNSEALED", 4, true},
		"a link to where there is room": {func(m string) error {
			if err := os.Rename(m, m+".elsewhere"); err != nil {
				return err
			}
			return os.Symlink(m+".elsewhere", m)
		}, 0, "all is well", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := barePlace(t, "")
			p.damaged = true
			if err := os.CopyFS(p.data, os.DirFS(template.data)); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(p.data, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := c.change(filepath.Join(p.data, "archive", "2025-01")); err != nil {
				t.Fatal(err)
			}
			if got := p.query("verify"); got.code != c.verify || !strings.Contains(got.stdout, c.says) {
				t.Errorf("verify: status %d\n%s%s", got.code, got.stdout, got.stderr)
			}
			for _, q := range questions {
				if got := p.query(q...); (got.code == 0) != (got.stdout == before[q[0]]) || c.answer && got.code != 0 {
					t.Errorf("%v: status %d\n%s%s", q, got.code, got.stdout, got.stderr)
				}
			}
			if got := p.query("verify", "--repair-derived"); got.code != c.repair {
				t.Errorf("verify --repair-derived: status %d\n%s%s", got.code, got.stdout, got.stderr)
			}
		})
	}
}

// What a link leads to is nobody's to remove: pruning says so and gives up nothing, and a sealing empties no such folder.
func TestNothingIsRemovedBehindALink(t *testing.T) {
	p := barePlace(t, "")
	p.damaged = true
	calls := threeMonths(newPast(p))
	p.archived(0)
	store, aside := filepath.Join(p.data, "archive", "2024-12", "store.tar.zst"), filepath.Join(p.root, "store.tar.zst")
	if err := os.Rename(store, aside); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(aside, store); err != nil {
		t.Fatal(err)
	}
	if got := p.archived(1, "prune", "--keep", "1mo", "--yes"); !strings.Contains(got.stderr, store) {
		t.Error(got.stderr)
	}
	precious := filepath.Join(p.root, "folder", "2024-12", "precious")
	if err := os.MkdirAll(filepath.Dir(precious), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(p.root, "folder"), filepath.Join(p.data, "archive", ".new")); err != nil {
		t.Fatal(err)
	}
	p.archived(1)
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
	p.whole(idsOfCalls(calls))
}
