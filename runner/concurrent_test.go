package runner

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"toolrun/archive/ledger"
	"toolrun/sandbox"
)

func TestTwoHundredConcurrentCallsKeepTheInvariants(t *testing.T) {
	var path atomic.Value
	var running, most, ran atomic.Int64
	g := newRig(t, testCatalog, boxFunc(func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		ran.Add(1)
		text, err := os.ReadFile(path.Load().(string))
		if err != nil || !strings.Contains(string(text), `"arguments":{"text":"`+cmd.Argv[3]+`"}`) {
			t.Errorf("call %s started before its tool_call line", cmd.Argv[3])
		}
		return exits(len(cmd.Argv[3])%2, strings.Repeat(cmd.Argv[3]+"\n", 3000), cmd.Argv[3])(ctx, cmd)
	}))
	path.Store(g.cfg.Run.Path())
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			req := Request{Name: "echo", Arguments: args("text", fmt.Sprintf("n%d.", i)), Origin: Origin{CallID: fmt.Sprint("c", i), SessionID: fmt.Sprint("s", i%7), TurnID: fmt.Sprint(i % 5)}}
			switch i % 10 {
			case 3:
				req.Name = "invented"
			case 4:
				req.Origin.CallID = "c0"
			case 5:
				req.Arguments = args("text", i)
			case 6:
				cancel(ErrCancelled)
			}
			reply := g.Call(ctx, req)
			if reply.Err != nil {
				t.Error(reply.Err)
				return
			}
			found := false
			for row, err := range ledger.Rows(g.dir.Path()) {
				found = found || err == nil && row.Seq == reply.Row.Seq && row.ToolCallID == reply.Row.ToolCallID
			}
			if !found {
				t.Errorf("an answer without its row: %s", reply.Row.ToolCallID)
			}
		})
	}
	wg.Wait()
	rows, _ := g.end()
	if len(rows) != 200 || ran.Load() != 120 || most.Load() > DefaultJobs {
		t.Errorf("%d rows, %d ran, at most %d at a time", len(rows), ran.Load(), most.Load())
	}
	outcomes := make(map[string]int)
	for i, row := range rows {
		outcomes[row.Outcome]++
		if row.Seq != int64(i) {
			t.Errorf("row %d has seq %d", i, row.Seq)
		}
	}
	if outcomes[ledger.OutcomeUnknownTool] != 20 || outcomes[ledger.OutcomeDuplicateID] < 19 || outcomes[ledger.OutcomeInvalidArguments] != 20 || outcomes[ledger.OutcomeCancelled] != 20 {
		t.Errorf("outcomes: %v", outcomes)
	}
}
