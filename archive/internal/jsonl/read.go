package jsonl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"golang.org/x/sys/unix"
)

// Line is one line of a file. Text is valid until the next one is read.
type Line struct {
	No     int   // from 1
	Offset int64 // of its first byte
	Length int64 // with its end
	Text   []byte
	Torn   bool // the last line, and no newline ends it
	Long   bool // over MaxLineBytes: Text holds nothing
}

// Damage is a line that cannot be read as what it should be. Iterators yield it in the line's place and go on.
type Damage struct {
	File string
	Line int
	Err  error
}

// Error names the place; a file that cannot be read at all has no line.
func (d *Damage) Error() string {
	if d.Line == 0 {
		return fmt.Sprintf("%s: %v", d.File, d.Err)
	}
	return fmt.Sprintf("%s:%d: %v", d.File, d.Line, d.Err)
}

func (d *Damage) Unwrap() error { return d.Err }

// What is wrong with a line whatever it should hold.
var (
	errEmpty = errors.New("empty line")
	errNUL   = errors.New("line of NUL bytes (lost in a power failure?)")
	ErrTorn  = errors.New("torn last line: it was never acknowledged, the next writer moves it to ledger.damaged")
	ErrLong  = fmt.Errorf("line over %d bytes", MaxLineBytes)
)

// Damaged tells what is wrong with the line before it is parsed, or nil.
func (l *Line) Damaged() error {
	switch {
	case l.Long:
		return ErrLong
	case len(l.Text) == 0:
		return errEmpty
	case l.Text[0] == 0 && len(bytes.Trim(l.Text, "\x00")) == 0:
		return errNUL
	}
	return nil
}

// Lines yields what from holds line by line, in memory of one line of at most MaxLineBytes. "\r\n" ends a line too. An
// error of reading is yielded once and ends the iteration.
func Lines(from io.Reader) iter.Seq2[*Line, error] {
	return func(yield func(*Line, error) bool) {
		r := bufio.NewReaderSize(from, 128<<10)
		var (
			line Line
			long []byte
		)
		for line.No = 1; ; line.No++ {
			line.Offset += line.Length
			line.Length, line.Long, line.Torn = 0, false, false
			long = long[:0]
			text, err := r.ReadSlice('\n')
			for err == bufio.ErrBufferFull {
				line.Length += int64(len(text))
				if line.Length > MaxLineBytes+2 {
					line.Long, long = true, nil
				} else {
					long = append(long, text...)
				}
				text, err = r.ReadSlice('\n')
			}
			line.Length += int64(len(text))
			if err != nil && err != io.EOF {
				yield(nil, err)
				return
			}
			if line.Length == 0 {
				return
			}
			if len(long) > 0 {
				long = append(long, text...)
				text = long
			}
			line.Torn = err == io.EOF
			text = bytes.TrimSuffix(text, []byte("\n"))
			text = bytes.TrimSuffix(text, []byte("\r"))
			if line.Long || len(text) > MaxLineBytes {
				line.Long, text = true, nil
			}
			line.Text = text
			if !yield(&line, nil) || line.Torn {
				return
			}
		}
	}
}

// Snapshot opens path for reading and returns its length at a moment when nobody is in the middle of a write: where the
// last byte is no newline it looks again under a shared lock on lockPath (if there is one). A missing file is nil, 0.
func Snapshot(path, lockPath string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	size, whole, err := ends(f)
	if err == nil && !whole && lockPath != "" {
		if lock, lerr := os.Open(lockPath); lerr == nil {
			if _, err = Lock(lock, unix.LOCK_SH); err == nil {
				size, _, err = ends(f)
			}
			lock.Close()
		}
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, size, nil
}

// ends returns the length of f and whether its last byte is a newline, as that of an empty file is.
func ends(f *os.File) (int64, bool, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return 0, err == nil, err
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil {
		return 0, false, err
	}
	return info.Size(), last[0] == '\n', nil
}
