package runner

import (
	"slices"
	"sync"
)

// unreadBytes is what is kept of a stream that nobody reads; all of it is in the store when the program has ended.
const unreadBytes = 256 << 10

// unread is what a program that stays has printed, redacted, since somebody read it last.
type unread struct {
	mu      sync.Mutex
	ring    ring
	n       int64 // bytes ever written
	dropped int64 // of those that are unread
	changed chan struct{}
}

func newUnread() *unread { return &unread{ring: ring{max: unreadBytes}} }

func (u *unread) write(p []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n += int64(len(p))
	u.dropped += u.ring.write(p)
	u.signal()
}

// wake wakes who waits for a change, though there is none.
func (u *unread) wake() {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.signal()
}

func (u *unread) signal() {
	if u.changed != nil {
		close(u.changed)
		u.changed = nil
	}
}

// state is how many bytes are unread, and how many were ever written; more is closed when that has changed.
func (u *unread) state() (n int, written int64, more <-chan struct{}) {
	if u == nil {
		return 0, 0, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.changed == nil {
		u.changed = make(chan struct{})
	}
	return len(u.ring.buf), u.n, u.changed
}

// peek is what is unread.
func (u *unread) peek() []byte {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Concat(u.ring.parts())
}

// take is what is unread, and the number of bytes before it that were dropped. cut may shorten it; the rest stays unread.
func (u *unread) take(cut func([]byte) int) (dropped int64, text []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := slices.Concat(u.ring.parts())
	n := cut(all)
	dropped, u.dropped = u.dropped, 0
	u.ring = ring{max: unreadBytes}
	u.ring.write(all[n:])
	return dropped, all[:n]
}
