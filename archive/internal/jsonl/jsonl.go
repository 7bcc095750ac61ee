// Package jsonl is what the ledger and the traces share: files of one JSON object a line, to which several processes
// append.
//
// It promises that a line reaches its file whole or not at all: each is one write(2) with O_APPEND, a short or failed
// write is undone before anything else is written, and what a crash left without a newline is moved to ledger.damaged
// before the next append. Reading is bounded in memory and goes on after a damaged line, which it names.
//
// It does not lock: whoever appends holds the lock that FORMAT.md names for the file.
package jsonl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// MaxLineBytes bounds a line, without its newline. A longer one is damage: it is skipped and never held in memory.
const MaxLineBytes = 16 << 20

// TimeLayout is RFC 3339 in UTC with milliseconds: all times in the data directory.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// ErrUnavailable means that the record cannot be written now: no space, a read-only file system, an I/O error. Nothing
// of the line is in the file. The caller must not run what it wanted to record; it may try again later.
var ErrUnavailable = errors.New("ledger unavailable")

// Calls are the system calls that change files. Tests replace them to end the process, or to fail, at each of them.
var Calls = struct {
	Write     func(fd int, p []byte) (int, error)
	Pwrite    func(fd int, p []byte, offset int64) (int, error)
	Truncate  func(fd int, size int64) error
	Fsync     func(fd int) error
	Fdatasync func(fd int) error
	Open      func(path string, flags int, mode uint32) (int, error)
	Unlink    func(path string) error
	Rename    func(from, to string) error
	Mkdir     func(path string, mode uint32) error
	Fallocate func(fd int, mode uint32, offset, length int64) error
	Syncfs    func(fd int) error
}{
	unix.Write, unix.Pwrite, unix.Ftruncate, unix.Fsync, unix.Fdatasync, unix.Open, unix.Unlink, unix.Rename, unix.Mkdir,
	unix.Fallocate, unix.Syncfs,
}

// ErrShort means that a write took only a part of a line, as it does where space runs out.
var ErrShort = errors.New("short write (no space?)")

// NoSpace tells whether an error is for want of space.
func NoSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, ErrShort)
}

// OpenAppend opens path to append and to read, and creates it with mode 0600 where it is missing.
func OpenAppend(path string, flags int) (*os.File, error) {
	for {
		fd, err := Calls.Open(path, unix.O_RDWR|unix.O_APPEND|unix.O_CREAT|unix.O_CLOEXEC|flags, 0o600)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		return os.NewFile(uintptr(fd), path), nil
	}
}

// Append writes line, which ends in a newline, at the end of f by one write. size is the length of f before. A write
// that fails or is short is undone; where even that fails the next [Repair] does it.
func Append(f *os.File, size int64, line []byte) error {
	fd := int(f.Fd())
	n, err := Calls.Write(fd, line)
	if err == nil && n == len(line) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%w: %d of %d bytes were taken", ErrShort, n, len(line))
	}
	// Killed here: a torn tail, which the next process to append repairs.
	if undo := Calls.Truncate(fd, size); undo != nil {
		err = fmt.Errorf("%w; and undo it: %w", err, undo)
	}
	return fmt.Errorf("%w: append to %q: %w", ErrUnavailable, f.Name(), err)
}

// Replace gives a file new content, all of it or nothing, which lasts: written beside, synced, renamed.
func Replace(path string, content []byte) error {
	f, err := OpenAppend(path+".new", unix.O_TRUNC)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := Append(f, 0, content); err != nil {
		return err
	}
	if err := Calls.Fsync(int(f.Fd())); err != nil {
		return &os.PathError{Op: "fsync", Path: f.Name(), Err: err}
	}
	if err := Calls.Rename(f.Name(), path); err != nil {
		return &os.LinkError{Op: "rename", Old: f.Name(), New: path, Err: err}
	}
	return SyncDir(filepath.Dir(path))
}

// Lock takes an flock on f: [unix.LOCK_EX] or [unix.LOCK_SH], with [unix.LOCK_NB] it reports false where another
// open file holds it. The lock goes with the open file: it ends when the process dies, however it dies.
func Lock(f *os.File, how int) (bool, error) {
	for {
		switch err := unix.Flock(int(f.Fd()), how); err {
		case nil:
			return true, nil
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return false, nil
		default:
			return false, &os.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
	}
}

// Unlock gives up the flock on f.
func Unlock(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN) }
