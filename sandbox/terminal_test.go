package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// screen is a writer that others may wait on.
type screen struct {
	mu  sync.Mutex
	buf bytes.Buffer
	on  chan struct{}
}

func newScreen() *screen { return &screen{on: make(chan struct{}, 1)} }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.on <- struct{}{}:
	default:
	}
	return s.buf.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// await waits until the screen shows text.
func (s *screen) await(t *testing.T, text string) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for !strings.Contains(s.String(), text) {
		select {
		case <-s.on:
		case <-timeout:
			t.Fatalf("the screen never shows %q, but %q", text, s.String())
		}
	}
}

func terminalBox(t *testing.T, size Terminal) *Box {
	b, _ := testBox(t, func(p *Profile) { p.Terminal = size })
	return b
}

// shell is a command line as a Command.
func shell(line string, out *screen) Command {
	return Command{Argv: []string{"sh", "-c", line}, Exe: "/bin/sh", Env: []string{"PATH=/usr/bin:/bin", "TERM=xterm"}, Dir: "/", Stdout: out, Timeout: 20 * time.Second}
}

func TestTheEndOfATerminalIsNoFailure(t *testing.T) {
	b := terminalBox(t, Terminal{24, 80})
	calls := 50
	if testing.Short() {
		calls = 10
	}
	for range calls {
		r, out := run(t, b, 10*time.Second, "printf", `a\nb\n`)
		if r.Outcome != Exited || r.ExitCode != 0 || out != "a\r\nb\r\n" {
			t.Fatalf("%v %v, output %q", r.Outcome, r.Err, out)
		}
	}
}

func TestASignalIsNoExitCodeAtATerminalEither(t *testing.T) {
	b := terminalBox(t, Terminal{24, 80})
	for _, signal := range []unix.Signal{unix.SIGKILL, unix.SIGTERM, unix.SIGSEGV} {
		out := newScreen()
		r := b.Run(t.Context(), shell(fmt.Sprintf("printf before; kill -%d $$", signal), out))
		if r.Outcome != Signaled || r.HasExit || r.Signal != signal || out.String() != "before" {
			t.Errorf("%v: outcome %d, exit %d, signal %v, %q", signal, r.Outcome, r.ExitCode, r.Signal, out)
		}
	}
}

func TestATerminalHasTheDeclaredSize(t *testing.T) {
	for _, size := range []Terminal{{24, 80}, {50, 200}} {
		out := newScreen()
		r := terminalBox(t, size).Run(t.Context(), shell("stty size; test -t 0 && test -t 1 && test -t 2 && echo tty; echo direct > /dev/tty", out))
		want := fmt.Sprintf("%d %d\r\ntty\r\ndirect\r\n", size.Rows, size.Cols)
		if r.ExitCode != 0 || out.String() != want {
			t.Errorf("%v: %q, want %q", r.Err, out, want)
		}
	}
}

func TestWhoHoldsTheTerminalOpenIsNotWaitedFor(t *testing.T) {
	b := terminalBox(t, Terminal{24, 80})
	out := newScreen()
	began := time.Now()
	r := b.Run(t.Context(), shell("sleep 63.17 & echo bg; exit 0", out))
	if r.Outcome != Exited || r.ExitCode != 0 || out.String() != "bg\r\n" || time.Since(began) > 5*time.Second {
		t.Errorf("%v, code %d after %v: %q", r.Outcome, r.ExitCode, time.Since(began), out)
	}
	if n := processes(t, "63.17"); n != 0 {
		t.Errorf("%d sleepers are left", n)
	}
}

func TestNothingOfTheTailOfATerminalIsLost(t *testing.T) {
	b := terminalBox(t, Terminal{24, 80})
	var wg sync.WaitGroup
	calls := 8
	if testing.Short() {
		calls = 2
	}
	for range calls {
		wg.Go(func() {
			out := newScreen()
			r := b.Run(context.Background(), shell("seq 1 20000", out))
			if got := len(out.String()); r.Outcome != Exited || got != 108894+20000 || !strings.HasSuffix(out.String(), "20000\r\n") {
				t.Errorf("%v: %d bytes", r.Outcome, got)
			}
		})
	}
	wg.Wait()
}

