package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// spawnError says why a program cannot be started, as the kernel would.
type spawnError struct {
	Program string
	Why     string
	Errno   unix.Errno
}

func (e *spawnError) Error() string {
	text := fmt.Sprintf("cannot start %q: %s (%s)", e.Program, e.Errno, unix.ErrnoName(e.Errno))
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

func (e *spawnError) Unwrap() error { return e.Errno }

// findProgram resolves argv[0] as execvpe(3) does, in the PATH of the box and never in toolrun's own. visible says
// whether a host path is in the box under the same name; what is not cannot be started, whatever the host has there.
func findProgram(name, path, dir string, visible func(string) bool) (string, error) {
	if strings.Contains(name, "/") {
		exe := name
		if !filepath.IsAbs(exe) {
			exe = filepath.Join(dir, exe)
		}
		if errno, why := executable(exe, visible); errno != 0 {
			return "", &spawnError{Program: exe, Errno: errno, Why: why}
		}
		return exe, nil
	}
	failed := &spawnError{Program: name, Errno: unix.ENOENT, Why: "not found in the PATH of its box, " + path}
	for _, entry := range filepath.SplitList(path) {
		if !filepath.IsAbs(entry) {
			continue // an empty entry means the working directory, which nobody who writes a PATH for tools wants
		}
		exe := filepath.Join(entry, name)
		errno, why := executable(exe, visible)
		if errno == 0 {
			return exe, nil
		}
		if errno == unix.EACCES {
			failed = &spawnError{Program: exe, Errno: errno, Why: why}
		}
	}
	return "", failed
}

// executable says 0 where path is a program, else the errno that execve(2) would give.
func executable(path string, visible func(string) bool) (unix.Errno, string) {
	if !visible(path) {
		return unix.ENOENT, "this place is not shown in the tool's box: see read and toolchains"
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		errno, ok := err.(unix.Errno)
		if !ok {
			errno = unix.ENOENT
		}
		return errno, ""
	}
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return unix.EACCES, "it is a directory"
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return unix.EACCES, "it is no regular file"
	case st.Mode&0o111 == 0:
		return unix.EACCES, "it is not executable"
	}
	return 0, ""
}

// exeHashes remembers the SHA-256 of programs for as long as their files stay the same.
type exeHashes struct {
	mu    sync.Mutex
	byKey map[fileKey]string
}

// fileKey changes whenever the content of a file may have changed.
type fileKey struct {
	dev, ino     uint64
	size         int64
	mtime, ctime unix.Timespec
}

func newExeHashes() *exeHashes { return &exeHashes{byKey: make(map[fileKey]string)} }

// start looks the hash of a program up and returns a channel that will have it. An unknown program is hashed while the
// call runs; one that cannot be read, or changes meanwhile, has the hash "".
func (h *exeHashes) start(path string) <-chan string {
	done := make(chan string, 1)
	key, err := keyOf(path)
	if err != nil {
		done <- ""
		return done
	}
	h.mu.Lock()
	hash, known := h.byKey[key]
	h.mu.Unlock()
	if known {
		done <- hash
		return done
	}
	go func() { done <- h.compute(path, key) }()
	return done
}

func (h *exeHashes) compute(path string, key fileKey) string {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // by now it may be a FIFO, which would be waited for
	if err != nil {
		return ""
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return ""
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return ""
	}
	if after, err := keyOf(path); err != nil || after != key {
		return ""
	}
	hash := hex.EncodeToString(sum.Sum(nil))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.byKey[key] = hash
	return hash
}

func keyOf(path string) (fileKey, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return fileKey{}, err
	}
	return fileKey{dev: st.Dev, ino: st.Ino, size: st.Size, mtime: st.Mtim, ctime: st.Ctim}, nil
}
