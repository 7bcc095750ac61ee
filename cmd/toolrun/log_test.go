package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
)

// stuck is a stream that nobody reads until it is released.
type stuck struct {
	release chan struct{}
	b       bytes.Buffer
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.release
	return s.b.Write(p)
}

func TestAStuckReaderOfStderrStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{release: make(chan struct{})}
		sink := newLogSink(out)
		const lines = 10 * logQueue
		for i := range lines {
			fmt.Fprintf(sink, "line %d\n", i) // would hang here
		}
		close(out.release)
		sink.Close()
		kept, dropped := 0, 0
		for line := range strings.Lines(out.b.String()) {
			var n int
			if _, err := fmt.Sscanf(line, `level=WARN msg="log lines dropped" count=%d`, &n); err == nil {
				dropped += n
			} else {
				kept++
			}
		}
		if kept < logQueue || kept+dropped != lines {
			t.Errorf("%d kept and %d dropped of %d", kept, dropped, lines)
		}
	})
}

func TestCloseDoesNotWaitForAStuckReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{release: make(chan struct{})}
		sink := newLogSink(out)
		fmt.Fprintln(sink, "line")
		sink.Close() // returns after logFinish of the bubble's clock, else synctest reports a deadlock
		sink.Close()
		fmt.Fprintln(sink, "after")
		close(out.release)
	})
}

type closedStream struct{}

func (closedStream) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestAClosedStderrIsNoError(t *testing.T) {
	sink := newLogSink(closedStream{})
	if n, err := sink.Write([]byte("line\n")); n != 5 || err != nil {
		t.Errorf("Write = %d, %v", n, err)
	}
	sink.Close()
}

func TestALogLineCannotDriveATerminal(t *testing.T) {
	var out bytes.Buffer
	a := &app{log: newLogSink(&out), flags: flags{level: slog.LevelDebug}}
	a.logger().Info("tool \x1b[2J \u202e \u009b", "name", "x\u202ey", "err", errors.New("a\nb\x7f"))
	a.log.Close()
	if !printable(strings.TrimSuffix(out.String(), "\n")) {
		t.Errorf("logged %q", out.String())
	}
}
