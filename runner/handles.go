package runner

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"toolrun/archive/ledger"
	"toolrun/catalog"
)

// keptHandles is how many programs that have ended a run still knows: the oldest are forgotten first. Their rows stand.
const keptHandles = 64

// handles are the programs of a run that stay open, and some that have ended.
type handles struct {
	most    int          // open at a time
	waiting atomic.Int64 // calls that wait for what a program does

	mu      sync.Mutex
	list    []*handle // in order of their start
	open    int
	perTool map[string]int // open ones, by the declared tool
	closed  bool
	running sync.WaitGroup
}

func newHandles(most int) *handles { return &handles{most: most, perTool: make(map[string]int)} }

// Descriptors: what a program or a call takes at most (on cgroup v1, at a terminal), and what the rest of a server does, with
// what its boxes keep and what ended calls have left to be cleared away. Where few may be open, boxes keep less, and a quarter
// is left to it.
const (
	programFDs = 32
	serverFDs  = 1280
)

// openPrograms is how many programs may be open at a time: as many as calls may wait, and no more than leaves descriptors
// for the calls that run and for the record.
func openPrograms(queue, jobs int) int {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return queue
	}
	most := int64(min(files.Cur, 1<<30))
	left := most - min(serverFDs, most/4) - int64(jobs)*programFDs
	return max(min(queue, int(left/programFDs)), 1)
}

// reserve takes a place for a program of the tool; whoever got it owes add or giveUp.
func (hs *handles) reserve(t *catalog.Tool) *decision {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	advice := "nothing was started: stop one of them, or wait until one has ended; " + t.Base + "_list names those of this session"
	switch {
	case hs.closed:
		return refused(ledger.OutcomeInterrupted, ErrInterrupted.Error(), "nothing was started")
	case t.Concurrency > 0 && hs.perTool[t.Base] >= t.Concurrency:
		return refused(ledger.OutcomeBusy, fmt.Sprintf("busy: %d programs of %s are open", hs.perTool[t.Base], t.Base), advice)
	case hs.open >= hs.most:
		return refused(ledger.OutcomeBusy, fmt.Sprintf("busy: %d programs are open", hs.open), advice)
	}
	hs.open++
	hs.perTool[t.Base]++
	hs.running.Add(1)
	return nil
}

func (hs *handles) giveUp(t *catalog.Tool) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.open--
	hs.perTool[t.Base]--
	hs.running.Done()
}

// add lets the program live, in a goroutine of its own.
func (hs *handles) add(ctx context.Context, h *handle) {
	hs.mu.Lock()
	hs.list = append(hs.list, h)
	ended := len(hs.list) - hs.open
	for i := 0; ended > keptHandles && i < len(hs.list); i++ {
		if !hs.list[i].runs() {
			hs.list = append(hs.list[:i:i], hs.list[i+1:]...)
			ended--
			i--
		}
	}
	closed := hs.closed
	hs.mu.Unlock()
	if closed { // meanwhile
		h.end(ErrInterrupted)
	}
	go func() {
		defer hs.giveUp(h.tool)
		h.run(ctx)
	}()
}

// find is the handle of this name that this session got from this tool.
func (hs *handles) find(id, session, base string) *handle {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, h := range hs.list {
		if h.id == id && h.session == session && h.tool.Base == base {
			return h
		}
	}
	return nil
}

// of are those that this session got from this tool, the newest last.
func (hs *handles) of(session, base string) (list []*handle) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, h := range hs.list {
		if h.session == session && h.tool.Base == base {
			list = append(list, h)
		}
	}
	return list
}

// interrupt ends all programs and lets no other start.
func (hs *handles) interrupt(cause error) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.closed = true
	for _, h := range hs.list {
		h.end(cause)
	}
}

// close ends all programs and waits until their rows are written.
func (hs *handles) close() {
	hs.interrupt(ErrInterrupted)
	hs.running.Wait()
}

// Interrupt ends the programs that stay open, now: toolrun was told to stop. None is started any more.
func (r *Runner) Interrupt() { r.handles.interrupt(ErrInterrupted) }

// open makes the handle of a program that the call starts, and puts it on the record: its tool_call line comes before
// anything of it runs. Killed after it: a call without a row, which the next process closes.
func (c *call) open() (*handle, context.Context, error) {
	identity, err := c.r.ids.take("")
	if err != nil {
		return nil, nil, err
	}
	row := *c.row
	row.ToolCallID, row.ClientCallID = identity.ID, nil
	parent := c.row.ToolCallID
	row.ParentCallID = &parent
	row.Flags, row.Enforced = append([]string{FlagProcess}, c.row.Flags...), []string{}
	row.RepeatOf, row.Repeat, row.HoldMS = nil, 0, 0
	row.InputTokens, row.OutputTokens, row.EstimatedCostUSD = nil, nil, nil // the start's, and no other's
	p := &call{
		r: c.r, req: Request{Name: c.req.Name}, row: &row, rules: c.rules, tool: c.tool, args: c.args, input: c.input, argv: c.argv,
		session: c.session, id: identity,
	}
	h := &handle{
		id: identity.ID.String(), tool: c.tool, session: c.row.SessionID.String(), argv: argvText(c.rules, c.args.Argv()), call: p,
		started: make(chan struct{}), ended: make(chan struct{}),
	}
	p.process = h
	h.out[0] = newUnread()
	if !c.tool.StderrMerge {
		h.out[1] = newUnread()
	}
	if c.tool.Mode == catalog.ModeSession {
		h.input = newInput()
	}
	ctx, end := context.WithCancelCause(context.Background())
	h.end = end
	if err := c.r.putCall(&row, c.input, false); err != nil {
		end(nil)
		return nil, nil, err
	}
	p.announced = true
	return h, ctx, nil
}
