package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"toolrun/archive/held"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/sandbox"
)

const askCatalog = `
[tools.deploy]
command = ["/bin/sh", "-c", "true", "deploy", "--to", "{to}"]
risk = "SEND"
timeout = "1s"
sandbox = { network = ["example.org:443"] }
[tools.deploy.params.to]
type = "string"
required = true
[tools.look]
command = ["/bin/sh"]
risk = "READ"
[tools.peek]
command = ["/bin/sh"]
risk = "READ"
approval = "ask"
optional = true
`

// waits sets how long held calls wait.
func waits(d time.Duration) func(*Config) {
	return func(c *Config) { c.Archive.Config.ApprovalWait = d }
}

// answers is an Ask that says this at once.
func answers(allow bool) Ask {
	return func(context.Context, held.Call) Said {
		return Said{Answered: true, Answer: held.Answer{Allow: allow, By: ledger.Answerer{Via: ledger.ViaElicitation}}}
	}
}

// pending waits until so many calls are held, and gives them.
func (g *rig) pending(n int) []held.Entry {
	g.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		list, err := held.List(g.dir.Path())
		must(g.t, err)
		if len(list) == n {
			return list
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("%d calls are held, want %d", len(list), n)
		}
	}
}

// begins makes a call and gives its reply later.
func (g *rig) begins(ctx context.Context, req Request) <-chan Reply {
	done := make(chan Reply, 1)
	go func() { done <- g.Call(ctx, req) }()
	return done
}

func deploy(id string) Request {
	return Request{Name: "deploy", Arguments: args("to", "prod"), Origin: Origin{CallID: id}}
}

func TestAHeldCallRunsWhenItIsAllowedAndThatIsOnTheRecordFirst(t *testing.T) {
	var g *rig
	box := boxFunc(func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		types := typesOf(g.lines())
		if !slices.Equal(types, []string{"catalog", "session", "tool_call", "approval"}) {
			t.Errorf("the tool starts after %v", types)
		}
		return exits(0, "deployed\n", "")(ctx, cmd)
	})
	g = newRig(t, askCatalog, box)
	if told := g.Instructions(); !strings.Contains(told, "A call of deploy waits until a person allows it.") || strings.Contains(told, "of look") {
		t.Errorf("told: %s", told)
	}
	var shown held.Call
	req := deploy("c")
	req.Ask = func(ctx context.Context, c held.Call) Said {
		shown = c
		time.Sleep(1100 * time.Millisecond) // more than the timeout
		return answers(true)(ctx, c)
	}
	reply := g.Call(t.Context(), req)
	row := reply.Row
	if row == nil || row.Outcome != "ok" || row.ApprovalStatus != "approved" || string(row.ApprovedBy.Raw()) != `{"via":"elicitation","uid":null,"tty":null,"pid":null,"exe":null}` || row.HoldMS < 1100 || row.DurationMS > 1000 {
		t.Fatalf("%+v", reply)
	}
	if shown.Tool.String() != "deploy" || shown.Risk != "SEND" || shown.Argv.String() != `["/bin/sh","-c","true","deploy","--to","prod"]` || shown.Arguments.String() != `{"to":"prod"}` ||
		fmt.Sprint(shown.Write) != "["+g.workspace+"]" || fmt.Sprint(shown.Network) != "[example.org:443]" || shown.Cwd.String() != g.workspace || shown.Timeout != 1000 {
		t.Errorf("shown: %+v", shown)
	}
	g.pending(0)
	_, lines := g.end()
	if call := lines[2]; call["held"] != true || call["approval_status"] != nil {
		t.Errorf("%v", call)
	}
	if a := lines[3]; a["tool_call_id"] != "c" || a["approval_status"] != "approved" || a["by"].(map[string]any)["via"] != "elicitation" {
		t.Errorf("%v", a)
	}
	if left, err := os.ReadDir(filepath.Join(g.dir.Path(), held.DirName)); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func typesOf(lines []map[string]any) (types []string) {
	for _, l := range lines {
		types = append(types, l["type"].(string))
	}
	return types
}

