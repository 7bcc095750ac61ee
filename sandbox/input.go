package sandbox

import (
	"errors"
	"sync"
)

// Input is the standard input of a program that is written while the program runs. Its zero value is ready; it serves one
// call.
type Input struct {
	mu      sync.Mutex
	pending []byte
	wake    func() // of the call that reads it; nil before its start
	closed  bool   // nothing more comes
	ended   bool   // nobody reads any more
}

// MaxPendingInput is how many bytes may wait for a program that does not read its input.
const MaxPendingInput = 1 << 20

// Errors of Input.Write.
var (
	ErrInputEnded = errors.New("the program no longer reads its input")
	ErrInputFull  = errors.New("the program does not read its input: too much of it waits")
)

// Write leaves all of p for the program, or nothing. It does not wait until the program reads it.
func (in *Input) Write(p []byte) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.ended || in.closed:
		return ErrInputEnded
	case len(in.pending)+len(p) > MaxPendingInput:
		return ErrInputFull
	}
	in.pending = append(in.pending, p...)
	in.rouse()
	return nil
}

// Close says that nothing more comes: the program meets the end of its input when it has read what waits.
func (in *Input) Close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.rouse()
}

// Pending is how many bytes the program has not been given yet: it does not read, or a pipe's buffer holds them up.
func (in *Input) Pending() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.pending)
}

func (in *Input) rouse() {
	if in.wake != nil {
		in.wake()
	}
}

// attach begins the reading by a call that wake wakes.
func (in *Input) attach(wake func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.wake = wake
	wake() // for what was written before
}

// detach ends it: from here on wake is not called.
func (in *Input) detach() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.wake, in.ended, in.pending = nil, true, nil
}

// offer calls write with what waits and keeps what it does not take. It returns whether more is to come.
func (in *Input) offer(write func(p []byte) (n int)) (left int, more bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.pending) > 0 {
		n := write(in.pending)
		in.pending = in.pending[:copy(in.pending, in.pending[n:])]
	}
	return len(in.pending), !in.closed
}
