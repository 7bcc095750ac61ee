package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/sandbox"
)

// interruptGrace is how long a call that toolrun itself must end waits for the box: the row is due within 100 ms, and it
// is written with what was captured also when the kernel is slower than that.
const interruptGrace = 60 * time.Millisecond

// attempt is one execution: capture, box, row, reply.
func (c *call) attempt(ctx context.Context) Reply {
	if c.tool.Builtin != "" {
		return c.builtin(ctx)
	}
	plan := c.r.plans[c.tool.Name]
	cmd, err := plan.command(c.tool, c.args)
	cmd.Stdout = c.capture()
	if !c.tool.StderrMerge {
		cmd.Stderr = c.capture()
	}
	c.describe(plan, cmd)

	started := c.r.now()
	res := sandbox.Result{Outcome: sandbox.SpawnFailed, Err: err, CPU: -1, MemoryPeakBytes: -1, OOMKills: -1}
	var exeHash <-chan string
	if err == nil {
		exeHash = c.r.exes.start(cmd.Exe)
		stop := c.progress()
		res = runBox(ctx, plan.box, cmd)
		stop()
	}
	took := c.r.now().Sub(started)

	end := endingOf(res, causeOf(ctx), c.tool.OKExitCodes)
	c.span(started, took)
	c.measure(res, end)
	c.exeHash(exeHash, end)
	return c.finish(end, res.Err)
}

// capture makes the capture of the next stream: stdout, then stderr.
func (c *call) capture() *capture {
	s := newCapture(c.rules, c.r.newObject(), c.tool.Limits.OutputBytes, max(int(c.tool.PreviewBytes), minExcerptBytes))
	c.streams = append(c.streams, s)
	return s
}

// runBox runs the command and waits for its end; when toolrun itself must stop, only for interruptGrace. A panic in the
// box is the end of the call, not of toolrun.
func runBox(ctx context.Context, box Box, cmd sandbox.Command) sandbox.Result {
	done := make(chan sandbox.Result, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				done <- sandbox.Result{Outcome: outcomePanic, Err: fmt.Errorf("the box failed: %v", v), CPU: -1, MemoryPeakBytes: -1, OOMKills: -1}
			}
		}()
		done <- box.Run(ctx, cmd)
	}()
	select {
	case res := <-done:
		return res
	case <-ctx.Done():
	}
	if errors.Is(context.Cause(ctx), ErrCancelled) {
		return <-done
	}
	grace := time.NewTimer(interruptGrace)
	defer grace.Stop()
	select {
	case res := <-done:
		return res
	case <-grace.C:
		return sandbox.Result{Outcome: sandbox.Cancelled, Started: time.Now(), CPU: -1, MemoryPeakBytes: -1, OOMKills: -1}
	}
}

// outcomePanic is no outcome of the sandbox: endingOf takes what it does not know as interrupted.
const outcomePanic = sandbox.Outcome(-1)

// describe puts what will be executed into the row.
func (c *call) describe(plan *plan, cmd sandbox.Command) {
	c.row.Argv = c.argv(cmd.Argv)
	c.row.Cwd = boundedOrNil(c.rules, cmd.Dir)
	c.row.ExePath = boundedOrNil(c.rules, cmd.Exe)
	c.row.User = ledger.OrNull(plan.user)
}

// maxArgvBytes bounds the argv of a row; a longer one is there as its hash.
const maxArgvBytes = 4 << 10

func (c *call) argv(argv []string) redact.JSON {
	list := c.rules.Strings(argv)
	if c.r.cfg.Payloads != PayloadsHash && len(list.Raw()) <= maxArgvBytes {
		return list
	}
	return hashOf(c.rules, list)
}

// measure puts what the box measured into the row.
func (c *call) measure(res sandbox.Result, end ending) {
	row := c.row
	row.ExitCode, row.Signal = end.ExitCode, ledger.OrNull(end.Signal)
	if res.Enforced != nil {
		row.Enforced = res.Enforced
	}
	if len(res.Leftover) > 0 {
		row.Flags = append(row.Flags, FlagUnkilled)
		c.r.log.Error("the kernel could not kill processes of a call", "tool_call_id", row.ToolCallID.String(), "pids", res.Leftover)
	}
	if !end.Started {
		return
	}
	if res.CPU >= 0 {
		row.CPUMS = new(res.CPU.Milliseconds())
	}
	if res.MemoryPeakBytes >= 0 {
		row.MemoryPeakBytes = new(res.MemoryPeakBytes)
	}
	if res.OOMKills >= 0 {
		row.OOMKills = new(res.OOMKills)
	}
	if res.PidsMeasured {
		row.PidsLimitHit = new(res.PidsLimitHit)
	}
}

// exeHash waits for the hash of the program, unless the row is urgent.
func (c *call) exeHash(hash <-chan string, end ending) {
	if hash == nil {
		return
	}
	if end.Outcome != OutcomeInterrupted {
		c.row.ExeSHA256 = ledger.OrNull(<-hash)
		return
	}
	select {
	case h := <-hash:
		c.row.ExeSHA256 = ledger.OrNull(h)
	default:
	}
}

// finish ends the captures, writes the row and makes the reply.
func (c *call) finish(end ending, cause error) Reply {
	var ended [2]captured
	for i, s := range c.streams {
		if !end.Started {
			s.abort()
			continue
		}
		ended[i] = s.finish()
		if ended[i].Err != nil {
			end.Outcome, cause = OutcomeCaptureFailed, ended[i].Err
		}
	}
	out, errs := &ended[0], &ended[1]
	row := c.row
	row.Outcome = end.Outcome
	v := verdictOf(end.Outcome, end.Started)
	row.Status, row.ErrorType = v.Status, v.ErrorType
	row.OutputHash, row.StoredBytes, row.OutputBytes = out.Hash, out.Stored, out.Bytes
	row.StderrBytes = errs.Bytes
	if errs.Bytes > 0 {
		row.StderrHash = errs.Hash
	}
	row.Truncated = out.Truncated || errs.Truncated
	row.Redactions += out.Redactions + errs.Redactions

	said := errs
	if c.tool.StderrMerge {
		said = out
	}
	if row.Status != ledger.StatusSuccess {
		row.ErrorMessage = c.message(c.errorMessage(end, cause, said.LastLine))
	}
	head := redact.Text{}
	if c.r.cfg.Payloads != PayloadsHash {
		row.OutputSummary, head = c.summaries(out, errs)
	}
	reply := c.commit(head)
	if reply.Err == nil {
		budget := c.tool.PreviewBytes
		if c.tool.Builtin != "" {
			budget += errs.Bytes // a part that was asked for with the length of a preview is shown whole
		}
		reply.Stdout, reply.Stderr = previews(out, errs, int(budget))
		if end.Outcome == OutcomeSandboxUnavailable {
			reply.Message = row.ErrorMessage.String() + "; nothing was started"
		}
	}
	return reply
}