func TestADeniedCallDoesNotRunAndTheReasonIsTold(t *testing.T) {
	g := newRig(t, askCatalog, mustNotRun(t))
	done := g.begins(t.Context(), deploy("c"))
	e := g.pending(1)[0]
	must(t, e.Send(g.dir.Path(), false, "not on a Friday\x1b[2J sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"))
	reply := <-done
	row := reply.Row
	if row.Outcome != "declined" || row.Status != "blocked" || row.ErrorType != "Declined" || row.ApprovalStatus != "denied" || row.DurationMS != 0 || row.OutputHash != "" || !row.ApprovedBy.IsNull() {
		t.Errorf("%+v", row)
	}
	var by ledger.Answerer
	must(t, json.Unmarshal(row.DeclinedBy.Raw(), &by))
	if by.Via != "terminal" || *by.UID != os.Getuid() || *by.PID != os.Getpid() || by.TTY != nil {
		t.Errorf("declined by %s", row.DeclinedBy)
	}
	for _, text := range []string{row.ErrorMessage.String(), reply.Text()} {
		if !strings.Contains(text, "declined by user 0: not on a Friday") && os.Getuid() == 0 || strings.Contains(text, "abcdefghijkl") {
			t.Errorf("%q", text)
		}
	}
	if !strings.Contains(reply.Text(), "do not call it again") {
		t.Errorf("%q", reply.Text())
	}
	_, lines := g.end()
	if a := lines[3]; a["type"] != "approval" || a["approval_status"] != "denied" {
		t.Errorf("%v", a)
	}
}

func TestACallThatNobodyAnswersIsOverAfterItsWait(t *testing.T) {
	g := newRig(t, askCatalog, mustNotRun(t), waits(50*time.Millisecond))
	req := deploy("c")
	told := make(chan string, 10)
	req.Progress = func(line redact.Text) { told <- line.String() }
	reply := g.Call(t.Context(), req)
	if row := reply.Row; row.Outcome != "approval_unavailable" || row.Status != "blocked" || row.ErrorType != "ApprovalUnavailable" || row.ApprovalStatus != "" || row.HoldMS < 50 {
		t.Errorf("%+v", row)
	}
	if line := <-told; !strings.Contains(line, "toolrun pending shows call c") {
		t.Errorf("told %q", line)
	}
	_, lines := g.end()
	if types := typesOf(lines); slices.Contains(types, "approval") {
		t.Errorf("%v", types)
	}
}

func TestAWayOfAskingThatEndsWithoutAnAnswerEndsNothingElse(t *testing.T) {
	g := newRig(t, askCatalog, mustNotRun(t))
	req := deploy("c")
	req.Ask = func(context.Context, held.Call) Said { return Said{} }
	done := g.begins(t.Context(), req)
	e := g.pending(1)[0]
	must(t, e.Send(g.dir.Path(), false, ""))
	if row := (<-done).Row; row.Outcome != "declined" {
		t.Errorf("%+v", row)
	}
	g.end()
}

func TestAnAnswerEndsTheOtherWaysOfAsking(t *testing.T) {
	g := newRig(t, askCatalog, mustNotRun(t))
	ended := make(chan error, 1)
	req := deploy("c")
	req.Ask = func(ctx context.Context, _ held.Call) Said {
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return Said{}
	}
	done := g.begins(t.Context(), req)
	e := g.pending(1)[0]
	must(t, e.Send(g.dir.Path(), false, ""))
	<-done
	if err := <-ended; !errors.Is(err, errAnswered) {
		t.Error(err)
	}
	g.end()
}

func TestAHeldCallThatIsTakenBackOrInterruptedRunsNever(t *testing.T) {
	for cause, want := range map[error][3]string{
		ErrCancelled:                {"cancelled", "blocked", "cancelled while it waited for approval"},
		Interrupted("stdin closed"): {"interrupted", "error", "call interrupted: stdin closed, while deploy waited for approval"},
	} {
		g := newRig(t, askCatalog, mustNotRun(t))
		ctx, cancel := context.WithCancelCause(t.Context())
		done := g.begins(ctx, deploy("c"))
		e := g.pending(1)[0]
		cancel(cause)
		row := (<-done).Row
		if row.Outcome != want[0] || row.Status != want[1] || row.ErrorMessage.String() != want[2] || row.ApprovalStatus != "" {
			t.Errorf("%v: %+v, %s", cause, row, row.ErrorMessage)
		}
		if err := e.Send(g.dir.Path(), false, ""); !errors.Is(err, held.ErrRefused) {
			t.Errorf("answered afterwards: %v", err)
		}
		g.end()
	}
}

