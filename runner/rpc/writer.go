package rpc

import (
	"context"
	"io"
	"log/slog"
	"sync"
)

// maxBacklogBytes is how much may wait for a client that does not read before reading its requests is put off.
const maxBacklogBytes = 64 << 20

// writer is the one writer to the client. Whoever has a line leaves it here and goes on: a client that does not read, or
// is gone, holds up no call and no row. Lines that cannot be written any more are dropped. A line that the client can take
// at once is written by who brings it, which spares the wake-up of the writer's own goroutine.
type writer struct {
	w      io.Writer
	atOnce func(p []byte) int // nil: cannot be told
	log    *slog.Logger

	mu      sync.Mutex
	changed sync.Cond // of everything below
	pending []byte    // whole lines
	writing bool      // the goroutine is in w.Write
	broken  bool      // a write failed: nobody reads, or will
	closed  bool

	gone chan struct{} // closed with broken
}

func newWriter(w io.Writer, log *slog.Logger) *writer {
	out := &writer{w: w, atOnce: atOnce(w), log: log, gone: make(chan struct{})}
	out.changed.L = &out.mu
	go out.run()
	return out
}

// run writes what is pending, all of it by one write, until the writer is closed.
func (w *writer) run() {
	var lines []byte
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.pending) == 0 && !w.closed {
			w.changed.Wait()
		}
		if len(w.pending) == 0 || w.broken {
			return
		}
		lines, w.pending = w.pending, lines[:0]
		w.writing = true
		w.mu.Unlock()
		_, err := w.w.Write(lines)
		w.mu.Lock()
		w.writing = false
		if cap(lines) > 1<<20 {
			lines = nil
		}
		if err != nil {
			w.log.Warn("the client cannot be written to; calls go on, their answers are dropped", "error", err)
			w.broken, w.pending = true, nil
			close(w.gone)
		}
		w.changed.Broadcast()
		if w.broken {
			return
		}
	}
}

// send appends one line; build appends it to dst without its newline. It never blocks.
func (w *writer) send(build func(dst []byte) []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken || w.closed {
		return
	}
	first := len(w.pending) == 0 && !w.writing
	w.pending = append(build(w.pending), '\n')
	if first && w.atOnce != nil {
		n := copy(w.pending, w.pending[w.atOnce(w.pending):])
		w.pending = w.pending[:n]
	}
	if len(w.pending) > 0 {
		w.changed.Broadcast()
	}
}

// wait blocks while too much is pending, until ctx ends.
func (w *writer) wait(ctx context.Context) {
	w.until(ctx, func() bool { return len(w.pending) < maxBacklogBytes })
}

// flush blocks until everything is written or cannot be, or ctx ends.
func (w *writer) flush(ctx context.Context) {
	w.until(ctx, func() bool { return len(w.pending) == 0 && !w.writing })
}

func (w *writer) until(ctx context.Context, done func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if done() {
		return
	}
	defer context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.changed.Broadcast()
	})()
	for !done() && !w.broken && ctx.Err() == nil {
		w.changed.Wait()
	}
}

// close ends the goroutine, once it is out of w.Write. Lines that are still pending are dropped.
func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.pending = true, nil
	w.changed.Broadcast()
}
