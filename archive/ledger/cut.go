package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"toolrun/archive/internal/jsonl"
)

// newName is what the ledger is written to that shall take the place of ledger.jsonl.
const newName = FileName + ".new"

// tailBytes is how much of the ledger is copied under the lock at most, if writers let it be: about a millisecond.
const tailBytes = 64 << 10

// Cut takes lines out of ledger.jsonl that are sealed: the others are written beside, synced, and take the name. Writers
// go on meanwhile, but for a moment at the end in which the newest lines are copied; whoever appends after that finds that
// the name has another file and opens it. Only one process cuts at a time, and calls Cut again with the same lines
// after it died. What is done while others wait, it does by urgent; nil: as all else.
//
// Killed before the rename: a cut that is written down and not made, and a file that nobody reads. After it: it is made.
func (l *Ledger) Cut(c Cut, urgent func(do func() error) error) error {
	if !c.valid() {
		return fmt.Errorf("cut the ledger: no lines of %s", c.Month)
	}
	hot, err := OpenHot(l.dir)
	if err != nil {
		return fmt.Errorf("cut the ledger: %w", err)
	}
	defer hot.Close()
	if hot.Has(c.Month, c.Part) {
		return nil
	}
	path := filepath.Join(l.dir, newName)
	out, err := jsonl.OpenAppend(path, unix.O_TRUNC)
	if err != nil {
		return fmt.Errorf("cut the ledger: %w", err)
	}
	defer out.Close()
	if urgent == nil {
		urgent = func(do func() error) error { return do() }
	}
	err = l.cut(&cutting{Ledger: l, hot: hot, out: out, cut: c, urgent: urgent})
	if err != nil {
		_ = jsonl.Calls.Unlink(path)
		return fmt.Errorf("cut the ledger: %w", err)
	}
	return nil
}

// cutting is one Cut.
type cutting struct {
	*Ledger
	hot  *Hot
	out  *os.File
	cut  Cut
	read int64 // of ledger.jsonl, so far

	urgent func(func() error) error
}

func (l *Ledger) cut(c *cutting) error {
	if err := c.copyRest(); err != nil {
		return err
	}
	// What was written meanwhile, until there is little of it.
	for range 4 {
		info, err := c.hot.f.Stat()
		if err != nil {
			return err
		}
		if info.Size()-c.read < tailBytes {
			break
		}
		end, err := lastLine(c.hot.f, c.read, info.Size())
		if err == nil {
			err = c.copy(c.read, end)
		}
		if err != nil {
			return err
		}
	}
	if err := jsonl.Calls.Fsync(int(c.out.Fd())); err != nil {
		return err
	}
	if err := c.writeDown(); err != nil {
		return err
	}
	return c.urgent(func() error { return l.Locked(c.take) })
}

// take copies the newest lines and gives the new file the name, under the lock.
func (c *cutting) take() error {
	l := c.Ledger
	if err := l.refresh(); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(c.hot.f.Fd()), &st); err != nil {
		return err
	}
	if l.id != (fileID{st.Dev, st.Ino}) {
		return errors.New("another file took the name of the ledger meanwhile")
	}
	if l.size > c.read {
		if err := c.copy(c.read, l.size); err != nil {
			return err
		}
		if err := jsonl.Calls.Fsync(int(c.out.Fd())); err != nil {
			return err
		}
	}
	path := filepath.Join(l.dir, FileName)
	if err := jsonl.Calls.Rename(filepath.Join(l.dir, newName), path); err != nil {
		return &os.LinkError{Op: "rename", Old: newName, New: path, Err: err}
	}
	// Killed here: the cut is made; a power failure may still take it back, and with it only lines that were not synced, for
	// nobody appends before the lock is free.
	return jsonl.SyncDir(l.dir)
}

// copyRest copies what is left of the ledger as it was opened.
func (c *cutting) copyRest() error {
	for _, r := range c.cut.Ranges {
		at, ok := c.hot.Place(r.Offset)
		if !ok || at+r.Bytes > c.hot.Size {
			return fmt.Errorf("line %d is not in it", r.Line+1)
		}
		if err := c.copy(c.read, at); err != nil {
			return err
		}
		c.read = at + r.Bytes
	}
	end, err := lastLine(c.hot.f, c.read, c.hot.Size)
	if err != nil {
		return err
	}
	return c.copy(c.read, end)
}

// writeDown puts the cut into the file of cuts, unless it stands there already.
func (c *cutting) writeDown() error {
	if p := c.hot.Pending; p != nil {
		if p.Month == c.cut.Month && p.Part == c.cut.Part && slices.Equal(p.Ranges, c.cut.Ranges) {
			return nil
		}
		return fmt.Errorf("the cut of %s, part %d, is written down and was not made: finish that first", p.Month, p.Part)
	}
	f, err := jsonl.OpenAppend(filepath.Join(c.dir, CutsName), 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var size int64
	err = c.Locked(func() (err error) {
		size, _, err = jsonl.Repair(c.dir, f, c.now(), func([]byte) bool { return false })
		return err
	})
	if err != nil {
		return err
	}
	if err := jsonl.Append(f, size, c.cut.append(nil)); err != nil {
		return err
	}
	if err := jsonl.Calls.Fsync(int(f.Fd())); err != nil {
		return err
	}
	return jsonl.SyncDir(c.dir)
}

// copy copies bytes of ledger.jsonl to the end of the new one.
func (c *cutting) copy(from, to int64) error {
	piece := make([]byte, min(1<<20, max(to-from, 0)))
	for from < to {
		n := min(int64(len(piece)), to-from)
		if _, err := c.hot.f.ReadAt(piece[:n], from); err != nil {
			return err
		}
		if err := writeAll(c.out, piece[:n]); err != nil {
			return err
		}
		from += n
	}
	c.read = max(c.read, to)
	return nil
}

func writeAll(f *os.File, b []byte) error {
	for len(b) > 0 {
		n, err := jsonl.Calls.Write(int(f.Fd()), b)
		if err == unix.EINTR {
			continue
		}
		if err == nil && n == 0 {
			err = jsonl.ErrShort
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, &os.PathError{Op: "write", Path: f.Name(), Err: err})
		}
		b = b[n:]
	}
	return nil
}

// lastLine returns where in f the last line before size ends.
func lastLine(f *os.File, from, size int64) (int64, error) {
	for window := int64(8 << 10); ; window *= 16 {
		start := max(size-window, from)
		b := make([]byte, size-start)
		if _, err := f.ReadAt(b, start); err != nil && err != io.EOF {
			return 0, err
		}
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		if start == from {
			return from, nil
		}
	}
}
