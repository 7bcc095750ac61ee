package archive

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"toolrun/archive/internal/jsonl"
	"toolrun/archive/trace"
)

const (
	// syncDelay is how long what was written waits for its sync to begin, so that with the sync itself it stays within the
	// second that "checkpoint" promises.
	syncDelay = 500 * time.Millisecond
	// syncWorkers is how many files are synced at a time: the file system then commits several with one flush.
	syncWorkers = 8
	// syncNames is up to how many files are synced each by name. Measured on ext4, 3, 24, 300 new objects take 1.2, 7 and
	// 54 ms so, and 0.6, 1.6 and 11 ms by one syncfs; but syncfs also waits for what others have written to the file
	// system, a build's gigabytes perhaps, so that it is for when the names are many.
	syncNames = 32
)

// syncer brings to the disk what this process wrote. Objects, folders and traces go first, rows after: a row that
// survives a power failure has what it names.
type syncer struct {
	d      *Dir
	before group // syncs objects, folders and traces
	after  group // syncs rows

	mu     sync.Mutex              // guards what follows
	paths  map[string]struct{}     // objects and folders, to be synced
	done   map[string]struct{}     // and those that were, the newest thousands
	runs   map[*trace.Run]struct{} // that may have grown
	timer  *time.Timer             // set while a flush is due
	closed bool
	due    sync.WaitGroup // flushes of the timer
}

func newSyncer(d *Dir) *syncer {
	s := &syncer{d: d, paths: map[string]struct{}{}, done: map[string]struct{}{}, runs: map[*trace.Run]struct{}{}}
	s.before.do = s.syncBefore
	s.after.do = d.Ledger.Sync
	return s
}

// path notes a new object of the store, or a folder in which a name is new.
func (s *syncer) path(path string) {
	s.note(func() {
		delete(s.done, path)
		s.paths[path] = struct{}{}
	})
}

// synced tells whether this process has synced the object.
func (s *syncer) synced(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.done[path]
	return ok
}

// begun notes a run whose file is new.
func (s *syncer) begun(r *trace.Run) {
	s.note(func() {
		s.runs[r] = struct{}{}
		s.paths[filepath.Join(s.d.path, runsName)] = struct{}{}
		s.paths[filepath.Join(s.d.path, liveName)] = struct{}{}
	})
}

// wrote notes that a trace or the ledger has grown.
func (s *syncer) wrote() { s.note(func() {}) }

// forget syncs a run no more.
func (s *syncer) forget(r *trace.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, r)
}

// note changes what is to be synced, and sees to it that a flush comes.
func (s *syncer) note(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	if s.timer != nil || s.closed {
		return
	}
	s.due.Add(1)
	s.timer = time.AfterFunc(syncDelay, func() {
		defer s.due.Done()
		s.mu.Lock()
		s.timer = nil
		s.mu.Unlock()
		if err := s.flush(); err != nil {
			s.d.log.Error("sync failed: the newest rows may not survive a power failure", "err", err)
		}
	})
}

// flush returns when all that was written before it was called survives a power failure.
func (s *syncer) flush() error { return errors.Join(s.before.wait(), s.after.wait()) }

// close flushes for the last time.
func (s *syncer) close() error {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil && s.timer.Stop() {
		s.due.Done()
	}
	s.mu.Unlock()
	err := s.flush()
	s.due.Wait()
	return err
}

func (s *syncer) syncBefore() (err error) {
	s.mu.Lock()
	paths, runs := s.paths, slices.Collect(maps.Keys(s.runs))
	s.paths = map[string]struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil {
			maps.Copy(s.paths, paths)
			return
		}
		if len(s.done) > 4096 {
			clear(s.done)
		}
		maps.Copy(s.done, paths)
	}()
	if len(paths) > syncNames {
		return s.syncAll()
	}
	// Markers, so that no run can be there without one; objects and folders; and then the lines that name them.
	live := filepath.Join(s.d.path, liveName)
	if _, ok := paths[live]; ok {
		if err := syncPaths(live); err != nil {
			return err
		}
	}
	if err := syncPaths(slices.Collect(maps.Keys(paths))...); err != nil {
		return err
	}
	var jobs []func() error
	for _, r := range runs {
		jobs = append(jobs, r.Sync)
	}
	return parallel(jobs)
}

// syncPaths syncs files and folders, those that are still there.
func syncPaths(paths ...string) error {
	var jobs []func() error
	for _, path := range paths {
		f, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // taken away since
		}
		if err != nil {
			jobs = append(jobs, func() error { return fmt.Errorf("%w: %w", ErrUnavailable, err) })
			continue
		}
		// Begin to write all before waiting for one: the file system then commits them together.
		_ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
		jobs = append(jobs, func() error { defer f.Close(); return jsonl.Datasync(f) })
	}
	return parallel(jobs)
}

// syncAll syncs the whole file system of the data directory.
func (s *syncer) syncAll() error {
	dir, err := os.Open(s.d.path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer dir.Close()
	if err := jsonl.Calls.Syncfs(int(dir.Fd())); err != nil {
		return fmt.Errorf("%w: syncfs %q: %w", ErrUnavailable, s.d.path, err)
	}
	return nil
}

// parallel runs every job, syncWorkers at a time.
func parallel(jobs []func() error) error {
	errs := make([]error, len(jobs))
	if len(jobs) == 1 {
		return jobs[0]()
	}
	var wg sync.WaitGroup
	for w := range min(syncWorkers, len(jobs)) {
		wg.Go(func() {
			for i := w; i < len(jobs); i += syncWorkers {
				errs[i] = jobs[i]()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
