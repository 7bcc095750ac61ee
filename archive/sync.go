package archive

import (
	"errors"
	"path/filepath"
	"sync"
	"time"

	"toolrun/archive/trace"
)

// syncDelay is how long what was written may wait for its sync to begin; with the sync itself it stays within the second
// that "checkpoint" promises.
const syncDelay = 500 * time.Millisecond

// syncer brings to the disk what this process wrote.
type syncer struct {
	d      *Dir
	groupA group // objects and traces
	groupB group // rows

	mu     sync.Mutex // guards what follows
	dirty  dirty
	runs   map[*trace.Run]struct{} // open runs
	timer  *time.Timer
	closed bool
}

// dirty is what a power failure would take.
type dirty struct {
	objects map[string]struct{}
	dirs    map[string]struct{}
	ledger  bool
}

func newSyncer(d *Dir) *syncer {
	s := &syncer{d: d, runs: map[*trace.Run]struct{}{}}
	s.groupA.do = s.syncBefore
	s.groupB.do = d.Ledger.Sync
	return s
}

// object notes a new object of the store.
func (s *syncer) object(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dirty.objects == nil {
		s.dirty.objects, s.dirty.dirs = map[string]struct{}{}, map[string]struct{}{}
	}
	s.dirty.objects[path] = struct{}{}
	s.dirty.dirs[filepath.Dir(path)] = struct{}{}
	s.arm()
}

func (s *syncer) run(r *trace.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[r] = struct{}{}
	s.arm()
}

func (s *syncer) forget(r *trace.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, r)
}

func (s *syncer) row(*trace.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirty.ledger = true
	s.arm()
}

// arm sees to it that a flush comes; s.mu is held.
func (s *syncer) arm() {
	if s.timer == nil && !s.closed {
		s.timer = time.AfterFunc(syncDelay, func() {
			if err := s.flush(); err != nil {
				s.d.log.Error("sync failed: the newest rows may not survive a power failure", "err", err)
			}
		})
	}
}

func (s *syncer) before() error { return s.groupA.wait() }
func (s *syncer) after() error  { return s.groupB.wait() }

// flush syncs everything: objects and traces first, rows after.
func (s *syncer) flush() error {
	return errors.Join(s.before(), s.after())
}

func (s *syncer) syncBefore() error { return nil }

func (s *syncer) close() error {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	return s.flush()
}
