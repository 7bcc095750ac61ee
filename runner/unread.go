package runner

import "sync"

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

// peek is what is unread; more is closed when that has changed.
func (u *unread) peek() (text []byte, written int64, more <-chan struct{}) {
	if u == nil {
		return nil, 0, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.changed == nil {
		u.changed = make(chan struct{})
	}
	older, newer := u.ring.parts()
	return append(append(make([]byte, 0, len(older)+len(newer)), older...), newer...), u.n, u.changed
}

// take is what is unread, and the number of bytes before it that were dropped. cut may shorten it; the rest stays unread.
func (u *unread) take(cut func([]byte) int) (dropped int64, text []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	older, newer := u.ring.parts()
	all := append(append(make([]byte, 0, len(older)+len(newer)), older...), newer...)
	n := cut(all)
	dropped, u.dropped = u.dropped, 0
	u.ring = ring{max: unreadBytes}
	u.ring.write(all[n:])
	return dropped, all[:n]
}
