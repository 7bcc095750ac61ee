package runner

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"toolrun/archive/ledger"
	"toolrun/sandbox"
)

const stayCatalog = `
[tools.sh]
description = "stays open"
command = ["/bin/sh"]
risk = "READ"
mode = "session"
concurrency = 3
`

// echoes is a box whose program says what is typed into it, until it is killed.
func echoes() boxFunc {
	return func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		started := time.Now()
		cmd.Started()
		io.WriteString(cmd.Stdout, "up\n")
		<-ctx.Done()
		return sandbox.Result{Outcome: sandbox.Cancelled, Signal: 9, Started: started, Usage: sandbox.Unmeasured}
	}
}

func TestOpenProgramsAreBoundedAndEndWithTheRun(t *testing.T) {
	g := newRig(t, stayCatalog, echoes())
	var wg sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[string]int{}
	for range 8 {
		wg.Go(func() {
			reply := g.Call(t.Context(), Request{Name: "sh_start", Origin: Origin{SessionID: "s"}})
			if reply.Row == nil {
				t.Errorf("no row: %v", reply.Err)
				return
			}
			mu.Lock()
			outcomes[reply.Row.Outcome]++
			mu.Unlock()
			if p := reply.Process; p != nil {
				read := g.Call(t.Context(), Request{Name: "sh_read", Arguments: args("handle", p.Handle, "pattern", "up"), Origin: Origin{SessionID: "s"}})
				if read.Stdout.Text != "up\n" || !read.Process.Running {
					t.Errorf("%q %+v", read.Stdout.Text, read.Process)
				}
			}
		})
	}
	wg.Wait()
	if outcomes[ledger.OutcomeOK] != 3 || outcomes[ledger.OutcomeBusy] != 5 {
		t.Errorf("starts ended as %v", outcomes)
	}
	if list := g.Call(t.Context(), Request{Name: "sh_list", Origin: Origin{SessionID: "s"}}); strings.Count(list.Stdout.Text, "still runs") != 3 {
		t.Errorf("%q", list.Stdout.Text)
	}
	g.Interrupt()
	rows, _ := g.end()
	interrupted := 0
	for _, row := range rows {
		if row.Outcome == ledger.OutcomeInterrupted {
			interrupted++
		}
	}
	if interrupted != 3 {
		t.Errorf("%d programs are interrupted, want 3", interrupted)
	}
}
