package archive

import (
	"iter"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
)

// Rows yields every row in the order of seq, as the ledger was when the iteration began. A damaged line is yielded as a
// *[ledger.Damage] and the iteration goes on; after any other error it ends.
func (d *Dir) Rows() iter.Seq2[*ledger.Row, error] { return d.RowsIn(Scope{}) }

// RowsIn is Rows of a part of the ledger.
func (d *Dir) RowsIn(s Scope) iter.Seq2[*ledger.Row, error] {
	return func(yield func(*ledger.Row, error) bool) {
		for line, err := range d.Lines(s) {
			row := (*ledger.Row)(nil)
			if err == nil {
				row, err = line.Row()
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// RunPath returns the name of a run's file.
func (d *Dir) RunPath(id string) string { return d.runPath(id) }

// Live tells whether a process holds the flock on the run's file: its own process, or one that closes it.
func (d *Dir) Live(id string) bool {
	if _, err := os.Stat(d.markerPath(id)); err != nil {
		return false // it ended in order
	}
	f, err := os.Open(d.runPath(id))
	if err != nil {
		return false
	}
	defer f.Close()
	// A shared lock for the blink of an eye; who wants the exclusive one meanwhile passes on and comes back.
	free, err := jsonl.Lock(f, unix.LOCK_SH|unix.LOCK_NB)
	return err == nil && !free
}

// HasDead tells whether a run died and nobody has closed it yet: see Recover.
func (d *Dir) HasDead() bool {
	entries, err := os.ReadDir(filepath.Join(d.path, liveName))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !d.Live(e.Name()) })
}

// Markers are the runs that have a marker: they have not ended, or have died and are not closed yet.
func (d *Dir) Markers() map[string]bool {
	runs := map[string]bool{}
	entries, err := os.ReadDir(filepath.Join(d.path, liveName))
	if err != nil {
		return runs
	}
	for _, e := range entries {
		runs[e.Name()] = true
	}
	return runs
}

// Marked tells whether the run has a marker.
func (d *Dir) Marked(id string) bool {
	_, err := os.Lstat(d.markerPath(id))
	return err == nil
}
