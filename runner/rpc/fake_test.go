package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"toolrun/archive/held"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/catalog"
	"toolrun/runner"
)

// TestMain takes SIGPIPE, as toolrun does, and outside the bubbles of synctest, which would wait for its goroutine.
func TestMain(m *testing.M) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(m.Run())
}

// fake is a Backend without sandbox and files. What a call does depends on the name of the tool; see behave.
type fake struct {
	tools []*catalog.Tool

	mu      sync.Mutex
	calls   int
	events  []string
	running map[string]chan struct{} // of calls of "gate", by their arguments
	noTrace bool                     // session lines cannot be written
}

func newFake(names ...string) *fake {
	f := &fake{running: make(map[string]chan struct{})}
	for _, name := range names {
		f.tools = append(f.tools, &catalog.Tool{
			Name:        name,
			Description: "Does " + name + ".",
			Risk:        "READ",
			Schema:      json.RawMessage(`{"additionalProperties":false,"properties":{"n":{"maximum":9007199254740993,"type":"integer"}},"type":"object"}`),
			Sandbox:     catalog.Sandbox{Network: "none"},
			Approval:    map[bool]string{true: catalog.ApprovalAsk, false: catalog.ApprovalAuto}[name == "ask"],
		})
	}
	return f
}

func (f *fake) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, fmt.Sprintf(format, args...))
}

func (f *fake) log() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.events, "\n") + "\n"
}

// count is the number of events that begin with prefix.
func (f *fake) count(prefix string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.events {
		if strings.HasPrefix(e, prefix) {
			n++
		}
	}
	return n
}

func (f *fake) Tools() []*catalog.Tool { return f.tools }

func (f *fake) Instructions() string { return "Call tools." }

func (f *fake) Session(o runner.Origin) error {
	if f.noTrace {
		return runner.ErrLedgerUnavailable
	}
	f.note("session %s", origin(o))
	return nil
}

func (f *fake) RejectedLine(code int, n int64, sha256 string) {
	f.note("rejected %d %d bytes %.8s", code, n, sha256)
}

func (f *fake) Call(ctx context.Context, r runner.Request) runner.Reply {
	f.mu.Lock()
	f.calls++
	n := f.calls
	f.mu.Unlock()
	f.note("call %q %s %s", r.Name, r.Arguments, origin(r.Origin))
	if r.Refusal != (runner.Refusal{}) {
		f.note("refused %s: %s", r.Refusal.Outcome, r.Refusal.Reason)
	}
	row := &ledger.Row{
		ToolCallID: redact.Plain(cmp.Or(r.Origin.CallID, fmt.Sprintf("0fa1afe1-%d", n))),
		SessionID:  redact.Plain(r.Origin.SessionID),
		ToolName:   redact.Plain(r.Name),
		RunID:      "0fa1afe1-0000-4000-8000-000000000000",
		Seq:        int64(n - 1),
		Known:      true,

		CatalogSHA256: "ca7a",
	}
	reply := runner.Reply{Row: row}
	f.behave(ctx, r, &reply)
	if reply.Row != nil {
		f.note("row %d %s %s", row.Seq, row.Status, row.Outcome)
	}
	return reply
}

// behave fills in the end of a call.
func (f *fake) behave(ctx context.Context, r runner.Request, reply *runner.Reply) {
	row := reply.Row
	ok := 0
	row.Status, row.Outcome, row.ExitCode = "success", "ok", &ok
	known := false
	var names []string
	for _, t := range f.tools {
		known = known || t.Name == r.Name
		names = append(names, t.Name)
	}
	if names == nil {
		names = []string{"none"}
	}
	refuse := func(outcome, message string) {
		row.Status, row.Outcome, row.ExitCode, reply.Message = "blocked", outcome, nil, message
	}
	switch {
	case !known:
		row.Known = false
		refuse("unknown_tool", "unknown tool: "+r.Name+"; registered: "+strings.Join(names, ", "))
	case r.Refusal != (runner.Refusal{}):
		refuse(r.Refusal.Outcome, r.Refusal.Reason)
	case r.Arguments != nil && r.Arguments[0] != '{':
		refuse("invalid_arguments", "arguments: must be an object")
	default:
		f.run(ctx, r, reply)
	}
}

