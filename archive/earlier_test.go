package archive_test

import (
	"os"
	"path/filepath"
	"testing"

	"toolrun/archive/audit"
)

// A directory of a version that signed nothing: verify says so, and the first run that ends signs for all of it, also
// where the process before died after it had made the keys.
func TestWhatWasNeverSignedIsSignedByTheNextRun(t *testing.T) {
	for _, keys := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "data")
		d := open(t, dir)
		for range 2 {
			endedRun(t, d)
		}
		d.Close()
		names := []string{"checkpoints", "checkpoint.pub", "checkpoint.key", "hashes"}
		if keys {
			names = []string{"hashes"}
			f := &forger{t: t, dir: dir}
			f.write("checkpoints", f.notes()[0])
		}
		for _, name := range names {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		if r := find(t, dir, ""); len(r.Findings) == 0 || r.Findings[0].Kind != audit.NoCheckpoint && !keys {
			t.Errorf("%+v", r.Findings)
		}
		d = open(t, dir)
		endedRun(t, d)
		d.Close()
		if r := verify(t, dir); r.Covered != 3 || r.Seals != 3 {
			t.Errorf("%+v", r)
		}
	}
}
