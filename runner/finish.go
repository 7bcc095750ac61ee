package runner

import (
	"context"
	"fmt"
	"strings"

	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/catalog"
	"toolrun/sandbox"
)

// describe puts what will be executed into the row.
func (c *call) describe(plan *plan, cmd sandbox.Command) {
	c.row.Argv = c.argv
	c.row.Cwd = boundedOrNil(c.rules, cmd.Dir)
	c.row.ExePath = boundedOrNil(c.rules, cmd.Exe)
	c.row.User = ledger.OrNull(plan.user)
}

// measure puts what the box measured into the row.
func (c *call) measure(res sandbox.Result, end ending) {
	row := c.row
	row.ExitCode, row.Signal = end.ExitCode, ledger.OrNull(end.Signal)
	if res.Enforced != nil {
		row.Enforced = res.Enforced
	}
	c.connections(res)
	if len(end.Leftover) > 0 {
		row.Flags = append(row.Flags, FlagUnkilled)
		c.r.log.Error("the kernel could not kill processes of a call", "tool_call_id", row.ToolCallID.String(), "pids", end.Leftover)
	}
	if !end.Started {
		return
	}
	row.CPUMS, row.ThrottledMS = measured(res.CPU.Milliseconds(), res.CPU >= 0), measured(res.Throttled.Milliseconds(), res.Throttled >= 0)
	row.MemoryPeakBytes, row.OOMKills = measured(res.MemoryPeakBytes, res.MemoryPeakBytes >= 0), measured(res.OOMKills, res.OOMKills >= 0)
	row.PidsPeak = measured(res.PidsPeak, res.PidsPeak >= 0)
	row.PidsLimitHit = measured(res.PidsRefused > 0, res.PidsRefused >= 0)
}

// measured is null in the row where the host did not measure.
func measured[T any](v T, ok bool) *T {
	if !ok {
		return nil
	}
	return &v
}

// exeHash waits for the hash of the program, unless the row is urgent.
func (c *call) exeHash(hash <-chan string, end ending) {
	if hash == nil {
		return
	}
	if end.Outcome != ledger.OutcomeInterrupted {
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
func (c *call) finish(ctx context.Context, end ending, cause error) Reply {
	var ended [2]captured
	for i, s := range c.streams {
		if !end.Started || i == 1 && s.empty() { // no object of a stderr that said nothing: the row names none
			s.abort()
			continue
		}
		ended[i] = s.finish()
		if ended[i].Err != nil {
			end.Outcome, cause = ledger.OutcomeCaptureFailed, ended[i].Err
		}
	}
	out, errs := &ended[0], &ended[1]
	row := c.row
	row.Outcome = end.Outcome
	v := ledger.EndingOf(end.Outcome, end.Started)
	row.Status, row.ErrorType = v.Status, v.ErrorType
	row.OutputHash, row.StoredBytes, row.OutputBytes = out.Hash, out.Stored, out.Bytes
	row.StderrHash, row.StderrBytes = errs.Hash, errs.Bytes
	row.Truncated = out.Truncated || errs.Truncated
	row.Redactions += out.Redactions + errs.Redactions

	said := errs
	if c.tool.StderrMerge {
		said = out
	}
	var message string
	if row.Status != ledger.StatusSuccess {
		message = c.errorMessage(end, cause, said.LastLine)
	}
	if len(end.Leftover) > 0 {
		message = strings.TrimPrefix(fmt.Sprintf("%s; the kernel could not kill %v", message, end.Leftover), "; ")
	}
	if message != "" {
		row.ErrorMessage = c.message(message)
	}
	if row.Status == ledger.StatusBlocked { // nothing was started: both times are that of the refusal
		c.span(c.r.now(), 0)
		c.unasked()
	}
	head := redact.Text{}
	if c.r.cfg.Payloads != PayloadsHash {
		row.OutputSummary, head = c.summaries(out, errs)
	}
	if c.follows(ctx, end) {
		row.Status = ledger.StatusRetry
	}
	reply := c.commit(head)
	if reply.Row != nil {
		budget := c.tool.PreviewBytes
		if c.tool.Builtin != "" {
			budget += errs.Bytes // a part that was asked for with the length of a preview is shown whole
		}
		if c.tool.Verb == catalog.VerbList { // nobody could ask for the rest
			budget = max(budget, out.Bytes)
		}
		reply.Stdout, reply.Stderr = previews(out, errs, int(budget))
		if end.Outcome == ledger.OutcomeSandboxUnavailable {
			reply.Message = row.ErrorMessage.String() + "; nothing was started"
		}
	}
	return reply
}
