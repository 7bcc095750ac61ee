package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"toolrun/archive/internal/jsonl"
)

const tempPrefix = ".tmp-"

// temp is a file that has no name of its own yet. Its owner holds the flock.
type temp struct {
	file    *os.File
	path    string
	renamed bool
}

// create makes a temporary file. A Sweep may take it away between its making and its lock; then another is made.
func (s *Store) create() (*temp, error) {
	for try := 0; ; try++ {
		path := filepath.Join(s.dir, tempPrefix+strconv.Itoa(os.Getpid())+"-"+rand.Text())
		f, err := createFile(path)
		if errors.Is(err, fs.ErrNotExist) && try == 0 {
			if err := os.MkdirAll(s.dir, dirMode); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		held, err := hold(f)
		if held {
			return &temp{file: f, path: path}, nil
		}
		f.Close()
		if err != nil {
			os.Remove(path)
			return nil, fmt.Errorf("lock %q: %w", path, err)
		}
		if try == 100 {
			return nil, fmt.Errorf("lock %q: taken away %d times", path, try)
		}
	}
}

func createFile(path string) (*os.File, error) {
	for {
		fd, err := jsonl.Calls.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, fileMode)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		return os.NewFile(uintptr(fd), path), nil
	}
}

// hold takes the flock on f unless somebody has it, and tells whether f is held and still has a name.
func hold(f *os.File) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch err {
		case nil:
			var st unix.Stat_t
			err := unix.Fstat(int(f.Fd()), &st)
			return err == nil && st.Nlink > 0, err
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return false, nil
		default:
			return false, err
		}
	}
}

// write appends b, whatever the kernel takes at a time.
func (t *temp) write(b []byte) error {
	for len(b) > 0 {
		n, err := jsonl.Calls.Write(int(t.file.Fd()), b)
		if err == unix.EINTR {
			continue
		}
		if err == nil && n == 0 {
			err = unix.EIO
		}
		if err != nil {
			return &os.PathError{Op: "write", Path: t.path, Err: err}
		}
		b = b[n:]
	}
	return nil
}

// discard removes the file unless it got its name, and lets go of it.
func (t *temp) discard() {
	if !t.renamed {
		_ = jsonl.Calls.Unlink(t.path) // what is left Sweep removes
	}
	t.file.Close()
}

// Sweep removes the temporary files of writers that are dead and returns how many there were.
func (s *Store) Sweep() (int, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	swept := 0
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), tempPrefix) {
			continue
		}
		path := filepath.Join(s.dir, e.Name())
		f, openErr := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if openErr != nil {
			continue // its writer was faster
		}
		// Under the lock: a writer that comes later sees that the file lost its name.
		if held, _ := hold(f); held && os.Remove(path) == nil {
			swept++
		}
		f.Close()
	}
	return swept, err
}
