package runner

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"toolrun/archive/ledger"
	"toolrun/sandbox"
)

// says is a box whose program prints what comes from lines, and ends when it is killed.
func says(lines <-chan string) boxFunc {
	return func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		started := time.Now()
		cmd.Started()
		for {
			select {
			case line := <-lines:
				io.WriteString(cmd.Stdout, line)
			case <-ctx.Done():
				return sandbox.Result{Outcome: sandbox.Cancelled, Signal: 9, Started: started, Usage: sandbox.Unmeasured}
			}
		}
	}
}

var inSession = Origin{SessionID: "s"}

// stay makes a call of a program that stays.
func (g *rig) stay(ctx context.Context, tool string, pairs ...any) Reply {
	return g.Call(ctx, Request{Name: tool, Arguments: args(pairs...), Origin: inSession})
}

// open starts a program and gives its handle.
func (g *rig) open(tool string) string {
	g.t.Helper()
	reply := g.stay(g.t.Context(), tool+"_start")
	if reply.Process == nil || !reply.Process.Running {
		g.t.Fatalf("%s_start: %s", tool, reply.Text())
	}
	return reply.Process.Handle
}

// drop ends a program at once, without the time that a stop gives it.
func (g *rig) drop(handle string) {
	h := g.handles.find(handle, inSession.SessionID, "sh")
	h.end(&stopped{ledger.OutcomeCancelled, "stopped"})
	<-h.ended
}

func TestACostlyPatternEndsWithItsRead(t *testing.T) {
	lines := make(chan string, 1)
	g := newRig(t, stayCatalog, says(lines))
	h := g.open("sh")
	lines <- strings.Repeat("xy", unreadBytes/2)
	costly := strings.Repeat("(x|y?|xy){0,60}", 2) + "z"
	began := time.Now()
	reply := g.stay(t.Context(), "sh_read", "handle", h, "pattern", costly, "wait_ms", 300)
	if took := time.Since(began); reply.Process == nil || reply.Process.Waited != waitedTime || took > 10*time.Second {
		t.Errorf("after %v: %s", took, reply.Text()[:200])
	}
	lines <- strings.Repeat("xy", unreadBytes/2)
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(ErrInterrupted) })
	began = time.Now()
	reply = g.stay(ctx, "sh_read", "handle", h, "pattern", costly, "wait_ms", 60000)
	if took := time.Since(began); reply.Row == nil || reply.Row.Outcome != ledger.OutcomeInterrupted || reply.Row.OutputBytes != 0 || took > 5*time.Second {
		t.Errorf("after %v: %s", took, reply.Text()[:200])
	}
	for pattern, problem := range map[string]string{
		"(": "RE2", `(?=x)`: "RE2", strings.Repeat(".{1,1000}", 20): "repeats too much", strings.Repeat("x", 70000): "1000",
	} {
		reply := g.stay(t.Context(), "sh_read", "handle", h, "pattern", pattern)
		if reply.Row.Outcome != ledger.OutcomeInvalidArguments || !strings.Contains(reply.Text(), `"pattern"`) || !strings.Contains(reply.Text(), problem) {
			t.Errorf("pattern %.20q: %.300s", pattern, reply.Text())
		}
	}
	g.end()
}

func TestWhatARunFinishedWithIsReadByOneOfTwoReads(t *testing.T) {
	lines := make(chan string)
	g := newRig(t, stayCatalog, says(lines))
	h := g.open("sh")
	const n = 8
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []string
	for range n {
		wg.Go(func() {
			reply := g.stay(t.Context(), "sh_read", "handle", h, "pattern", `tick \d+\n`, "wait_ms", 60000)
			if reply.Process == nil || reply.Process.Waited != waitedPattern || !strings.Contains(reply.Stdout.Text, "tick ") {
				t.Errorf("a pattern that matched is not in what was read: %s", reply.Text())
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, reply.Stdout.Text)
		})
	}
	stop := make(chan struct{})
	go func() {
		for i := 0; ; i++ {
			select {
			case lines <- fmt.Sprintf("tick %d\n", i):
				time.Sleep(time.Millisecond)
			case <-stop:
				return
			}
		}
	}()
	wg.Wait()
	close(stop)
	seen := make(map[string]bool)
	for _, line := range strings.Fields(strings.ReplaceAll(strings.Join(all, ""), "tick ", "")) {
		if seen[line] {
			t.Errorf("tick %s was read twice", line)
		}
		seen[line] = true
	}
	g.end()
}

