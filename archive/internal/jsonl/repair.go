package jsonl

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// damagedName is the file in the data directory to which torn tails are moved.
const damagedName = "ledger.damaged"

// Tail is what [Repair] found after the last newline of a file.
type Tail struct {
	File     string // relative to the data directory
	Offset   int64
	Bytes    int64 // without the NULs at its end
	NULs     int64
	Complete bool // a whole line that lacked but its newline, which it was given
}

func (t *Tail) String() string {
	if t.Complete {
		return fmt.Sprintf("%s: the last line at offset %d lacked its newline: given", t.File, t.Offset)
	}
	return fmt.Sprintf("%s: torn tail at offset %d moved to %s: %d bytes and %d NULs", t.File, t.Offset, damagedName, t.Bytes, t.NULs)
}

// Repair makes f end in a newline, under the locks of f and of the data directory dir. A last line that complete takes
// for whole gets its newline. Anything else was never acknowledged: it is copied to ledger.damaged with its offset, synced
// there, and then cut off. It returns the length of f after, and what it found, or nil.
func Repair(dir string, f *os.File, now time.Time, complete func([]byte) bool) (int64, *Tail, error) {
	size, whole, err := ends(f)
	if err != nil || whole {
		return size, nil, err
	}
	start, err := lineStart(f, size)
	if err != nil {
		return 0, nil, err
	}
	tail := &Tail{File: relative(dir, f), Offset: start}
	if size-start <= MaxLineBytes {
		text := make([]byte, size-start)
		if _, err := f.ReadAt(text, start); err != nil {
			return 0, nil, err
		}
		if complete(text) {
			tail.Complete, tail.Bytes = true, size-start
			if err := Append(f, size, []byte{'\n'}); err != nil {
				return 0, nil, err
			}
			return size + 1, tail, nil
		}
	}
	tail, err = MoveAside(dir, f, start, size, now)
	return start, tail, err
}

// MoveAside cuts f[start:size] off, which nobody ever acknowledged, under the locks of f and dir: it is copied to
// ledger.damaged with its offset, synced there, and then cut.
func MoveAside(dir string, f *os.File, start, size int64, now time.Time) (*Tail, error) {
	tail := &Tail{File: relative(dir, f), Offset: start}
	content, err := contentEnd(f, start, size)
	if err != nil {
		return nil, err
	}
	tail.Bytes, tail.NULs = content-start, size-content
	if err := keep(dir, f, tail, now); err != nil {
		return nil, fmt.Errorf("%w: keep the torn tail of %q: %w", ErrUnavailable, tail.File, err)
	}
	// Killed here: the tail stands in ledger.damaged and is copied there once more by the next repair.
	if err := Calls.Truncate(int(f.Fd()), start); err != nil {
		return nil, fmt.Errorf("%w: cut the torn tail of %q: %w", ErrUnavailable, tail.File, err)
	}
	return tail, nil
}

func relative(dir string, f *os.File) string {
	if name, err := filepath.Rel(dir, f.Name()); err == nil {
		return name
	}
	return f.Name()
}

// keep appends the tail to ledger.damaged: a line that describes it, its bytes as they are, a newline.
func keep(dir string, f *os.File, t *Tail, now time.Time) error {
	path := filepath.Join(dir, damagedName)
	out, err := OpenAppend(path, 0)
	if err != nil {
		return err
	}
	defer out.Close()
	size, whole, err := ends(out)
	if err != nil {
		return err
	}
	record := []byte{}
	if !whole {
		record = append(record, '\n') // a copy that a crash cut short
	}
	record = append(record, `{"file":`...)
	record = AppendString(record, t.File)
	record = strconv.AppendInt(append(record, `,"offset":`...), t.Offset, 10)
	record = strconv.AppendInt(append(record, `,"bytes":`...), t.Bytes, 10)
	record = strconv.AppendInt(append(record, `,"nuls":`...), t.NULs, 10)
	record = AppendString(append(record, `,"ts":`...), now.UTC().Format(TimeLayout))
	record = append(record, "}\n"...)
	tail := io.MultiReader(bytes.NewReader(record), io.NewSectionReader(f, t.Offset, t.Bytes), bytes.NewReader([]byte{'\n'}))
	if err := appendAll(out, size, tail); err != nil {
		return err
	}
	if err := Calls.Fsync(int(out.Fd())); err != nil {
		return err
	}
	return SyncDir(dir)
}

// appendAll appends what r holds piece by piece, or nothing.
func appendAll(out *os.File, size int64, r io.Reader) error {
	start, piece := size, make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(r, piece)
		if n > 0 {
			if err := Append(out, size, piece[:n]); err != nil {
				_ = Calls.Truncate(int(out.Fd()), start)
				return err
			}
			size += int64(n)
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// lineStart returns where the last line of f begins, which no newline ends.
func lineStart(f *os.File, size int64) (int64, error) {
	return scanBack(f, 0, size, func(piece []byte) int { return bytes.LastIndexByte(piece, '\n') })
}

// contentEnd returns where the NULs at the end of f[start:size] begin.
func contentEnd(f *os.File, start, size int64) (int64, error) {
	return scanBack(f, start, size, func(piece []byte) int { return len(bytes.TrimRight(piece, "\x00")) - 1 })
}

// scanBack returns the offset after the last byte of f[start:end] that find names in its piece, or start.
func scanBack(f *os.File, start, end int64, find func([]byte) int) (int64, error) {
	piece := make([]byte, 64<<10)
	for end > start {
		n := min(int64(len(piece)), end-start)
		if _, err := f.ReadAt(piece[:n], end-n); err != nil {
			return 0, err
		}
		if i := find(piece[:n]); i >= 0 {
			return end - n + int64(i) + 1, nil
		}
		end -= n
	}
	return start, nil
}

// Datasync syncs the bytes and the length of f. It may run beside a Close of f, which then waits for it.
func Datasync(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var syncErr error
	if err := raw.Control(func(fd uintptr) { syncErr = Calls.Fdatasync(int(fd)) }); err != nil {
		return err
	}
	if syncErr != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, &os.PathError{Op: "fdatasync", Path: f.Name(), Err: syncErr})
	}
	return nil
}

// SyncDir syncs the names in a directory.
func SyncDir(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	if err := Calls.Fsync(fd); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, &os.PathError{Op: "fsync", Path: dir, Err: err})
	}
	return nil
}
