package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"toolrun/archive/internal/jsonl"
	"toolrun/archive/redact"
)

// Run is a run's file, open to append. Its methods may be called from several goroutines.
type Run struct {
	id    string
	path  string
	now   func() time.Time
	role  *redact.Text
	hooks Hooks

	mu     sync.Mutex
	f      *os.File
	size   int64
	buf    []byte
	open   map[string]struct{} // calls without their result
	begin  func() error        // nil once the first line is in the file
	ended  bool
	synced int64     // length that Sync covered
	sum    hash.Hash // of what this process wrote, from the first line on; nil where another began the file
}

// Hooks are what the data directory has to do with a run; each may be nil.
type Hooks struct {
	Around func(create func() error) error // makes the file: nobody may take it for a dead run's in between
	Ready  func() error                    // whether a call may begin
	Space  func(n int) bool                // frees space for n bytes of a call that has begun; false: there is none
	Wrote  func()                          // after each line
}

// Create makes the file with its first line and holds the flock. The caller sees to it that nobody takes the file for a
// dead run's in between (archive.Dir.Begin does).
func Create(path string, h Header, now func() time.Time) (*Run, error) {
	r := New(path, h, now, Hooks{})
	return r, r.Begin()
}

// New returns a run that makes its file when Begin is called, or at its first line where that failed.
func New(path string, h Header, now func() time.Time, hooks Hooks) *Run {
	r := &Run{id: h.RunID, path: path, now: now, role: h.Role, open: map[string]struct{}{}, hooks: hooks, sum: sha256.New()}
	create := func() error { return r.create(h) }
	r.begin = create
	if hooks.Around != nil {
		r.begin = func() error { return hooks.Around(create) }
	}
	return r
}

// Resume takes over the file of a dead run, on which the caller holds the flock, to write what is missing. size is its
// length, which ends in a newline; open are its calls without a result.
func Resume(id string, f *os.File, size int64, open []string, now func() time.Time, hooks Hooks) *Run {
	r := &Run{id: id, path: f.Name(), now: now, f: f, size: size, open: map[string]struct{}{}, hooks: hooks}
	for _, id := range open {
		r.open[id] = struct{}{}
	}
	return r
}

// ID returns the run id.
func (r *Run) ID() string { return r.id }

// Path returns the name of the run's file.
func (r *Run) Path() string { return r.path }

// Begin writes the first line, if it is not there yet.
func (r *Run) Begin() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ready()
}

// Open returns the number of calls whose result is not in the file.
func (r *Run) Open() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.open)
}

// ToolCall writes the line that must stand before anything of the call runs.
func (r *Run) ToolCall(c Call) error {
	if r.hooks.Ready != nil {
		if err := r.hooks.Ready(); err != nil {
			return err
		}
	}
	at := c.At
	if at.IsZero() {
		at = r.now()
	}
	id := c.Row.ToolCallID.String()
	return r.write(func(dst []byte) []byte { return appendCall(dst, r.id, at, c) }, func() { r.open[id] = struct{}{} })
}

// Approval writes the line that must stand before anything of a held call runs.
func (r *Run) Approval(a Approval) error {
	return r.write(func(dst []byte) []byte { return appendApproval(dst, r.id, r.now(), a) }, nil)
}

// ToolResult writes the line that follows the row.
func (r *Run) ToolResult(res Result) error {
	id := res.Row.ToolCallID.String()
	line := func(dst []byte) []byte { return appendResult(dst, r.id, r.now(), res) }
	for {
		err := r.write(line, func() { delete(r.open, id) })
		if err == nil || !jsonl.NoSpace(err) || r.hooks.Space == nil || !r.hooks.Space(len(line(nil))) {
			return err
		}
	}
}

// Session writes the first sight of a session; the caller sees to it that it is the first.
func (r *Run) Session(s Session) error {
	return r.write(func(dst []byte) []byte { return appendSession(dst, r.id, r.now(), s, r.role) }, nil)
}

// RejectedLine records a line of input that named no tool: its JSON-RPC error code, its length and its hash.
func (r *Run) RejectedLine(code int, bytes int64, sha256 string) error {
	return r.write(func(dst []byte) []byte { return appendRejected(dst, r.id, r.now(), code, bytes, sha256) }, nil)
}

// Unused writes the last line of a run that ended in order.
func (r *Run) Unused(names []string) error {
	return r.write(func(dst []byte) []byte { return appendUnused(dst, r.id, names) }, nil)
}

// Sync makes every line so far survive a power failure, the file's name excepted.
func (r *Run) Sync() error {
	r.mu.Lock()
	f, size, synced := r.f, r.size, r.synced
	r.mu.Unlock()
	if f == nil || size == synced {
		return nil
	}
	if err := jsonl.Datasync(f); err != nil {
		if errors.Is(err, os.ErrClosed) {
			return nil // End synced it
		}
		return err
	}
	r.mu.Lock()
	r.synced = max(r.synced, size)
	r.mu.Unlock()
	return nil
}

// Close closes the file and with it gives up the flock.
func (r *Run) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if r.f == nil {
		return nil
	}
	f := r.f
	r.f = nil
	return f.Close()
}

func (r *Run) write(line func([]byte) []byte, done func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ready(); err != nil {
		return err
	}
	r.buf = append(line(r.buf[:0]), '\n')
	if err := r.append(r.buf); err != nil {
		return err
	}
	if done != nil {
		done()
	}
	if r.hooks.Wrote != nil {
		r.hooks.Wrote()
	}
	return nil
}

func (r *Run) ready() error {
	switch {
	case r.ended:
		return fmt.Errorf("%w: run %s has ended", ErrUnavailable, r.id)
	case r.begin == nil:
		return nil
	}
	if err := r.begin(); err != nil {
		return err
	}
	r.begin = nil
	return nil
}

// append writes one line. What an earlier failure left behind the known end is cut off first, so that nothing is glued.
func (r *Run) append(line []byte) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(r.f.Fd()), &st); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if st.Size > r.size {
		if err := jsonl.Calls.Truncate(int(r.f.Fd()), r.size); err != nil {
			return fmt.Errorf("%w: cut what is left of a failed write: %w", ErrUnavailable, err)
		}
	}
	if err := jsonl.Append(r.f, r.size, line); err != nil {
		return err
	}
	r.size += int64(len(line))
	if r.sum != nil {
		r.sum.Write(line)
	}
	return nil
}

// Sum returns the length and the SHA-256 in hex of the file as this process wrote it, whatever is on the disk. It is of
// no use for a run that was resumed.
func (r *Run) Sum() (bytes int64, sha256Hex string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sum == nil {
		return 0, ""
	}
	return r.size, hex.EncodeToString(r.sum.Sum(nil))
}

func (r *Run) create(h Header) error {
	if r.f == nil {
		f, err := jsonl.OpenAppend(r.path, unix.O_EXCL)
		if err != nil {
			return err
		}
		// Only a verifier that looks whether the run lives can hold it, and not for long.
		if _, err := jsonl.Lock(f, unix.LOCK_EX); err != nil {
			f.Close()
			return err
		}
		r.f = f
	}
	return r.append(append(appendHeader(nil, h), '\n'))
}