func TestAColouredPromptIsWaitedFor(t *testing.T) {
	lines := make(chan string, 1)
	g := newRig(t, stayCatalog+"pty = true\n", says(lines))
	h := g.open("sh")
	for _, printed := range []string{"\x1b[1;35m>>> \x1b[0m", "re\x1b[31mady\x1b[0m>>> ", strings.Repeat("line\r\n", 10000) + ">\x1b[1m>\x1b[22m> ", ">>> "} {
		lines <- printed
		reply := g.stay(t.Context(), "sh_read", "handle", h, "pattern", `>>> $`, "wait_ms", 20000)
		if reply.Process.Waited != waitedPattern {
			t.Errorf("%.20q: waited for %s", printed, reply.Process.Waited)
		}
	}
	g.end()
}

func TestAProgramIsNotIdleWhileACallUsesIt(t *testing.T) {
	g := newRig(t, stayCatalog+"idle = \"200ms\"\n", says(nil))
	h := g.open("sh")
	if reply := g.stay(t.Context(), "sh_read", "handle", h, "pattern", "never", "wait_ms", 1000); !reply.Process.Running {
		t.Errorf("it was ended under a call that uses it: %s", reply.Text())
	}
	ended := g.handles.find(h, "s", "sh").ended
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("it is not ended when no call uses it")
	}
	g.end()
}

func TestAStartThatIsTakenBackLeavesNoProgram(t *testing.T) {
	takeBack := make(chan context.CancelCauseFunc, 1)
	g := newRig(t, stayCatalog, boxFunc(func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		go (<-takeBack)(ErrCancelled)
		cmd.Started()
		<-ctx.Done()
		return sandbox.Result{Outcome: sandbox.Cancelled, Signal: 9, Started: time.Now(), Usage: sandbox.Unmeasured}
	}))
	for range 50 {
		ctx, cancel := context.WithCancelCause(t.Context())
		takeBack <- cancel
		reply := g.stay(ctx, "sh_start")
		cancel(nil)
		if reply.Row.Outcome == ledger.OutcomeOK { // it came too late to be taken back
			g.drop(reply.Process.Handle)
		} else if reply.Process.Running {
			t.Fatalf("nobody knows of it, and it runs: %s", reply.Text())
		}
	}
	g.end()
}

func TestCallsThatWaitForProgramsAreBounded(t *testing.T) {
	lines := make(chan string, 1)
	g := newRig(t, stayCatalog, says(lines), func(c *Config) { c.Queue = 2 })
	h := g.open("sh")
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { g.stay(t.Context(), "sh_read", "handle", h, "pattern", "never", "wait_ms", 60000) })
	}
	for g.handles.waiting.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	if reply := g.stay(t.Context(), "sh_read", "handle", h); reply.Row.Outcome != ledger.OutcomeBusy {
		t.Errorf("%s", reply.Text())
	}
	if reply := g.stay(t.Context(), "sh_stop", "handle", h); reply.Row.Outcome != ledger.OutcomeOK || reply.Process.Running {
		t.Errorf("a stop must not wait: %s", reply.Text())
	}
	wg.Wait()
	g.end()
}

