package rpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"toolrun/runner"
)

// client is the other end of one Serve, over real pipes.
type client struct {
	t       *testing.T
	in, out *os.File // the client's ends
	lines   *bufio.Reader
	stop    context.CancelCauseFunc
	ended   chan error
}

func serve(t *testing.T, b Backend, change ...func(*Config)) *client {
	t.Helper()
	stdin, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	c := &client{t: t, in: in, out: out, lines: bufio.NewReader(out), stop: stop, ended: make(chan error, 1)}
	cfg := Config{In: stdin, Out: stdout, Backend: b, Version: "1.0", Getenv: func(string) string { return "" }}
	for _, f := range change {
		f(&cfg)
	}
	go func() {
		err := Serve(ctx, cfg)
		stdout.Close()
		stdin.Close()
		c.ended <- err
	}()
	t.Cleanup(func() {
		in.Close()
		out.Close()
	})
	return c
}

func (c *client) send(lines ...string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, strings.Join(lines, "\n")+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// answer is one line from the server.
type answer struct {
	ID     json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
}

func (c *client) read() (a answer) {
	c.t.Helper()
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		c.t.Fatalf("no answer: %v", err)
	}
	if err := json.Unmarshal(line, &a); err != nil {
		c.t.Fatalf("answer %q: %v", line, err)
	}
	return a
}

// wait returns what Serve returned.
func (c *client) wait() error {
	c.t.Helper()
	select {
	case err := <-c.ended:
		return err
	case <-time.After(10 * time.Second):
		c.t.Fatal("Serve does not end")
		return nil
	}
}

func call(id any, name, arguments string) string {
	b, _ := json.Marshal(id)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, b, name, arguments)
}

