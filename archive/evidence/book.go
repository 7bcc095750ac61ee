package evidence

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"toolrun/archive/internal/jsonl"
)

// Note is one signed note of the file of checkpoints: one of Checkpoint, Seal, Month and Err is set.
type Note struct {
	Line       int // of its first line, from 1
	Signed     string
	Checkpoint *Checkpoint
	Seal       *Seal
	Month      *MonthSeal
	Err        error // what is malformed
}

// Verify tells whether key signed the note.
func (n *Note) Verify(key *Key) error {
	switch {
	case n.Err != nil:
		return n.Err
	case n.Checkpoint != nil:
		return n.Checkpoint.Verify(key)
	}
	return verifyNote(n.Signed, key)
}

// maxNoteBytes bounds a note; more is damage.
const maxNoteBytes = 64 << 10

var errTornNote = errors.New("torn note: it was never acknowledged, the next process that signs moves it to ledger.damaged")

// Notes yields every note of the file of checkpoints, as it was when the iteration began. Nothing is verified. A missing
// file has none. An error of reading is the Err of the last.
func Notes(dir string) iter.Seq[*Note] {
	return func(yield func(*Note) bool) {
		f, size, err := snapshot(filepath.Join(dir, CheckpointsName))
		if err != nil {
			yield(&Note{Err: err})
			return
		}
		if f == nil {
			return
		}
		defer f.Close()
		notesOf(io.NewSectionReader(f, 0, size), yield)
	}
}

// snapshot opens the file and returns its length at a moment when nobody is in the middle of a write to it.
func snapshot(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	size, whole, err := noteEnd(f)
	if err == nil && whole != size {
		if _, err = jsonl.Lock(f, unix.LOCK_SH); err == nil {
			size, _, err = noteEnd(f)
			jsonl.Unlock(f)
		}
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, size, nil
}

// noteEnd returns the length of the file and where its last whole note ends.
func noteEnd(f *os.File) (size, whole int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	size = info.Size()
	for window := int64(4 << 10); ; window *= 16 {
		start := max(size-window, 0)
		tail := make([]byte, size-start)
		if _, err := f.ReadAt(tail, start); err != nil {
			return 0, 0, err
		}
		if end := lastNote(tail); end > 0 || start == 0 {
			return size, start + int64(end), nil
		}
	}
}

// lastNote returns where the last signature block of b ends, which an empty line follows.
func lastNote(b []byte) int {
	for end := len(b); ; {
		i := bytes.LastIndex(b[:end], []byte("\n\n"))
		if i < 0 {
			return 0
		}
		line := b[bytes.LastIndexByte(b[:i], '\n')+1 : i]
		if bytes.HasPrefix(line, []byte("— ")) {
			return i + 2
		}
		end = i + 1
	}
}

// newest reads the last checkpoint of the first size bytes of the file, nil where there is none. The last note is one,
// unless somebody edited the file.
func newest(f *os.File, size int64) (*Checkpoint, error) {
	for window := int64(4 << 10); ; window *= 16 {
		start := max(size-window, 0)
		var last *Checkpoint
		notesOf(io.NewSectionReader(f, start, size-start), func(n *Note) bool {
			if n.Checkpoint != nil {
				last = n.Checkpoint
			}
			return true
		})
		if last != nil || start == 0 {
			return last, nil
		}
	}
}

// Newest returns the checkpoint of most rows that key signed, nil where there is none.
func Newest(dir string, key *Key) (*Checkpoint, error) {
	var list []*Checkpoint
	for n := range Notes(dir) {
		switch {
		case n.Line == 0:
			return nil, n.Err
		case n.Checkpoint != nil:
			list = append(list, n.Checkpoint)
		}
	}
	slices.SortStableFunc(list, func(a, b *Checkpoint) int { return cmp.Compare(a.Tree.N, b.Tree.N) })
	for _, c := range slices.Backward(list) {
		if c.Verify(key) == nil {
			return c, nil
		}
	}
	return nil, nil
}

// repair cuts off what a crash left behind the last whole note, which nobody ever acknowledged.
func repair(dir string, f *os.File, o Options) (int64, error) {
	size, whole, err := noteEnd(f)
	if err != nil || size == whole {
		return size, err
	}
	err = o.Locked(func() error {
		tail, err := jsonl.MoveAside(dir, f, whole, size, o.Now())
		if err == nil {
			o.Logger.Warn("checkpoints repaired", "what", tail.String())
		}
		return err
	})
	return whole, err
}
