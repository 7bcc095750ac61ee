package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"toolrun/archive/held"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/catalog/prices"
	"toolrun/sandbox"
)

const retryCatalog = `
[tools.flaky]
command = ["/bin/sh"]
risk = "READ"
retry = { max = 2, on = ["timeout", "exit:75"], backoff = "30ms" }
[tools.sent]
command = ["/bin/sh"]
risk = "SEND"
retry = { max = 1, on = ["exit"], backoff = "0s" }
optional = true
[tools.slow]
command = ["/bin/sh"]
risk = "READ"
retry = { max = 1, on = ["exit"], backoff = "1h" }
optional = true
[tools.look]
command = ["/bin/sh"]
risk = "READ"
optional = true
`

// inTurn is a box whose calls end in these ways, one after the other, and then in the last one.
func inTurn(boxes ...boxFunc) boxFunc {
	var n atomic.Int64
	return func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		i := int(n.Add(1)) - 1
		return boxes[min(i, len(boxes)-1)](ctx, cmd)
	}
}

func timesOut(context.Context, sandbox.Command) sandbox.Result {
	return sandbox.Result{Outcome: sandbox.TimedOut, Signal: 9, Started: time.Now()}
}

func ends(rows []*ledger.Row) (list []string) {
	for _, row := range rows {
		list = append(list, fmt.Sprintf("%s %d %s %s", row.ToolCallID, row.Attempt, row.Status, row.Outcome))
	}
	return list
}

func TestEachAttemptHasItsRowAndTheAnswerIsTheLastOnes(t *testing.T) {
	for name, c := range map[string]struct {
		box  boxFunc
		want []string
	}{
		"succeeds at the third": {inTurn(exits(75, "1", "later"), timesOut, exits(0, "3", "")), []string{"c 1 retry exit", "c#2 2 retry timeout", "c#3 3 success ok"}},
		"fails to the last":     {inTurn(exits(75, "", "")), []string{"c 1 retry exit", "c#2 2 retry exit", "c#3 3 error exit"}},
		"times out at the last": {inTurn(boxFunc(timesOut)), []string{"c 1 retry timeout", "c#2 2 retry timeout", "c#3 3 timeout timeout"}},
		"another end":           {inTurn(exits(75, "", ""), exits(7, "", "")), []string{"c 1 retry exit", "c#2 2 error exit"}},
		"no reason to":          {inTurn(exits(1, "", "")), []string{"c 1 error exit"}},
		"success":               {inTurn(exits(0, "", "")), []string{"c 1 success ok"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, retryCatalog, c.box)
			reply := g.Call(t.Context(), Request{Name: "flaky", Origin: Origin{CallID: "c"}})
			rows, lines := g.end()
			if got := ends(rows); !slices.Equal(got, c.want) {
				t.Fatalf("got %q", got)
			}
			last := rows[len(rows)-1]
			if reply.Row.ToolCallID.String() != last.ToolCallID.String() || reply.Facts().Status != last.Status {
				t.Errorf("the answer is of %s", reply.Row.ToolCallID)
			}
			calls, results := 0, 0
			for _, l := range lines {
				switch {
				case l["type"] == "tool_call":
					calls++
				case l["type"] != "tool_result":
				case calls < min(len(rows), results+2):
					t.Errorf("the result of %v is there before the call that follows it", l["tool_call_id"])
					fallthrough
				default:
					results++
				}
			}
			for i, row := range rows {
				if row.RepeatOf != nil || row.ClientCallID.String() != "c" || i > 0 && row.StartedAt < rows[i-1].EndedAt {
					t.Errorf("%+v", row)
				}
			}
		})
	}
}

// The model asked once, however often the tool was tried.
func TestTokensAndCostStandAtTheFirstAttemptOnly(t *testing.T) {
	g := newRig(t, retryCatalog, exits(75, "", ""), func(c *Config) {
		c.Prices = prices.Table{{Prices: []prices.Price{{Provider: "anthropic", In: 3, Out: 15}}}}
	})
	in, out := int64(1000), int64(100)
	g.Call(t.Context(), Request{Name: "flaky", Origin: Origin{CallID: "c", Provider: "anthropic", Model: "claude", InputTokens: &in, OutputTokens: &out}})
	rows, lines := g.end()
	for i, row := range rows {
		first := i == 0
		if (row.InputTokens != nil) != first || (row.OutputTokens != nil) != first || (row.EstimatedCostUSD != nil) != first || row.Model.String() != "claude" {
			t.Errorf("attempt %d: %+v", row.Attempt, row)
		}
	}
	told := 0
	for _, l := range lines {
		if l["input_tokens"] != nil {
			told++
		}
	}
	if len(rows) != 3 || told != 1 { // what the next process would write of them is the same
		t.Errorf("%d rows, %d lines with tokens", len(rows), told)
	}
}

