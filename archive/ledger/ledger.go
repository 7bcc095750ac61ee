package ledger

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"toolrun/archive/evidence"
	"toolrun/archive/internal/jsonl"
)

// Names in the data directory.
const (
	FileName = "ledger.jsonl"
	LockName = "ledger.lock" // never renamed, never removed, always empty
)

// ErrUnavailable means that the row or the line cannot be written now. Nothing of it is on the record.
var ErrUnavailable = jsonl.ErrUnavailable

// ErrUnusable means that the ledger cannot be read at all.
var ErrUnusable = errors.New("data directory unusable")

// Damage is a line that is no row. Iterators yield it as the error in the row's place and go on.
type Damage = jsonl.Damage

// Options of [Open].
type Options struct {
	Logger *slog.Logger     // nil: discard
	Now    func() time.Time // nil: time.Now
	// Sealed calls add with the IDHash of every call and the RunHash of every run that was sealed; nil: none was.
	Sealed func(add func(hash uint64)) error
}

// Ledger is ledger.jsonl, open to append. Its methods may be called from several goroutines, and several processes may
// have the same one open.
type Ledger struct {
	dir  string
	log  *slog.Logger
	now  func() time.Time
	lock *os.File

	sealed func(func(uint64)) error

	mu   sync.Mutex // flock excludes processes and not goroutines; guards what follows
	f    *os.File
	id   fileID
	size int64 // of f when this process last saw it whole; -1 where it must be looked at
	next int64 // seq of the next row, while size holds
	gone int64 // bytes that were cut out of f
	seqs int64 // above every seq of the rows that were
	buf  []byte
	ids  *idSet
	own  []evidence.Leaf // rows that this process appended and that no checkpoint covers yet

	reserve *os.File
}

// fileID tells one file from another that took its name.
type fileID struct{ dev, ino uint64 }

// Open opens the ledger of a data directory, makes it where it is missing, and repairs what a crash left at its end.
func Open(dir string, o Options) (*Ledger, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	lock, err := jsonl.OpenAppend(filepath.Join(dir, LockName), 0)
	if err != nil {
		return nil, err
	}
	l := &Ledger{dir: dir, log: o.Logger, now: o.Now, lock: lock, sealed: o.Sealed, size: -1}
	if err := l.Locked(func() error { return l.refresh() }); err != nil {
		l.Close()
		return nil, err
	}
	if err := l.Ready(); err != nil {
		l.log.Warn("no call can begin", "err", err)
	}
	return l, nil
}

// Close closes the files. Rows that were appended stay.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, f := range []*os.File{l.f, l.lock, l.reserve} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	l.f, l.lock, l.reserve = nil, nil, nil
	l.ids.close()
	return errors.Join(errs...)
}

// Locked calls f while no other process or goroutine appends to the ledger, moves a torn tail, begins a run or decides
// that one is dead. A process that dies in it blocks nobody: the kernel drops the lock with it.
func (l *Ledger) Locked(f func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock == nil {
		return fmt.Errorf("%w: the ledger is closed", ErrUnavailable)
	}
	if _, err := jsonl.Lock(l.lock, unix.LOCK_EX); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer jsonl.Unlock(l.lock)
	return f()
}

// Append gives row its seq and writes it as the last line. When it returns nil the row survives the death of this
// process; a power failure only what [Ledger.Sync] covered. On an error, ErrUnavailable, nothing of the row is left.
func (l *Ledger) Append(row *Row) error {
	return l.Locked(func() error {
		if err := l.refresh(); err != nil {
			return err
		}
		before := row.Seq
		row.Seq = l.next
		l.buf = append(row.Append(l.buf[:0]), '\n')
		err := error(nil)
		if len(l.buf) > jsonl.MaxLineBytes {
			err = fmt.Errorf("append row of %d bytes: over %d", len(l.buf), jsonl.MaxLineBytes)
		} else if err = l.write(); err != nil {
			l.size = -1
		}
		if err != nil {
			row.Seq = before
			return err
		}
		// The commit point: killed from here on, the row is on the record.
		l.remember(l.buf[:len(l.buf)-1])
		l.size += int64(len(l.buf))
		l.next++
		if cap(l.buf) > 1<<20 {
			l.buf = nil
		}
		return nil
	})
}

// write appends buf, with what the reserve gives where the disk is full.
func (l *Ledger) write() error {
	for {
		err := jsonl.Append(l.f, l.size, l.buf)
		if err == nil || !jsonl.NoSpace(err) || !l.spend(len(l.buf)) {
			return err
		}
	}
}

// Sync makes every row appended so far survive a power failure.
func (l *Ledger) Sync() error {
	l.mu.Lock()
	f := l.f
	l.mu.Unlock()
	return datasync(f)
}

// SyncIDs makes every claim so far survive a power failure. It is due when a run ends: a run that a power failure ends is
// a dead run, and what closes it claims its ids again.
func (l *Ledger) SyncIDs() error {
	l.mu.Lock()
	var f *os.File
	if l.ids != nil && l.ids.dirty {
		f, l.ids.dirty = l.ids.f, false
	}
	l.mu.Unlock()
	return datasync(f)
}

// datasync syncs f. One that was closed meanwhile was replaced by another, which is synced before it takes the name.
func datasync(f *os.File) error {
	if f == nil {
		return nil
	}
	if err := jsonl.Datasync(f); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