func ping(id any) string {
	b, _ := json.Marshal(id)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"ping"}`, b)
}

func cancelLine(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
}

// eventually waits for what another goroutine does.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
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
	go c.send(call(77, "echo", arg(40<<20)), ping("end"))
	if a := c.read(); a.Error == nil || a.Error.Code != codeInvalidRequest || string(a.ID) != "77" {
		t.Errorf("the long line: %+v", a)
	}
	if a := c.read(); string(a.ID) != `"end"` || a.Error != nil {
		t.Errorf("ping: %+v", a)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("%d bytes are kept of a line that was drained", grown)
	}
	if n := b.count(fmt.Sprintf("rejected -32600 %d bytes", len(call(77, "echo", arg(40<<20))))); n != 1 {
		t.Errorf("rejected lines: %s", b.log())
	}
}

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

// deaf is a client that does not read.
type deaf struct{ ear chan struct{} }

func (d deaf) Write(p []byte) (int, error) {
	<-d.ear
	return 0, errors.New("gone")
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

// SCENARIOS 67.
func TestCancelAtAnyMomentGivesOneRowAndAtMostOneAnswer(t *testing.T) {
	b := newFake("echo", "slow")
	c := serve(t, b)
	const calls = 2000
	answers := make(chan map[string]int)
	go func() {
		seen := make(map[string]int)
		for {
			line, err := c.lines.ReadBytes('\n')
			if err != nil {
				answers <- seen
				return
			}
			var a answer
			if err := json.Unmarshal(line, &a); err != nil || a.Error != nil {
				t.Errorf("answer %s", line)
			}
			seen[string(a.ID)]++
		}
	}()
	for i := range calls {
		name := "echo"
		if i%3 == 0 {
			name = "slow" // ends by the cancel only
		}
		id := fmt.Sprint(i)
		lines := []string{call(i, name, "{}")}
		for j := range rand.IntN(4) { // a pause of some other work
			lines = append(lines, ping(fmt.Sprintf("p%d.%d", i, j)))
		}
		lines = append(lines, cancelLine(id), cancelLine(id), cancelLine(`"`+id+`"`), cancelLine(fmt.Sprint(calls+i)))
		c.send(lines...)
	}
	c.in.Close()
	seen := <-answers
	if err := c.wait(); err != nil {
		t.Error(err)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%d answers to %s", n, id)
		}
	}
	for i := 0; i < calls; i += 3 {
		if seen[fmt.Sprint(i)] != 0 {
			t.Errorf("cancelled call %d was answered", i)
		}
	}
	rows, ends := b.count("row"), strings.Count(b.log(), " ok\n")+strings.Count(b.log(), " cancelled\n")
	if rows != calls || ends != calls {
		t.Errorf("%d rows, %d of them ok or cancelled", rows, ends)
	}
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

// SCENARIOS 70, with the bytes that a txtar file cannot hold.
func TestBytesThatAreNoTextAreAnswered(t *testing.T) {
	b := newFake("echo")
	c := serve(t, b)
	for _, line := range []string{"\xff\xfe", "\x00", "\ufeff" + ping(1), `{"jsonrpc":"2.0","id":1,"method":"p` + "\xc3" + `"}`, strings.Repeat("[", 20000), strings.Repeat(`{"a":`, 20000)} {
		c.send(line)
		if a := c.read(); a.Error == nil || a.Error.Code != codeParse || string(a.ID) != "null" {
			t.Errorf("%.20q: %+v", line, a)
		}
	}
	c.send("\r\n\r", " \t ", ping(2)+"\r")
	if a := c.read(); string(a.ID) != "2" {
		t.Errorf("%+v", a)
	}
}

// SCENARIOS 71.
func TestNumbersReachTheBackendDigitForDigit(t *testing.T) {
	b := newFake("echo")
	c := serve(t, b)
	for _, n := range []string{"9007199254740993", "9223372036854775807", "1e2", "0.1", "-0", "18446744073709551616", "1.10", "123456789012345678901234567890.0"} {
		c.send(call(1, "echo", `{"n":`+n+`}`))
		c.read()
		if b.count(`call "echo" {"n":`+n+`}`) != 1 {
			t.Errorf("%s: %s", n, b.log())
		}
	}
}

// SCENARIOS 77 has its transcript; this is the id that grows.
func TestAnyIntegerAndStringIsAnId(t *testing.T) {
	c := serve(t, newFake())
	for _, id := range []string{"-0", strings.Repeat("9", 400), `"` + strings.Repeat("a", 100000) + `"`, `"\u0000"`, `"\ud83d\ude00"`} {
		c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		if a := c.read(); string(a.ID) != id || a.Error != nil {
			t.Errorf("%.40s: %.40s", id, a.ID)
		}
	}
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
		if b.count("call") != 0 {
			t.Error("a call reached the backend")
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

func TestPanicOfAHandlerIsLoggedWithoutItsArguments(t *testing.T) {
	var log lockedBuffer
	c := serve(t, newFake("boom", "echo"), func(cfg *Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	c.send(call(1, "boom", "{}"), call(2, "boom", "{}"), call(3, "echo", "{}"))
	codes := map[string]int{}
	for range 3 {
		if a := c.read(); a.Error != nil {
			codes[string(a.ID)] = a.Error.Code
		}
	}
	if codes["1"] != codeInternal || codes["2"] != codeInternal || codes["3"] != 0 {
		t.Errorf("codes %v", codes)
	}
	if s := log.take(); !strings.Contains(s, "fake_test.go") || strings.Contains(s, "boom with an argument") {
		t.Errorf("log: %s", s)
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

func TestSessionThatCannotBeRecordedIsTriedAgain(t *testing.T) {
	b := newFake("echo")
	b.noTrace = true
	c := serve(t, b)
	c.send(call(1, "echo", "{}"))
	c.read()
	b.mu.Lock()
	b.noTrace = false
	b.mu.Unlock()
	for i := range 2 {
		c.send(call(2+i, "echo", "{}"))
		c.read()
	}
	if b.count("session") != 1 {
		t.Error(b.log())
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
