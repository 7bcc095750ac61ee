// Package breakpoint lets tests end the process, or fail a system call, at each step by which lines reach the disk.
//
// A step is one call of [jsonl.Calls]. Which steps a piece of code takes is counted, not listed, so that a new step is
// tested from the day it is written.
package breakpoint

import (
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"toolrun/archive/internal/jsonl"
)

// How a step is broken.
const (
	Before  = "before"  // the process is killed before the call
	Half    = "half"    // the process is killed after half of a write; only writes are steps
	After   = "after"   // the process is killed after the call
	NoSpace = "nospace" // the call fails with ENOSPC and does nothing
	Short   = "short"   // a write takes half; other calls as NoSpace
)

// At breaks the nth step from now on, counted from 1; every later one too where the steps fail and always is set. undo
// restores the calls and returns how many steps there were.
func At(n int, how string, always bool) (undo func() int) {
	saved := jsonl.Calls
	var count atomic.Int64
	hit := func() bool {
		i := int(count.Add(1))
		return i == n || always && i > n
	}
	// step does call, broken where it is its turn. half does half of it.
	step := func(call func() error, half func()) error {
		if !hit() {
			return call()
		}
		switch how {
		case Before:
			die()
		case Half:
			half()
			die()
		case After:
			_ = call()
			die()
		case Short:
			half()
		}
		return unix.ENOSPC
	}
	undo = func() int {
		jsonl.Calls = saved
		return int(count.Load())
	}
	none := func() {}
	write := func(p []byte, do func([]byte) (int, error)) (n int, err error) {
		short := 0
		err = step(func() error { n, err = do(p); return err }, func() { short, _ = do(p[:len(p)/2]) })
		if how == Short && err == unix.ENOSPC && short > 0 {
			return short, nil // write(2) tells of a full disk by the next call
		}
		return n, err
	}
	jsonl.Calls.Write = func(fd int, p []byte) (int, error) {
		return write(p, func(p []byte) (int, error) { return saved.Write(fd, p) })
	}
	jsonl.Calls.Pwrite = func(fd int, p []byte, offset int64) (int, error) {
		return write(p, func(p []byte) (int, error) { return saved.Pwrite(fd, p, offset) })
	}
	if how == Half {
		return undo
	}
	jsonl.Calls.Truncate = func(fd int, size int64) error {
		return step(func() error { return saved.Truncate(fd, size) }, none)
	}
	jsonl.Calls.Fsync = func(fd int) error { return step(func() error { return saved.Fsync(fd) }, none) }
	jsonl.Calls.Fdatasync = func(fd int) error { return step(func() error { return saved.Fdatasync(fd) }, none) }
	jsonl.Calls.Unlink = func(path string) error { return step(func() error { return saved.Unlink(path) }, none) }
	jsonl.Calls.Rename = func(from, to string) error { return step(func() error { return saved.Rename(from, to) }, none) }
	jsonl.Calls.Mkdir = func(path string, mode uint32) error {
		return step(func() error { return saved.Mkdir(path, mode) }, none)
	}
	jsonl.Calls.Fallocate = func(fd int, mode uint32, offset, length int64) error {
		return step(func() error { return saved.Fallocate(fd, mode, offset, length) }, none)
	}
	jsonl.Calls.Syncfs = func(fd int) error { return step(func() error { return saved.Syncfs(fd) }, none) }
	jsonl.Calls.Open = func(path string, flags int, mode uint32) (fd int, err error) {
		err = step(func() error { fd, err = saved.Open(path, flags, mode); return err }, none)
		return fd, err
	}
	return undo
}

// die is the end that no defer and no handler sees.
func die() {
	_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	select {}
}
