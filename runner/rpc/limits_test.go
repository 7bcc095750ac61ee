package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"toolrun/runner"
)

// deaf is a client that does not read.
type deaf struct{ ear chan struct{} }

func (d deaf) Write(p []byte) (int, error) {
	<-d.ear
	return 0, errors.New("gone")
}

// SCENARIOS 62.
func TestLinesUpToTheMaximumAreAnsweredAndLongerOnesDrained(t *testing.T) {
	b := newFake("echo")
	c := serve(t, b)
	arg := func(n int) string { return `{"s":"` + strings.Repeat("a", n) + `"}` }
	fixed := len(call(1, "echo", arg(0)))
	for i, length := range []int{1<<20 + fixed, 65535, 65536, 65537, MaxLineBytes} {
		go c.send(call(i, "echo", arg(length-len(call(i, "echo", arg(0))))))
		if a := c.read(); a.Error != nil || len(a.Result) < length-fixed {
			t.Fatalf("line of %d bytes: %+v", length, a.Error)
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var sent sync.WaitGroup // who sends holds the line too
	sent.Go(func() { c.send(call(77, "echo", arg(40<<20)), ping("end")) })
	if a := c.read(); a.Error == nil || a.Error.Code != codeInvalidRequest || string(a.ID) != "77" {
		t.Errorf("the long line: %+v", a)
	}
	if a := c.read(); string(a.ID) != `"end"` || a.Error != nil {
		t.Errorf("ping: %+v", a)
	}
	sent.Wait()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("%d bytes are kept of a line that was drained", grown)
	}
	if n := b.count(fmt.Sprintf("rejected -32600 %d bytes", len(call(77, "echo", arg(40<<20))))); n != 1 {
		t.Errorf("rejected lines: %s", b.log())
	}
}

func TestClientThatDoesNotReadHoldsUpNoRowAndNoStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake("echo")
		stdin, in := io.Pipe()
		d := deaf{make(chan struct{})}
		ctx, stop := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Serve(ctx, Config{In: stdin, Out: d, Backend: b}) }()
		for i := range 100 {
			io.WriteString(in, call(i, "echo", "{}")+"\n")
		}
		synctest.Wait()
		if n := b.count("row"); n != 100 {
			t.Errorf("%d rows", n)
		}
		start := time.Now()
		stop(runner.ErrInterrupted)
		<-ended
		if took := time.Since(start); took > flushWait {
			t.Errorf("Serve returned after %v", took)
		}
		close(d.ear)
		in.Close()
	})
}

func TestReadingIsPutOffWhileTooMuchWaitsForTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake("echo")
		stdin, in := io.Pipe()
		d := deaf{make(chan struct{})}
		ended := make(chan error, 1)
		go func() { ended <- Serve(t.Context(), Config{In: stdin, Out: d, Backend: b}) }()
		big := `{"s":"` + strings.Repeat("a", 8<<20) + `"}`
		const calls = 10
		var sent atomic.Int32
		next := make(chan int)
		go func() {
			for i := range next {
				io.WriteString(in, call(i, "echo", big)+"\n")
				sent.Add(1)
			}
			in.Close()
		}()
		i := 0
		for ; i == int(sent.Load()); i++ { // until one is not taken
			if i == calls {
				t.Fatal("everything was read")
			}
			next <- i
			synctest.Wait()
		}
		if i == 1 {
			t.Error("nothing was read")
		}
		close(d.ear) // the write fails: what waits is dropped, and reading goes on
		for ; i < calls; i++ {
			next <- i
		}
		close(next)
		if err := <-ended; err != nil || b.count("row") != calls {
			t.Errorf("Serve returned %v, %d rows", err, b.count("row"))
		}
	})
}

// SCENARIOS 68.
func TestSlowCallsHoldNobodyUp(t *testing.T) {
	b := newFake("slow", "echo")
	c := serve(t, b)
	for i := range 300 {
		c.send(call(1000+i, "slow", "{}"))
	}
	c.send(call(2, "slow", "{}"), ping(3), `{"jsonrpc":"2.0","id":4,"method":"tools/list"}`, call(5, "echo", "{}"))
	got := map[string]bool{}
	for range 3 {
		got[string(c.read().ID)] = true
	}
	if !got["3"] || !got["4"] || !got["5"] {
		t.Errorf("answered: %v", got)
	}
	c.stop(runner.ErrInterrupted)
	for range 301 {
		c.read()
	}
	if err := c.wait(); !errors.Is(err, runner.ErrInterrupted) {
		t.Error(err)
	}
}

func TestBatchThatIsTooLongIsRefused(t *testing.T) {
	b := newFake("echo")
	c := serve(t, b)
	c.send(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`)
	c.read()
	batchOf := func(n int) string {
		members := make([]string, n)
		for i := range members {
			members[i] = ping(i)
		}
		return "[" + strings.Join(members, ",") + "]"
	}
	c.send(batchOf(maxBatch + 1))
	if a := c.read(); a.Error == nil || a.Error.Code != codeInvalidRequest {
		t.Errorf("%+v", a)
	}
	c.send(batchOf(maxBatch))
	line, err := c.lines.ReadBytes('\n')
	var answers []answer
	if err != nil || json.Unmarshal(line, &answers) != nil || len(answers) != maxBatch {
		t.Errorf("%d answers, %v", len(answers), err)
	}
}

func TestAnswersAreWholeLinesWhoeverWritesThem(t *testing.T) {
	b := newFake("echo")
	c := serve(t, b)
	var senders sync.WaitGroup
	var mu sync.Mutex
	for i := range 8 {
		senders.Go(func() {
			for j := range 50 {
				mu.Lock()
				c.send(call(fmt.Sprintf("%d.%d", i, j), "echo", `{"s":"`+strings.Repeat("x", i*2000)+`"}`))
				mu.Unlock()
			}
		})
	}
	for range 400 {
		if a := c.read(); a.Error != nil || !bytes.HasSuffix(a.Result, []byte(`"isError":false}`)) {
			t.Fatalf("%+v", a)
		}
	}
	senders.Wait()
}
