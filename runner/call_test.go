package runner

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/sandbox"
)

func TestASuccessfulCallIsWhollyOnTheRecord(t *testing.T) {
	g := newRig(t, testCatalog, exits(0, "hello\n", "a warning\n"))
	reply := g.Call(t.Context(), Request{Name: "echo", Arguments: args("text", "hi"), Origin: Origin{
		CallID: "toolu_1", SessionID: "s1", SessionFrom: "env", Turn: 3, Model: "claude-x", Client: "claude/2"}})
	must(t, reply.Err)
	if reply.IsError() || reply.Stdout.Text != "hello\n" || reply.Stderr.Text != "a warning\n" {
		t.Fatalf("reply: %+v", reply)
	}
	rows, lines := g.end()
	row := rows[0]
	if row.ToolCallID.String() != "toolu_1" || row.SessionID.String() != "s1" || row.Turn != 3 || row.SessionFrom != "env" {
		t.Errorf("identity: %s %s %d %s", row.ToolCallID, row.SessionID, row.Turn, row.SessionFrom)
	}
	if row.Outcome != ledger.OutcomeOK || row.Status != ledger.StatusSuccess || *row.ExitCode != 0 || row.ErrorType != "" || row.ErrorMessage != nil {
		t.Errorf("end: %s %s %d %s %v", row.Outcome, row.Status, *row.ExitCode, row.ErrorType, row.ErrorMessage)
	}
	if got := g.stored(row.InputHash); got != `{"text":"hi"}` || row.InputSummary.String() != got {
		t.Errorf("input object %q, summary %q", got, row.InputSummary)
	}
	if got := g.stored(string(row.OutputHash)); got != "hello\n" || row.OutputBytes != 6 || row.StoredBytes != 6 || row.OutputSummary.String() != "hello" {
		t.Errorf("output %q, %d bytes, %d stored, summary %q", got, row.OutputBytes, row.StoredBytes, row.OutputSummary)
	}
	if got := g.stored(string(row.StderrHash)); got != "a warning\n" || row.StderrBytes != 10 {
		t.Errorf("stderr %q, %d bytes", got, row.StderrBytes)
	}
	if row.Argv.String() != `["/bin/sh","-c","true","hi"]` || row.ExePath.String() != "/bin/sh" || len(row.ExeSHA256) != 64 || *row.CPUMS != 3 {
		t.Errorf("program: %s %s %s %d", row.Argv, row.ExePath, row.ExeSHA256, *row.CPUMS)
	}
	var types []string
	for _, l := range lines {
		types = append(types, l["type"].(string))
	}
	if got := strings.Join(types, " "); got != "catalog session tool_call tool_result catalog_unused" {
		t.Errorf("trace: %s", got)
	}
}

func TestNoToolStartsBeforeItsToolCallLineIsInTheFile(t *testing.T) {
	var path string
	seen := false
	g := newRig(t, testCatalog, boxFunc(func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		text, err := os.ReadFile(path)
		seen = err == nil && strings.Contains(string(text), `"arguments":{"text":"marker-8812"}`)
		return exits(0, "", "")(ctx, cmd)
	}))
	path = g.cfg.Run.Path()
	must(t, g.Call(t.Context(), Request{Name: "echo", Arguments: args("text", "marker-8812")}).Err)
	if !seen {
		t.Error("the program ran before its tool_call line was in the file")
	}
	g.end()
}