func (f *fake) run(ctx context.Context, r runner.Request, reply *runner.Reply) {
	row := reply.Row
	switch r.Name {
	case "echo":
		reply.Stdout.Text = string(r.Arguments)
		row.OutputBytes = int64(len(r.Arguments))
	case "fail":
		code := 3
		row.Status, row.Outcome, row.ExitCode = "error", "exit", &code
		reply.Stderr.Text = "bad\n"
		row.StderrBytes = 4
	case "slow": // until it is told to end
		<-ctx.Done()
		row.Status, row.Outcome, row.ExitCode = "error", "interrupted", nil
		if errors.Is(context.Cause(ctx), runner.ErrCancelled) {
			row.Outcome = "cancelled"
		}
	case "gate": // until the test lets it end
		f.mu.Lock()
		gate := make(chan struct{})
		f.running[string(r.Arguments)] = gate
		f.mu.Unlock()
		<-gate
	case "talk":
		for i := range 5 {
			if r.Progress != nil {
				r.Progress(redact.Plain(fmt.Sprintf("line %d", i)))
			}
			time.Sleep(450 * time.Millisecond)
		}
	case "ask": // a person; without an answer until the test lets it end, as toolrun allow and deny would
		f.ask(ctx, r, reply)
	case "boom":
		panic("boom with an argument")
	case "unrecorded":
		*reply = runner.Reply{Err: runner.ErrLedgerUnavailable}
	}
}

// ask holds the call as the runner does, with one way of asking beside the client's.
func (f *fake) ask(ctx context.Context, r runner.Request, reply *runner.Reply) {
	row := reply.Row
	f.mu.Lock()
	gate := make(chan struct{})
	f.running[string(r.Arguments)] = gate
	f.mu.Unlock()
	asking, stop := context.WithCancel(ctx)
	defer stop()
	said := make(chan runner.Said, 1)
	if r.Ask == nil {
		f.note("held, nobody to ask")
	} else {
		argv, _ := redact.New(nil).JSON([]byte(`["deploy","--to","\u001b[2J"]`))
		arguments, _ := redact.New(nil).JSON([]byte(`{"to":"\u202eprod"}`))
		go func() {
			said <- r.Ask(asking, held.Call{
				ToolCallID: row.ToolCallID, SessionID: redact.Plain("s"), Tool: row.ToolName, Risk: "SEND", Argv: argv, Arguments: arguments,
				Cwd: redact.Plain("/w"), Write: []redact.Text{redact.Plain("/w")}, Network: []redact.Text{redact.Plain("none")}, Timeout: 5000,
				ExpiresAt: ledger.FormatTime(time.Now().Add(5 * time.Minute)),
			})
		}()
	}
	expired := time.NewTimer(5 * time.Minute)
	defer expired.Stop()
	for {
		select {
		case s := <-said:
			f.note("said answered=%t allow=%t via=%q", s.Answered, s.Allow, s.By.Via)
			if s.Answered && !s.Allow {
				row.Status, row.Outcome, row.ExitCode, reply.Message = "blocked", "declined", nil, "declined"
			}
			if s.Answered {
				return
			}
		case <-gate:
			return
		case <-expired.C:
			row.Status, row.Outcome, row.ExitCode, reply.Message = "blocked", "approval_unavailable", nil, "nobody answered"
			return
		case <-ctx.Done():
			row.Status, row.Outcome, row.ExitCode, reply.Message = "error", "interrupted", nil, context.Cause(ctx).Error()
			if errors.Is(context.Cause(ctx), runner.ErrCancelled) {
				row.Status, row.Outcome = "blocked", "cancelled"
			}
			return
		}
	}
}

// open lets the call of "gate" with these arguments end.
func (f *fake) open(arguments string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.running[arguments])
}

// origin writes what is known of an Origin, for comparison.
func origin(o runner.Origin) string {
	var b strings.Builder
	put := func(key string, v any) {
		if s := fmt.Sprint(v); s != "" && s != "0" {
			fmt.Fprintf(&b, " %s=%s", key, s)
		}
	}
	put("call", o.CallID)
	put("session", o.SessionID)
	put("from", o.SessionFrom)
	put("turn_id", o.TurnID)
	put("turn", o.Turn)
	put("model", o.Model)
	put("provider", o.Provider)
	put("parent", o.ParentCallID)
	if o.InputTokens != nil {
		put("in", fmt.Sprintf("%d.", *o.InputTokens))
	}
	if o.OutputTokens != nil {
		put("out", fmt.Sprintf("%d.", *o.OutputTokens))
	}
	put("client", o.Client)
	put("protocol", o.Protocol)
	put("trace", o.TraceID)
	put("span", o.SpanID)
	return strings.TrimSpace(b.String())
}