func TestWhatIsTypedIsNotEchoedAndEnds(t *testing.T) {
	b := terminalBox(t, Terminal{24, 80})
	for _, input := range []string{"hush hush\n", "no newline", ""} {
		out := newScreen()
		c := shell("wc -c", out)
		c.Stdin = []byte(input)
		r := b.Run(t.Context(), c)
		if want := fmt.Sprintf("%d\r\n", len(input)); r.Outcome != Exited || out.String() != want {
			t.Errorf("input %q: %v, output %q, want %q", input, r.Outcome, out, want)
		}
	}
}

func TestInputIsWrittenWhileTheProgramRuns(t *testing.T) {
	for name, size := range map[string]Terminal{"pipes": {}, "terminal": {24, 80}} {
		t.Run(name, func(t *testing.T) {
			out, in := newScreen(), new(Input)
			c := shell("while read line; do echo \"<$line>\"; done; echo over", out)
			c.Input = in
			b := terminalBox(t, size)
			ended := make(chan Result, 1)
			go func() { ended <- b.Run(t.Context(), c) }()
			for _, line := range []string{"one", "two", "three"} {
				if err := in.Write([]byte(line + "\n")); err != nil {
					t.Fatal(err)
				}
				out.await(t, "<"+line+">")
			}
			in.Close()
			out.await(t, "over")
			if r := <-ended; r.Outcome != Exited || r.ExitCode != 0 {
				t.Errorf("%v, code %d, %v", r.Outcome, r.ExitCode, r.Err)
			}
			if err := in.Write([]byte("late")); !errors.Is(err, ErrInputEnded) {
				t.Errorf("input after the end: %v", err)
			}
		})
	}
}

// The end of the input comes while the program still reads line by line. The kernel makes a NUL of it when it does not any
// more: a shell that was about to draw its prompt waited for its end until the timeout.
func TestTheEndOfTheInputReachesAProgramThatReadsCharacters(t *testing.T) {
	b := terminalBox(t, Terminal{24, 80})
	const line = `sleep 0.2; stty -icanon min 1; until [ "$c" = 4 ]; do c=$(dd bs=1 count=1 2>/dev/null | od -An -tu1 | tr -d ' '); done`
	for name, c := range map[string]func(*Command){
		"stdin": func(c *Command) { c.Stdin = []byte("a line\n") },
		"input": func(c *Command) { c.Input = &Input{}; c.Input.Close() },
	} {
		cmd := shell(line, newScreen())
		c(&cmd)
		if r := b.Run(t.Context(), cmd); r.Outcome != Exited || r.ExitCode != 0 {
			t.Errorf("%s: %v %v %v", name, r.Outcome, r.ExitCode, r.Err)
		}
	}
}

func TestInputThatIsNotReadIsBounded(t *testing.T) {
	out, in := newScreen(), new(Input)
	c := shell("echo up; sleep 30", out)
	c.Input = in
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan Result, 1)
	b := terminalBox(t, Terminal{})
	go func() { ended <- b.Run(ctx, c) }()
	out.await(t, "up")
	var err error
	for range 1000 {
		if err = in.Write(make([]byte, 10<<10)); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrInputFull) || in.Pending() > MaxPendingInput {
		t.Errorf("%v, %d bytes wait", err, in.Pending())
	}
	cancel()
	if r := <-ended; r.Outcome != Cancelled {
		t.Errorf("outcome %v", r.Outcome)
	}
}

func TestControlCReachesTheForegroundOfATerminal(t *testing.T) {
	out, in := newScreen(), new(Input)
	c := shell("trap 'echo caught; exit 3' INT; echo up; while :; do sleep 0.05; done", out)
	c.Input = in
	b := terminalBox(t, Terminal{24, 80})
	ended := make(chan Result, 1)
	go func() { ended <- b.Run(t.Context(), c) }()
	out.await(t, "up")
	in.Write([]byte{3})
	if r := <-ended; r.ExitCode != 3 || !strings.Contains(out.String(), "caught") {
		t.Errorf("code %d: %q", r.ExitCode, out)
	}
}