func TestTheAgentsOwnRetryIsARepeatOfTheLastAttempt(t *testing.T) {
	g := newRig(t, retryCatalog, exits(75, "", ""))
	for _, id := range []string{"a", "b"} {
		g.Call(t.Context(), Request{Name: "flaky", Origin: Origin{CallID: id}})
	}
	rows, _ := g.end()
	if row := rows[3]; row.ToolCallID.String() != "b" || row.RepeatOf == nil || row.RepeatOf.String() != "a#3" || row.Repeat != 1 {
		t.Errorf("%+v", row)
	}
	if row := rows[5]; row.ToolCallID.String() != "b#3" || row.RepeatOf.String() != "a#3" || row.Repeat != 1 {
		t.Errorf("%+v", row)
	}
}

func TestACancelledAttemptIsTheLastOne(t *testing.T) {
	g := newRig(t, retryCatalog, boxFunc(func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		return exits(75, "", "")(ctx, cmd) // it failed, and at the same moment the client took it back
	}))
	ctx, cancel := context.WithCancelCause(t.Context())
	g.plans["flaky"].box = boxFunc(func(_ context.Context, cmd sandbox.Command) sandbox.Result {
		cancel(ErrCancelled)
		return exits(75, "", "")(ctx, cmd)
	})
	g.Call(ctx, Request{Name: "flaky", Origin: Origin{CallID: "c"}})
	rows, _ := g.end()
	if got := ends(rows); !slices.Equal(got, []string{"c 1 error exit"}) {
		t.Errorf("%q", got)
	}
}

func TestWhoIsTakenBackBetweenAttemptsHasARowForTheOneThatDidNotRun(t *testing.T) {
	for cause, want := range map[error]string{ErrCancelled: "c#2 2 blocked cancelled", ErrInterrupted: "c#2 2 error interrupted"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		g := newRig(t, retryCatalog, exits(1, "", "no luck"), func(c *Config) { c.Jobs = 1 })
		told := make(chan string, 10)
		done := g.begins(ctx, Request{Name: "slow", Origin: Origin{CallID: "c"}, Progress: lineTo(told)})
		if line := <-told; !strings.Contains(line, "attempt 1 of slow failed: exit status 1: no luck; trying again in 1h0m0s") {
			t.Errorf("told %q", line)
		}
		// Whoever waits for its next attempt keeps no place.
		g.Call(t.Context(), Request{Name: "look", Origin: Origin{CallID: "l"}})
		cancel(cause)
		reply := <-done
		g.Call(t.Context(), Request{Name: "flaky", Origin: Origin{CallID: "f"}})
		rows, _ := g.end()
		got := ends(rows)
		if !slices.Equal(got[:3], []string{"c 1 retry exit", "l 1 error exit", want}) {
			t.Errorf("%q", got)
		}
		if reply.Row.ToolCallID.String() != "c#2" || rows[2].OutputHash != "" {
			t.Errorf("%+v", reply.Row)
		}
	}
}

func TestOneApprovalIsForAllAttempts(t *testing.T) {
	g := newRig(t, retryCatalog, inTurn(exits(1, "", ""), exits(0, "", "")))
	asked := 0
	g.Call(t.Context(), Request{Name: "sent", Origin: Origin{CallID: "c"}, Ask: func(ctx context.Context, c held.Call) Said {
		asked++
		return answers(true)(ctx, c)
	}})
	g.Call(t.Context(), Request{Name: "flaky", Origin: Origin{CallID: "f"}})
	rows, _ := g.end()
	if got := ends(rows)[:2]; asked != 1 || !slices.Equal(got, []string{"c 1 retry exit", "c#2 2 success ok"}) {
		t.Errorf("asked %d times: %q", asked, got)
	}
	for _, row := range rows[:2] {
		if row.ApprovalStatus != "approved" || row.ApprovedBy.IsNull() {
			t.Errorf("%+v", row)
		}
	}
}

func TestADeclinedCallIsNotTriedAgain(t *testing.T) {
	g := newRig(t, retryCatalog, mustNotRun(t))
	g.Call(t.Context(), Request{Name: "sent", Origin: Origin{CallID: "c"}, Ask: answers(false)})
	if got := ends(g.rows()); !slices.Equal(got, []string{"c 1 blocked declined"}) {
		t.Errorf("%q", got)
	}
}

func lineTo(c chan string) func(redact.Text) { return func(line redact.Text) { c <- line.String() } }
