package rpc

import (
	"fmt"
	"io"
	"sync"
)

// maxStderrBytes is how much of a log waits for a client that does not read stderr.
const maxStderrBytes = 1 << 20

// Stderr is a writer that never blocks and never fails, for the log of a server whose client may not read stderr, or may
// have closed it. What does not fit is dropped and counted; the count is written as soon as there is room.
type Stderr struct {
	w io.Writer

	mu      sync.Mutex
	changed sync.Cond
	pending []byte
	dropped int // writes
	writing bool
}

// NewStderr starts a goroutine that writes to w for as long as the process lives.
func NewStderr(w io.Writer) *Stderr {
	s := &Stderr{w: w}
	s.changed.L = &s.mu
	go s.run()
	return s
}

// Write takes all of b or counts it as dropped.
func (s *Stderr) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending)+len(b) > maxStderrBytes {
		s.dropped++
		return len(b), nil
	}
	s.pending = append(s.pending, b...)
	s.changed.Broadcast()
	return len(b), nil
}

func (s *Stderr) run() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for len(s.pending) == 0 {
			s.changed.Wait()
		}
		lines := s.pending
		if s.dropped > 0 {
			lines = fmt.Appendf(lines, "toolrun: %d log lines were dropped, because nobody read stderr\n", s.dropped)
		}
		s.pending, s.dropped, s.writing = nil, 0, true
		s.mu.Unlock()
		s.w.Write(lines) // whoever closed stderr does not want it
		s.mu.Lock()
		s.writing = false
		s.changed.Broadcast()
	}
}