// TestEveryEndOfAProgram drives each result of the box to its row.
func TestEveryEndOfAProgram(t *testing.T) {
	res := func(r sandbox.Result) boxFunc {
		return func(_ context.Context, cmd sandbox.Command) sandbox.Result {
			io.WriteString(cmd.Stderr, "last words\n\n")
			r.Started = time.Now()
			return r
		}
	}
	for name, c := range map[string]struct {
		box               boxFunc
		outcome, status   string
		errorType, signal ledger.OrNull
		exit              int // -1: null
		message           string
		nothingStarted    bool
	}{
		"exit 3":      {box: exits(3, "", "oops\nbad thing\n \n"), outcome: "exit", status: "error", errorType: "ExitError", exit: 3, message: "exit status 3: bad thing"},
		"exit 137":    {box: exits(137, "", ""), outcome: "exit", status: "error", errorType: "ExitError", exit: 137, message: "exit status 137"},
		"signal":      {box: res(sandbox.Result{Outcome: sandbox.Signaled, Signal: 11}), outcome: "signal", status: "error", errorType: "SignalError", signal: "SIGSEGV", exit: -1, message: "ended by SIGSEGV: last words"},
		"timeout":     {box: res(sandbox.Result{Outcome: sandbox.TimedOut, Signal: 9}), outcome: "timeout", status: "timeout", errorType: "TimeoutError", signal: "SIGKILL", exit: -1, message: "timed out after 2m0s: last words"},
		"oom":         {box: res(sandbox.Result{Outcome: sandbox.OutOfMemory, Signal: 9, Usage: sandbox.Usage{OOMKills: 1}}), outcome: "oom", status: "error", errorType: "OutOfMemoryError", signal: "SIGKILL", exit: -1, message: "needed more memory than its limit of 1GiB (limits.memory): last words"},
		"cpu":         {box: res(sandbox.Result{Outcome: sandbox.CPULimit, Signal: 9}), outcome: "cpu_limit", status: "error", errorType: "CpuLimitError", signal: "SIGKILL", exit: -1, message: "used more than its CPU time of 10m0s (limits.cpu_time): last words"},
		"output":      {box: res(sandbox.Result{Outcome: sandbox.OutputLimit, Signal: 9}), outcome: "output_limit", status: "error", errorType: "OutputLimitError", signal: "SIGKILL", exit: -1, message: "wrote more than its limit of 1GiB (limits.output_total): last words"},
		"spawn":       {box: res(sandbox.Result{Outcome: sandbox.SpawnFailed, Err: errors.New(`execute /x: no such file (ENOENT)`)}), outcome: "spawn_failed", status: "error", errorType: "SpawnError", exit: -1, message: "execute /x: no such file (ENOENT)", nothingStarted: true},
		"unavailable": {box: res(sandbox.Result{Outcome: sandbox.Unavailable, Err: errors.New("no cgroup")}), outcome: "sandbox_unavailable", status: "blocked", errorType: "SandboxUnavailable", exit: -1, message: "no cgroup", nothingStarted: true},
		"capture":     {box: res(sandbox.Result{Outcome: sandbox.CaptureFailed, Signal: 9, Err: errors.New("no space")}), outcome: "capture_failed", status: "error", errorType: "CaptureError", signal: "SIGKILL", exit: -1, message: "no space"},
		"left over":   {box: res(sandbox.Result{Outcome: sandbox.TimedOut, Leftover: []int{4711}}), outcome: "timeout", status: "timeout", errorType: "TimeoutError", exit: -1, message: "timed out after 2m0s: last words; the kernel could not kill [4711]"},
		"box panics":  {box: func(context.Context, sandbox.Command) sandbox.Result { panic("boom") }, outcome: "interrupted", status: "error", errorType: "InterruptedError", exit: -1, message: "the box failed: boom"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, testCatalog, c.box)
			reply := g.Call(t.Context(), Request{Name: "echo"})
			must(t, reply.Err)
			rows, _ := g.end()
			row := rows[0]
			if row.Outcome != c.outcome || row.Status != c.status || row.ErrorType != c.errorType || row.Signal != c.signal {
				t.Errorf("got %s, %s, %s, %q; want %s, %s, %s, %q", row.Outcome, row.Status, row.ErrorType, row.Signal, c.outcome, c.status, c.errorType, c.signal)
			}
			exit := -1
			if row.ExitCode != nil {
				exit = *row.ExitCode
			}
			if exit != c.exit || row.ErrorMessage.String() != c.message {
				t.Errorf("exit_code %d, message %q; want %d, %q", exit, row.ErrorMessage, c.exit, c.message)
			}
			if row.Status == ledger.StatusBlocked && (row.StartedAt != row.EndedAt || row.DurationMS != 0) {
				t.Errorf("nothing started, from %s to %s", row.StartedAt, row.EndedAt)
			}
			if c.nothingStarted != (row.OutputHash == "") {
				t.Errorf("output_hash %q", row.OutputHash)
			}
			if !reply.IsError() || !strings.Contains(reply.Text(), c.message) {
				t.Errorf("text %q does not say %q", reply.Text(), c.message)
			}
		})
	}
}

func TestOkExitCodesAreTheToolsOwn(t *testing.T) {
	g := newRig(t, strings.Replace(testCatalog, `risk = "READ"`, "risk = \"READ\"\nok_exit_codes = [0, 1]", 1), exits(1, "", ""))
	if reply := g.Call(t.Context(), Request{Name: "echo"}); reply.IsError() || *reply.Facts().ExitCode != 1 || reply.Row.Outcome != ledger.OutcomeOK {
		t.Errorf("exit 1: %+v", reply.Facts())
	}
	g.end()
}

