package rpc

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
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
		c.t.Error(err)
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
