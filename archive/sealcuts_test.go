package archive_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"toolrun/archive"
)

// A file of cuts that is shorter than it was, as one of an older backup, or has another number in it, would lead past rows, and
// give the next row a seq that another one has.
func TestFileOfCutsThatIsNotWholeIsNamedAndNeverAShorterLedger(t *testing.T) {
	p := twoMonths(t)
	seal(t, p.dir)
	path := filepath.Join(p.dir, "ledger.cuts")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first := bytes.IndexByte(good, '\n') + 1
	for name, text := range map[string][]byte{
		"empty": {}, "without the last": good[:first], "without the first": good[first:], "half": good[:len(good)/2],
		"another number": bytes.Replace(good, []byte(`"bytes":`), []byte(`"bytes":1`), 1),
		"below zero":     bytes.Replace(good, []byte(`"first_bytes":`), []byte(`"first_bytes":-`), 1),
	} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := archive.Open(p.dir, archive.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		var told error
		for _, err := range d.RowsIn(archive.Scope{}) {
			told = errors.Join(told, err)
		}
		d.Close()
		if told == nil || !bytes.Contains([]byte(told.Error()), []byte("verify --repair-derived")) {
			t.Errorf("%s: read: %v", name, told)
		}
		if d, err := archive.Open(p.dir, archive.Options{}); !errors.Is(err, archive.ErrUnusable) {
			t.Errorf("%s: opened to be written: %v", name, err)
			d.Close()
		}
		if err := archive.RepairDerived(p.dir, archive.Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, good) {
			t.Errorf("%s: repaired to %q, %v", name, now, err)
		}
		whole(t, p.dir, p.ids)
	}
}

// Folders of sealed months that cannot be looked into keep nobody from what is hot, as long as the file of cuts is there.
// Without it they may hold lines, and no line would be in its place.
func TestArchiveThatCannotBeLookedIntoIsNotTakenForAnEmptyOne(t *testing.T) {
	for name, folders := range map[string][]string{"a month": {"archive/2024-12", "archive/2025-01"}, "all of it": {"archive"}} {
		p := twoMonths(t)
		seal(t, p.dir)
		for _, folder := range folders {
			path := filepath.Join(p.dir, folder)
			if err := os.Rename(path, filepath.Join(t.TempDir(), "aside")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Base(path), path); err != nil { // ELOOP, also for root
				t.Fatal(err)
			}
		}
		once(t, p.dir, "hot_1", "hot_2")
		open(t, p.dir).Close()
		if err := os.Remove(filepath.Join(p.dir, "ledger.cuts")); err != nil {
			t.Fatal(err)
		}
		if d, err := archive.Open(p.dir, archive.Options{}); !errors.Is(err, archive.ErrUnusable) {
			t.Errorf("%s, without the file of cuts: %v", name, err)
			d.Close()
		}
	}
}
