package main

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"toolrun/runner"
)

// interruption ends the calls of this process when it is told to stop: by SIGINT, SIGTERM or SIGHUP. The first one counts;
// a second one does nothing, since only an ordered end writes the rows of what ran.
type interruption struct {
	ctx    context.Context // its cause is runner.ErrInterrupted once a signal came
	signal atomic.Int32
	stop   func()
}

// catchSignals takes over the signals until stop. SIGPIPE is taken too: a client that closed our stdout or stderr must not
// end the process between a tool's end and its row. (It is caught and not ignored, since children inherit what is ignored.)
func catchSignals(ctx context.Context) *interruption {
	ctx, cancel := context.WithCancelCause(ctx)
	in := &interruption{ctx: ctx}
	ended := make(chan struct{})
	stops, pipes := make(chan os.Signal, 4), make(chan os.Signal, 1)
	signal.Notify(stops, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup means it
		signal.Notify(stops, syscall.SIGHUP)
	}
	signal.Notify(pipes, syscall.SIGPIPE)
	go func() {
		for {
			select {
			case s := <-stops:
				in.signal.CompareAndSwap(0, int32(s.(syscall.Signal)))
				cancel(runner.ErrInterrupted)
			case <-ended:
				return
			}
		}
	}()
	in.stop = func() {
		signal.Stop(stops)
		close(ended)
		cancel(nil)
	}
	return in
}

// err is the signal that came, or nil.
func (in *interruption) err() error {
	if s := in.signal.Load(); s != 0 {
		return &signalled{syscall.Signal(s)}
	}
	return nil
}
