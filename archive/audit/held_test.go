package audit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"toolrun/archive/audit"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/archive/trace"
)

// A held call that ran, or whose row says that it was allowed, has the line that says by whom, before its result.
func TestAHeldCallThatRanWithoutItsApprovalIsNamed(t *testing.T) {
	p := newPlace(t)
	d := p.open()
	run := p.begin(d)
	by := redact.JSON{}
	if err := by.UnmarshalJSON([]byte(`{"via":"call","uid":0,"tty":"/dev/pts/0","pid":1,"exe":"/x"}`)); err != nil {
		t.Fatal(err)
	}
	for n, c := range []struct{ line, row string }{{"approved", "approved"}, {"", "approved"}, {"denied", "approved"}, {"", ""}} {
		in, err := d.Store.Put(redact.Plain("input"))
		at, code := ledger.FormatTime(time.Now()), 0
		row := &ledger.Row{
			ToolCallID: redact.Plain(fmt.Sprintf("%s-%d", run.ID()[:8], n+1)), SessionID: redact.Plain("s"), ToolName: redact.Plain("echo"), Status: "success", Outcome: "ok", Attempt: 1,
			StartedAt: at, EndedAt: at, InputHash: in, RunID: run.ID(), ExitCode: &code,
		}
		err = errors.Join(err, run.ToolCall(trace.Call{Row: row, Held: true}))
		if c.line != "" {
			err = errors.Join(err, d.Approve(run, trace.Approval{Row: row, Answer: c.line, By: by}))
		}
		row.ApprovalStatus = ledger.OrNull(c.row)
		if err = errors.Join(err, d.Commit(run, row), run.ToolResult(trace.Result{Row: row})); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(d.End(run, nil), d.Close()); err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, f := range p.verify().Findings {
		if f.Kind != audit.RowDiffers || !strings.Contains(f.Text, "no line says that somebody allowed it") {
			t.Errorf("%+v", f)
		}
		named = append(named, f.CallIDs[0][9:])
	}
	if got := strings.Join(named, " "); got != "2 3 4" {
		t.Errorf("named: %s", got)
	}
}
