package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"toolrun/archive/redact"
)

// logSink is where the log goes. Writing never blocks: lines wait in a bounded queue for one goroutine that writes them
// out, and what does not fit is dropped and counted, since a client that never reads our stderr must not stop a call.
// A stream that was closed drops everything; it ends nothing.
type logSink struct {
	out     io.Writer
	queue   chan []byte
	done    chan struct{}
	dropped atomic.Int64
	mask    atomic.Pointer[func(string) string] // nil until the catalog's secrets are known

	mu     sync.RWMutex // held for reading by Write, for writing by Close
	closed bool
	file   *os.File // to close, or nil
}

const (
	logQueue  = 512                    // lines
	logFinish = 100 * time.Millisecond // how long Close waits for a reader of stderr
)

func newLogSink(out io.Writer) *logSink {
	s := &logSink{out: out, queue: make(chan []byte, logQueue), done: make(chan struct{})}
	go s.drain()
	return s
}

// Write queues one line. slog calls it once a record.
func (s *logSink) Write(line []byte) (int, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return len(line), nil
	}
	text := string(line)
	if mask := s.mask.Load(); mask != nil {
		text = (*mask)(text)
	}
	select {
	case s.queue <- []byte(text):
	default:
		s.dropped.Add(1)
	}
	return len(line), nil
}

func (s *logSink) drain() {
	defer close(s.done)
	for line := range s.queue {
		if n := s.dropped.Swap(0); n > 0 {
			fmt.Fprintf(s.out, "level=WARN msg=\"log lines dropped\" count=%d\n", n)
		}
		s.out.Write(line)
	}
	if n := s.dropped.Swap(0); n > 0 {
		fmt.Fprintf(s.out, "level=WARN msg=\"log lines dropped\" count=%d\n", n)
	}
}

// Close writes out what is queued, as far as somebody reads it.
func (s *logSink) Close() {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if !first {
		return
	}
	close(s.queue)
	select {
	case <-s.done:
		if s.file != nil {
			s.file.Close()
		}
	case <-time.After(logFinish):
	}
}

// openLog opens the log that the flags name.
func (a *app) openLog() error {
	out := a.stderr
	var file *os.File
	if a.flags.logFile != "" {
		f, err := os.OpenFile(a.flags.logFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return fmt.Errorf("--log: %w", err)
		}
		out, file = f, f
	}
	a.log = newLogSink(out)
	a.log.file = file
	return nil
}

// maskWith has everything that goes to stderr from now on masked by these rules.
func (a *app) maskWith(rules *redact.Rules) {
	a.mask = func(s string) string { return rules.Text(s).String() }
	a.log.mask.Store(&a.mask)
}

// logger is the log of this invocation. It carries no arguments and no output of tools; what looks like a secret is
// masked all the same once the catalog's secrets are known (app.maskWith). TextHandler quotes and escapes whatever is
// not printable.
func (a *app) logger() *slog.Logger {
	if a.log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(a.log, &slog.HandlerOptions{Level: a.flags.level}))
}