func TestALineThatATerminalWouldCutIsTold(t *testing.T) {
	full := strings.Repeat("x", 4095)
	for input, fits := range map[string]bool{
		"a\n" + full + "\nb": true, "a\n" + full + "y\nb": false,
		full + "\x03" + full: true, full + "\r" + full: true, full + "\x16\n": false, full[1:] + "\x16\n\n" + full: true, "\x16\x16" + full: false,
	} {
		if got := new(Line).Type([]byte(input)); got != fits {
			t.Errorf("%d bytes, %.10q: %v", len(input), input, got)
		}
		var typed Line
		if got := typed.Type([]byte(input[:100])) && typed.Type([]byte(input[100:])); got != fits {
			t.Errorf("%d bytes in two parts: %v", len(input), got)
		}
	}
}

func TestATerminalThatAProgramClosesAndOpensAgainIsReadToItsEnd(t *testing.T) {
	b := terminalBox(t, Terminal{24, 80})
	out := newScreen()
	r := b.Run(t.Context(), shell("echo before; exec <&- >&- 2>&-; sleep 0.3; echo after >/dev/tty; exit 4", out))
	if r.Outcome != Exited || r.ExitCode != 4 || out.String() != "before\r\nafter\r\n" {
		t.Errorf("%v, code %d: %q", r.Err, r.ExitCode, out)
	}
}

func TestInputThatNobodyCanReadAnyMoreIsNotTaken(t *testing.T) {
	b := terminalBox(t, Terminal{})
	out, in := newScreen(), new(Input)
	c := shell("exec <&-; echo closed; sleep 30", out)
	c.Input = in
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan Result, 1)
	go func() { ended <- b.Run(ctx, c) }()
	out.await(t, "closed")
	var err error
	for end := time.Now().Add(10 * time.Second); err == nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
		err = in.Write(nil) // says whether it would be taken, and leaves nothing that could not be written
	}
	if !errors.Is(err, ErrInputEnded) {
		t.Errorf("input for a program that has closed its stdin: %v", err)
	}
	cancel()
	<-ended
}

// A program that does not read for a while gets all that was typed, and then the end, though its terminal was full.
func TestATerminalThatWasFullComesToItsEnd(t *testing.T) {
	b := terminalBox(t, Terminal{24, 80})
	out, in := newScreen(), new(Input)
	c := shell("echo up; until [ -e /tmp/go ]; do sleep 0.05; [ $((i=i+1)) -lt 8 ] || touch /tmp/go; done; wc -c", out)
	c.Input = in
	ended := make(chan Result, 1)
	go func() { ended <- b.Run(t.Context(), c) }()
	out.await(t, "up")
	line := strings.Repeat("x", 999) + "\n"
	if err := in.Write([]byte(strings.Repeat(line, 1000))); err != nil {
		t.Fatal(err)
	}
	in.Close()
	if r := <-ended; r.ExitCode != 0 || !strings.HasSuffix(out.String(), "1000000\r\n") {
		t.Errorf("%v, code %d: %q", r.Outcome, r.ExitCode, out)
	}
}

// Whoever waits for room at a terminal must not wait busily.
func TestATerminalThatIsFullCostsNothing(t *testing.T) {
	for name, size := range map[string]Terminal{"pipes": {}, "terminal": {24, 80}} {
		t.Run(name, func(t *testing.T) {
			b := terminalBox(t, size)
			out, in := newScreen(), new(Input)
			c := shell("echo up; exec sleep 30", out)
			c.Input = in
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan Result, 1)
			go func() { ended <- b.Run(ctx, c) }()
			out.await(t, "up")
			for in.Write([]byte(strings.Repeat("y", 999)+"\n")) == nil {
			}
			in.Close()
			var before, after unix.Rusage
			unix.Getrusage(unix.RUSAGE_SELF, &before)
			time.Sleep(500 * time.Millisecond)
			unix.Getrusage(unix.RUSAGE_SELF, &after)
			used := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
			cancel()
			if r := <-ended; r.Outcome != Cancelled || used > 250*time.Millisecond {
				t.Errorf("outcome %v, %v of CPU in half a second", r.Outcome, used)
			}
		})
	}
}
