package tests

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Root seals, prunes and repairs the record of another user as that user, who can go on with it, and root follows no link of theirs.
func TestRootWorksOnTheRecordOfAUserAsThatUser(t *testing.T) {
	needRoot(t)
	const uid = 12345
	p := userPlace(t, uid, "")
	p.damaged = true
	calls := threeMonths(newPast(p))
	each := func(do func(path string, info fs.FileInfo) error) {
		t.Helper()
		err := filepath.WalkDir(p.data, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			return do(path, info)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	each(func(path string, _ fs.FileInfo) error { return os.Lchown(path, uid, uid) })
	precious := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(precious, []byte("root's"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(p.data, "ledger.jsonl.new")
	if err := os.Symlink(precious, link); err != nil {
		t.Fatal(err)
	}
	p.uid = 0
	if got := p.query("archive"); got.code == 0 {
		t.Errorf("a link to root's file was written:\n%s%s", got.stdout, got.stderr)
	}
	if text, err := os.ReadFile(precious); err != nil || string(text) != "root's" {
		t.Errorf("%q, %v", text, err)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	p.archived(0)
	p.archived(0, "prune", "--keep", "22mo", "--yes")
	for _, derived := range []string{"ledger.cuts", "hashes", "ids"} {
		if err := os.Remove(filepath.Join(p.data, derived)); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.query("verify", "--repair-derived"); got.code != 0 {
		t.Errorf("status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	each(func(path string, info fs.FileInfo) error {
		if owner := info.Sys().(*syscall.Stat_t).Uid; owner != uid {
			t.Errorf("%s is of uid %d", path, owner)
		}
		return nil
	})
	p.uid = uid
	p.whole(idsOfCalls(calls[4:]))
}