func TestACancelledCallKeepsWhatWasCaptured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, testCatalog, sleeps("so far\n"))
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(ErrCancelled) })
		reply := g.Call(ctx, Request{Name: "echo"})
		must(t, reply.Err)
		row := reply.Row
		if row.Outcome != ledger.OutcomeCancelled || row.Status != ledger.StatusError || row.ErrorType != "CancelledError" || row.DurationMS != 3000 {
			t.Errorf("%s %s %s %d ms", row.Outcome, row.Status, row.ErrorType, row.DurationMS)
		}
		if reply.Stdout.Text != "so far\n" || row.OutputBytes != 7 {
			t.Errorf("captured %q, %d bytes", reply.Stdout.Text, row.OutputBytes)
		}
		started, err := ledger.ParseTime(row.StartedAt)
		must(t, err)
		if ended, err := ledger.ParseTime(row.EndedAt); err != nil || ended.Sub(started) != 3*time.Second {
			t.Errorf("started %s, ended %s", row.StartedAt, row.EndedAt)
		}
		g.end()
	})
}

func TestACallCancelledBeforeAnythingStartedIsBlocked(t *testing.T) {
	g := newRig(t, testCatalog, exits(0, "", ""))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ErrCancelled)
	reply := g.Call(ctx, Request{Name: "echo"})
	must(t, reply.Err)
	if row := reply.Row; row.Outcome != ledger.OutcomeCancelled || row.Status != ledger.StatusBlocked || row.OutputHash != "" || row.DurationMS != 0 || row.StartedAt != row.EndedAt {
		t.Errorf("%s %s %q", row.Outcome, row.Status, row.OutputHash)
	}
	g.end()
}

func TestAnInterruptedRowIsWrittenWithin100msWithWhatWasCapturedThoughTheBoxHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var late error
		g := newRig(t, testCatalog, boxFunc(func(_ context.Context, cmd sandbox.Command) sandbox.Result {
			io.WriteString(cmd.Stdout, "before\n")
			<-release
			_, late = io.WriteString(cmd.Stdout, "after\n")
			return sandbox.Result{}
		}))
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			time.Sleep(time.Second)
			cancel(ErrInterrupted)
		}()
		began := time.Now()
		reply := g.Call(ctx, Request{Name: "echo"})
		if took := time.Since(began) - time.Second; took > 100*time.Millisecond {
			t.Errorf("the row came %v after the interruption", took)
		}
		must(t, reply.Err)
		if row := reply.Row; row.Outcome != ledger.OutcomeInterrupted || row.Status != ledger.StatusError || g.stored(string(row.OutputHash)) != "before\n" {
			t.Errorf("%s %s", row.Outcome, row.Status)
		}
		close(release)
		synctest.Wait()
		if late == nil {
			t.Error("a write after the row was taken")
		}
		g.end()
	})
}

func TestHoldTimeIsNeitherDurationNorTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, testCatalog, boxFunc(func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
			time.Sleep(2 * time.Second)
			return exits(0, "", "")(ctx, cmd)
		}), func(c *Config) { c.Jobs = 1 })
		first := make(chan Reply)
		go func() { first <- g.Call(t.Context(), Request{Name: "echo"}) }()
		synctest.Wait()
		second := g.Call(t.Context(), Request{Name: "echo"})
		must(t, (<-first).Err)
		if row := second.Row; row.HoldMS != 2000 || row.DurationMS != 2000 {
			t.Errorf("hold %d ms, duration %d ms", row.HoldMS, row.DurationMS)
		}
		g.end()
	})
}

// TestWhatDidNotRunDidNotRunUnasked: approval_status says autonomous of what was started.
func TestWhatDidNotRunDidNotRunUnasked(t *testing.T) {
	const wipe = `
[tools.wipe]
description = "destroys"
command = ["/bin/sh"]
risk = "DESTRUCTIVE"
approval = "auto"
`
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(ErrCancelled)
	stopped, stop := context.WithCancelCause(t.Context())
	stop(Interrupted("stdin has ended"))
	unavailable := func(context.Context, sandbox.Command) sandbox.Result {
		return sandbox.Result{Outcome: sandbox.Unavailable, Err: errors.New("no cgroup")}
	}
	for name, c := range map[string]struct {
		ctx      context.Context
		box      boxFunc
		approval ledger.OrNull
		message  string
	}{
		"runs":        {t.Context(), exits(1, "", "said\n"), ledger.ApprovalAutonomous, "exit status 1: said"},
		"cancelled":   {cancelled, mustNotRun(t), "", "cancelled while it waited for a free place"},
		"stopped":     {stopped, mustNotRun(t), "", "call interrupted: stdin has ended, while wipe waited for a free place"},
		"unavailable": {t.Context(), unavailable, "", "no cgroup"},
	} {
		g := newRig(t, wipe, c.box)
		must(t, g.Call(c.ctx, Request{Name: "wipe"}).Err)
		rows, lines := g.end()
		if rows[0].ApprovalStatus != c.approval || rows[0].ErrorMessage.String() != c.message {
			t.Errorf("%s: approval %q, message %q", name, rows[0].ApprovalStatus, rows[0].ErrorMessage)
		}
		for _, l := range lines {
			if head, ok := l["output_head"]; ok && head != "" { // stdout's, and there is none
				t.Errorf("%s: output_head %q", name, head)
			}
		}
	}
}

func TestAFullQueueIsBusyAndOnTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, testCatalog, sleeps(""), func(c *Config) { c.Jobs, c.Queue = 1, 1 })
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan Reply, 2)
		for range 2 {
			go func() { ended <- g.Call(ctx, Request{Name: "echo"}) }()
			synctest.Wait()
		}
		reply := g.Call(t.Context(), Request{Name: "echo"})
		must(t, reply.Err)
		if row := reply.Row; row.Outcome != ledger.OutcomeBusy || row.Status != ledger.StatusBlocked || row.ErrorType != "Busy" {
			t.Errorf("%s %s %s", row.Outcome, row.Status, row.ErrorType)
		}
		if !strings.Contains(reply.Text(), "1 calls run and 1 wait") {
			t.Errorf("text %q", reply.Text())
		}
		cancel(ErrInterrupted)
		<-ended
		<-ended
		rows, _ := g.end()
		if len(rows) != 3 || rows[1].Outcome != ledger.OutcomeInterrupted {
			t.Errorf("%d rows", len(rows))
		}
	})
}

func TestProgressIsTheLatestLineAndASignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, testCatalog, boxFunc(func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
			io.WriteString(cmd.Stdout, "compiling\nlinking 4/9")
			time.Sleep(7500 * time.Millisecond)
			return exits(0, "", "")(ctx, cmd)
		}))
		var told []string
		must(t, g.Call(t.Context(), Request{Name: "echo", Progress: func(text redact.Text) { told = append(told, text.String()) }}).Err)
		if got := strings.Join(told, ","); got != "linking 4/9,linking 4/9" {
			t.Errorf("told %q, want the line once at once and once after five quiet seconds", got)
		}
		g.end()
	})
}

// TestWhatIsTooLongForALineIsAnObject: a long argv and long arguments stand in row and trace as hashes that open.
func TestWhatIsTooLongForALineIsAnObject(t *testing.T) {
	g := newRig(t, testCatalog, exits(0, "", ""))
	for _, n := range []int{4 << 10, 70 << 10} {
		must(t, g.Call(t.Context(), Request{Name: "echo", Arguments: args("text", strings.Repeat("x", n))}).Err)
	}
	must(t, g.Call(t.Context(), Request{Name: "echo", Arguments: args("text", "short")}).Err)
	rows, lines := g.end()
	for i, row := range rows[:2] {
		hashes := row.Objects()
		if len(hashes) != 3 || row.Argv.String() != `{"sha256":"`+hashes[2]+`"}` {
			t.Fatalf("argv %.100s, objects %v", row.Argv, hashes)
		}
		var argv []string
		must(t, json.Unmarshal([]byte(g.stored(hashes[2])), &argv))
		if len(argv) != 4 || len(argv[3]) != []int{4 << 10, 70 << 10}[i] {
			t.Errorf("the object holds %d words", len(argv))
		}
	}
	if hashes := rows[2].Objects(); len(hashes) != 2 {
		t.Errorf("a short argv is an object: %v", hashes)
	}
	for _, l := range lines {
		if a, ok := l["arguments"].(map[string]any); ok && l["args_sha256"] == rows[1].InputHash && a["sha256"] != rows[1].InputHash {
			t.Errorf("arguments of the line: %.100v", a)
		}
	}
}

// TestAnEmptyStdoutIsAnObjectAndAnEmptyStderrIsNone: the first has a hash, which must open, the second has none.
func TestAnEmptyStdoutIsAnObjectAndAnEmptyStderrIsNone(t *testing.T) {
	for _, c := range []struct {
		stdout, stderr string
		objects        int
	}{{"", "", 2}, {"out", "", 2}, {"", "err", 3}} {
		g := newRig(t, testCatalog, exits(0, c.stdout, c.stderr))
		reply := g.Call(t.Context(), Request{Name: "echo"})
		must(t, reply.Err)
		if n := len(reply.Row.Objects()); n != c.objects || (reply.Row.StderrHash != "") != (c.stderr != "") {
			t.Errorf("%+v: %v, stderr_hash %q", c, reply.Row.Objects(), reply.Row.StderrHash)
		}
		g.end()
	}
}