// The clock of the host passes the end of a month, and is set back, while a program is open: what it lasted is what it lasted.
func TestAProgramOutlivesTheMonthAndAClockThatSteps(t *testing.T) {
	var mu sync.Mutex
	now := time.Date(2026, 11, 30, 23, 59, 59, 900e6, time.UTC)
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	step := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	g := newRig(t, stayCatalog, says(nil), func(c *Config) { c.Now = clock })
	over, back := g.open("sh"), g.open("sh")
	step(time.Minute)
	g.drop(over)
	step(-2 * time.Hour)
	g.drop(back)
	rows, _ := g.end()
	for _, row := range rows {
		switch row.ToolCallID.String() {
		case over:
			if row.StartedAt != "2026-11-30T23:59:59.900Z" || row.EndedAt != "2026-12-01T00:00:59.900Z" || row.DurationMS != 60000 {
				t.Errorf("%s to %s, %d ms", row.StartedAt, row.EndedAt, row.DurationMS)
			}
		case back:
			if row.StartedAt != row.EndedAt || row.DurationMS != 0 {
				t.Errorf("%s to %s, %d ms", row.StartedAt, row.EndedAt, row.DurationMS)
			}
		}
	}
}

func TestTenThousandHandlesAreFewAtATime(t *testing.T) {
	n := 10000
	if testing.Short() {
		n = 500
	}
	g := newRig(t, stayCatalog, boxFunc(func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		cmd.Started()
		return sandbox.Result{Outcome: sandbox.Exited, HasExit: true, Started: time.Now(), Usage: sandbox.Unmeasured}
	}), func(c *Config) { c.Payloads = PayloadsHash })
	var first string
	for i := range n {
		reply := g.stay(t.Context(), "sh_start")
		if reply.Row.Outcome != ledger.OutcomeOK && reply.Row.Outcome != ledger.OutcomeBusy {
			t.Fatalf("start %d: %s", i, reply.Text())
		}
		if i == 0 {
			first = reply.Process.Handle
		}
	}
	g.handles.mu.Lock()
	kept := len(g.handles.list)
	g.handles.mu.Unlock()
	if kept > keptHandles+4 {
		t.Errorf("%d are kept, want %d and those that are open", kept, keptHandles)
	}
	if reply := g.stay(t.Context(), "sh_read", "handle", first); reply.Row.Outcome != ledger.OutcomeInvalidArguments || !strings.Contains(reply.Text(), "long ago") {
		t.Errorf("%s", reply.Text())
	}
	g.end()
}

func TestAListNamesEveryProgramWhole(t *testing.T) {
	g := newRig(t, strings.Replace(stayCatalog, "concurrency = 3", "pty = true\npreview = \"1KiB\"", 1), says(nil))
	var want strings.Builder
	for range 200 {
		fmt.Fprintf(&want, "program %s still runs, since 0s\n  [\"/bin/sh\"]\n", g.open("sh"))
	}
	reply := g.stay(t.Context(), "sh_list")
	if got := regexp.MustCompile(`since [^\n]+`).ReplaceAllString(reply.Stdout.Text, "since 0s"); got != want.String() {
		t.Errorf("%d bytes left out of %.300q", reply.Stdout.LeftOut, got)
	}
	g.Interrupt()
	g.end()
}

func TestWhatNobodyReadInTimeIsCounted(t *testing.T) {
	for _, pty := range []string{"", "pty = true\n"} {
		lines := make(chan string)
		g := newRig(t, stayCatalog+pty, says(lines))
		h := g.open("sh")
		for range 30 {
			lines <- strings.Repeat(strings.Repeat("x", 8)+"\r\n", 1000)
		}
		lines <- "the end\r\n"
		reply := g.stay(t.Context(), "sh_read", "handle", h, "pattern", "the end")
		if want := fmt.Sprintf("[toolrun: %d bytes left out]", 300009-unreadBytes); !strings.HasPrefix(reply.Stdout.Text, want) || strings.Contains(reply.Stdout.Text, "  xx") {
			t.Errorf("%.100q, want %s", reply.Stdout.Text, want)
		}
		g.end()
	}
}