func TestHeldCallsTakeNoPlaceAndAreBoundedThemselves(t *testing.T) {
	g := newRig(t, askCatalog, exits(0, "", ""), func(c *Config) { c.Jobs, c.Queue = 1, 2 })
	var done []<-chan Reply
	for i := range 2 {
		done = append(done, g.begins(t.Context(), deploy(fmt.Sprint(i))))
	}
	list := g.pending(2)
	if row := g.Call(t.Context(), Request{Name: "look"}).Row; row.Outcome != "ok" {
		t.Errorf("%+v", row)
	}
	if reply := g.Call(t.Context(), deploy("too many")); reply.Row.Outcome != "busy" || !strings.Contains(reply.Text(), "2 calls wait for approval") {
		t.Errorf("%s", reply.Text())
	}
	if row := g.Call(t.Context(), deploy("0")).Row; row.Outcome != "duplicate_id" || row.ToolCallID.String() != "0!1" {
		t.Errorf("%+v", row)
	}
	for i := range list {
		must(t, list[i].Send(g.dir.Path(), false, ""))
	}
	for i := range done {
		<-done[i]
	}
	g.end()
}

func TestManyHeldCallsGetEachItsOwnAnswer(t *testing.T) {
	var ran atomic.Int64
	g := newRig(t, askCatalog, boxFunc(func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		ran.Add(1)
		return exits(0, "", "")(ctx, cmd)
	}))
	const n = 40
	done := make(map[string]<-chan Reply)
	for i := range n {
		req := deploy(fmt.Sprint(i))
		if i%2 == 0 {
			req.Ask = func(ctx context.Context, c held.Call) Said {
				<-time.After(time.Duration(i) * time.Millisecond)
				return answers(true)(ctx, c)
			}
		}
		done[fmt.Sprint(i)] = g.begins(t.Context(), req)
	}
	var wait sync.WaitGroup
	for _, e := range g.pendingOdd(n / 2) {
		wait.Go(func() {
			if err := e.Send(g.dir.Path(), false, e.ToolCallID.String()); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for id, reply := range done {
		row := (<-reply).Row
		odd := strings.ContainsAny(id[len(id)-1:], "13579")
		if odd && (row.Outcome != "declined" || !strings.HasSuffix(row.ErrorMessage.String(), ": "+id)) || !odd && row.ApprovalStatus != "approved" {
			t.Errorf("%s: %s %s", id, row.Outcome, row.ErrorMessage)
		}
	}
	if ran.Load() != n/2 {
		t.Errorf("%d ran", ran.Load())
	}
	g.end()
}

// pendingOdd waits for the held calls with an odd id.
func (g *rig) pendingOdd(n int) (list []held.Entry) {
	g.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); len(list) < n && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		all, err := held.List(g.dir.Path())
		must(g.t, err)
		list = slices.DeleteFunc(all, func(e held.Entry) bool {
			id := e.ToolCallID.String()
			return !strings.ContainsAny(id[len(id)-1:], "13579")
		})
	}
	return list
}

func TestAnAllowedCallWhoseApprovalCannotBeRecordedDoesNotRun(t *testing.T) {
	g := newRig(t, askCatalog, mustNotRun(t))
	req := deploy("c")
	req.Ask = func(ctx context.Context, c held.Call) Said {
		must(t, g.cfg.Run.Close()) // as where the disk is full
		return answers(true)(ctx, c)
	}
	if reply := g.Call(t.Context(), req); !reply.IsError() {
		t.Errorf("%+v", reply)
	}
	for _, row := range g.rows() {
		if row.ApprovalStatus != "" || row.Outcome != "approval_unavailable" {
			t.Errorf("%+v", row)
		}
	}
}

func TestAutonomousIsForTheClassesThatWereNamed(t *testing.T) {
	g := newRig(t, askCatalog, exits(0, "", ""), waits(10*time.Millisecond), func(c *Config) { c.Autonomous = []string{"SEND"} })
	if row := g.Call(t.Context(), deploy("c")).Row; row.Outcome != "ok" || row.ApprovalStatus != "autonomous" || row.HoldMS > 1000 {
		t.Errorf("%+v", row)
	}
	if row := g.Call(t.Context(), Request{Name: "peek"}).Row; row.Outcome != "approval_unavailable" {
		t.Errorf("a READ tool that asks: %+v", row)
	}
	g.Call(t.Context(), Request{Name: "look"})
	g.end()
}

func TestInvalidArgumentsAreNobodysToAllow(t *testing.T) {
	g := newRig(t, askCatalog, mustNotRun(t))
	reply := g.Call(t.Context(), Request{Name: "deploy", Arguments: args("to", 1), Ask: func(context.Context, held.Call) Said {
		t.Error("asked")
		return Said{}
	}})
	if reply.Row.Outcome != "invalid_arguments" {
		t.Errorf("%+v", reply.Row)
	}
	g.end()
}
