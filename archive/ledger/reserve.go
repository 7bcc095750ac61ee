package ledger

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"toolrun/archive/internal/jsonl"
)

// reserveName is a file of nothing but space. A call that has begun needs some for its row whatever the tool does to the
// disk: then pieces of it are given back, as many as the row takes.
const reserveName = "reserve"

const (
	// reserveBytes is room for the rows and results of the calls that run at a time, of which 16 is the usual number.
	reserveBytes = 256 << 10
	// pieceBytes is given back at a time, besides the length of what is to be written: whole blocks of two files. Given back
	// at once, the rest would go to whoever fills the disk.
	pieceBytes = 8 << 10
)

// Ready tells whether a call may begin: there is space for its row. Where the reserve was given back it is taken again;
// ErrUnavailable where that fails.
func (l *Ledger) Ready() error {
	l.mu.Lock()
	held := l.reserve != nil && isHeld(l.reserve)
	l.mu.Unlock()
	if held {
		return nil
	}
	return l.Locked(l.fill)
}

// Spend gives back as much of the reserve as n bytes in a file take, and reports whether there was any.
func (l *Ledger) Spend(n int) (spent bool) {
	_ = l.Locked(func() error {
		spent = l.spend(n)
		return nil
	})
	return spent
}

func isHeld(f *os.File) bool {
	var st unix.Stat_t
	// A copy of the directory may have a hole in its place.
	return unix.Fstat(int(f.Fd()), &st) == nil && st.Nlink > 0 && st.Size == reserveBytes && st.Blocks*512 >= reserveBytes
}

// fill, under the lock, takes what the reserve lacks.
func (l *Ledger) fill() error {
	if l.reserve == nil || !hasName(l.reserve) {
		if l.reserve != nil {
			l.reserve.Close()
			l.reserve = nil
		}
		path := filepath.Join(l.dir, reserveName)
		fd, err := jsonl.Calls.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, &os.PathError{Op: "open", Path: path, Err: err})
		}
		l.reserve = os.NewFile(uintptr(fd), path)
	}
	if isHeld(l.reserve) {
		return nil
	}
	fd := int(l.reserve.Fd())
	err := jsonl.Calls.Truncate(fd, 0)
	if err == nil {
		err = jsonl.Calls.Fallocate(fd, 0, 0, reserveBytes)
	}
	if err == unix.EOPNOTSUPP {
		_, err = jsonl.Calls.Pwrite(fd, make([]byte, reserveBytes), 0)
	}
	if err != nil {
		_ = jsonl.Calls.Truncate(fd, 0)
		return fmt.Errorf("%w: keep space for the row: %w", ErrUnavailable, err)
	}
	return nil
}

func hasName(f *os.File) bool {
	var st unix.Stat_t
	return unix.Fstat(int(f.Fd()), &st) == nil && st.Nlink > 0
}

// spend is Spend under the lock.
func (l *Ledger) spend(n int) bool {
	var st unix.Stat_t
	if l.reserve == nil || unix.Fstat(int(l.reserve.Fd()), &st) != nil || st.Size == 0 {
		return false
	}
	return jsonl.Calls.Truncate(int(l.reserve.Fd()), max(st.Size-int64(n)-pieceBytes, 0)) == nil
}
