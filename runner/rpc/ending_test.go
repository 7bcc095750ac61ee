package rpc

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toolrun/runner"
)

// SCENARIOS 64.
func TestRowIsWrittenWhenTheClientClosedStdout(t *testing.T) {
	b := newFake("gate", "echo")
	c := serve(t, b)
	c.send(call(1, "gate", "{}"))
	eventually(t, "the call runs", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.running["{}"] != nil })
	c.out.Close()
	c.send(ping(2), call(3, "echo", "{}"), "nonsense")
	eventually(t, "a row of a call that came later", func() bool { return b.count("row 1 success ok") == 1 })
	b.open("{}")
	eventually(t, "the row", func() bool { return b.count("row 0 success ok") == 1 })
	c.in.Close()
	if err := c.wait(); err != nil {
		t.Errorf("Serve returned %v", err)
	}
}

// SCENARIOS 65.
func TestCallsEndWhenBothPipesAreClosed(t *testing.T) {
	for i := range 10 {
		b := newFake("slow")
		c := serve(t, b)
		c.send(call(1, "slow", "{}"), call(2, "slow", "{}"))
		eventually(t, "the calls run", func() bool { return b.count("call") == 2 })
		if i%2 == 0 {
			c.in.Close()
			c.out.Close()
		} else {
			c.out.Close()
			c.in.Close()
		}
		if err := c.wait(); err != nil {
			t.Errorf("Serve returned %v", err)
		}
		if b.count("row") != 2 || strings.Count(b.log(), "error interrupted") != 2 {
			t.Errorf("rows:\n%s", b.log())
		}
	}
}

func TestStdoutThatIsHeldKeepsCallsRunningAfterStdinEnded(t *testing.T) {
	b := newFake("gate")
	c := serve(t, b)
	c.send(call(1, "gate", "{}"))
	eventually(t, "the call runs", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.running["{}"] != nil })
	c.in.Close()
	select {
	case <-c.ended:
		t.Fatal("Serve ended before the answer")
	case <-time.After(3 * pollMillis * time.Millisecond): // the watch polled and saw a reader
	}
	b.open("{}")
	if a := c.read(); a.Error != nil {
		t.Errorf("%+v", a)
	}
	if err := c.wait(); err != nil {
		t.Error(err)
	}
}

func TestEOFGraceBoundsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake("slow")
		stdin, in := io.Pipe()
		var out lockedBuffer
		ended := make(chan error, 1)
		go func() {
			ended <- Serve(t.Context(), Config{In: stdin, Out: &out, Backend: b, EOFGrace: 2 * time.Second})
		}()
		io.WriteString(in, call(1, "slow", "{}")+"\n")
		in.Close()
		time.Sleep(2*time.Second - time.Nanosecond)
		synctest.Wait()
		if b.count("row") != 0 {
			t.Error("the call ended before the grace period")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if err := <-ended; err != nil || b.count("row 0 error interrupted") != 1 {
			t.Errorf("Serve returned %v:\n%s", err, b.log())
		}
		if !strings.Contains(out.take(), `"outcome":"interrupted"`) {
			t.Error("the call is not answered")
		}
	})
}

// The runner kills what it runs; this is for what the kernel cannot kill.
func TestServeReturnsAlthoughACallDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake("gate")
		stdin, in := io.Pipe()
		ctx, stop := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Serve(ctx, Config{In: stdin, Out: io.Discard, Backend: b}) }()
		io.WriteString(in, call(1, "gate", "{}")+"\n")
		synctest.Wait()
		stop(runner.ErrInterrupted)
		start := time.Now()
		if err := <-ended; !errors.Is(err, runner.ErrInterrupted) || time.Since(start) != stopWait {
			t.Errorf("Serve returned %v after %v", err, time.Since(start))
		}
		b.open("{}")
		in.Close()
	})
}

func TestRequestsReadBeforeTheEndAreAnswered(t *testing.T) {
	b := newFake("echo")
	c := serve(t, b)
	const n = 500
	var lines []string
	for i := range n {
		lines = append(lines, call(i, "echo", "{}"), ping(n+i))
	}
	go func() {
		c.send(lines...)
		c.in.Close()
	}()
	seen := make(map[string]bool)
	for range 2 * n {
		seen[string(c.read().ID)] = true
	}
	if err := c.wait(); err != nil || len(seen) != 2*n {
		t.Errorf("%d answers, Serve returned %v", len(seen), err)
	}
}

func TestLastLineNeedsNoNewline(t *testing.T) {
	c := serve(t, newFake("echo"))
	io.WriteString(c.in, call(1, "echo", "{}"))
	c.in.Close()
	if a := c.read(); a.Error != nil {
		t.Errorf("%+v", a)
	}
	if err := c.wait(); err != nil {
		t.Error(err)
	}
}

func TestRefusingHostAnswersTheFirstRequestAndEnds(t *testing.T) {
	remedy := errors.New("memory limits need cgroups: run it in a delegated scope")
	for _, first := range []string{ping("x"), `{"jsonrpc":"2.0","id":"x","method":"server/discover"}`, call("x", "echo", "{}")} {
		b := newFake("echo")
		c := serve(t, b, func(cfg *Config) { cfg.Refuse = remedy })
		c.send("nonsense", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, first, ping("y"))
		if a := c.read(); a.Error == nil || a.Error.Code != codeParse {
			t.Errorf("%+v", a)
		}
		if a := c.read(); a.Error == nil || a.Error.Message != remedy.Error() || string(a.ID) != `"x"` {
			t.Errorf("%+v", a)
		}
		if err := c.wait(); !errors.Is(err, remedy) {
			t.Errorf("Serve returned %v", err)
		}
		if n := b.count("refused sandbox_unavailable: " + remedy.Error()); n != b.count("call") || n != strings.Count(first, "tools/call") {
			t.Errorf("a call was not refused, or has no row:\n%s", b.log())
		}
		if line, err := c.lines.ReadString('\n'); err != io.EOF {
			t.Errorf("more than the remedy was said: %q", line)
		}
	}
	c := serve(t, newFake(), func(cfg *Config) { cfg.Refuse = remedy })
	c.in.Close()
	if err := c.wait(); !errors.Is(err, remedy) {
		t.Errorf("without a request Serve returned %v", err)
	}
}
