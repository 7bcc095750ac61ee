package runner

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"toolrun/archive/ledger"
	"toolrun/archive/redact"
)

// attempts runs the call until an attempt is the last one; the answer is that one's.
func (c *call) attempts(ctx context.Context) Reply {
	for {
		reply := c.inPlace(ctx)
		if c.next == nil {
			return reply
		}
		why := "its next attempt"
		if reply.Row != nil && reply.Row.ErrorMessage != nil {
			why = fmt.Sprintf("attempt %d of %s failed: %s", reply.Row.Attempt, c.tool.Name, reply.Row.ErrorMessage)
		}
		c.row, c.next, c.streams = c.next, nil, nil
		if reply.Err != nil {
			d := refused(ledger.OutcomeInterrupted, "the record of the attempt before cannot be written", "nothing was started")
			return c.refuse(*d)
		}
		if err := c.backOff(ctx, fmt.Sprintf("%s; trying again in %v", why, c.tool.Retry.Backoff)); err != nil {
			return c.refuse(refusalOf(err, c.tool.Name, "its next attempt", 0, 0))
		}
	}
}

// inPlace waits for a free place and makes one attempt in it.
func (c *call) inPlace(ctx context.Context) Reply {
	gate, tool := c.r.gate, c.tool
	came := c.r.now()
	err := gate.enter(ctx, tool.Name, tool.Concurrency)
	c.row.HoldMS += max(c.r.now().Sub(came).Milliseconds(), 0)
	if err != nil {
		c.unasked()
		running, waiting := gate.load()
		return c.refuse(refusalOf(err, tool.Name, "a free place", running, waiting))
	}
	defer gate.leave(tool.Name, tool.Concurrency)
	return c.attempt(ctx)
}

// unasked takes autonomous off a row of which nothing was started: nothing ran unasked.
func (c *call) unasked() {
	if c.row.ApprovalStatus == ledger.ApprovalAutonomous {
		c.row.ApprovalStatus = ""
	}
}

// follows decides whether another attempt follows this one, whose end is known and whose row is not written yet. It puts
// the next one on the record first: a row with status retry is always followed by another, whatever is killed when.
func (c *call) follows(ctx context.Context, end ending) bool {
	retry := c.tool.Retry
	if c.row.Attempt > retry.Max || !retry.After(end.Outcome, end.ExitCode) || ctx.Err() != nil {
		return false
	}
	next := c.base
	next.Flags, next.Enforced = slices.Clone(c.base.Flags), []string{}
	next.Attempt = c.row.Attempt + 1
	next.ToolCallID = redact.Plain(c.id.ID.String() + "#" + strconv.Itoa(next.Attempt))
	next.InputTokens, next.OutputTokens, next.EstimatedCostUSD = nil, nil, nil // the first attempt's: the model asked once
	next.ApprovalStatus, next.ApprovedBy = c.row.ApprovalStatus, c.row.ApprovedBy
	// Killed after it: the next process closes this attempt and the one that did not begin.
	if err := c.r.putCall(&next, c.input, false); err != nil {
		c.r.log.Error("a failed call is not tried again: the next attempt cannot be put on the record", "tool_call_id", next.ToolCallID.String(), "err", err)
		return false
	}
	c.next = &next
	return true
}

// backOff waits until the next attempt is due; the error is why ctx ended before. It holds no place meanwhile.
func (c *call) backOff(ctx context.Context, why string) error {
	stop := c.progress(why)
	defer stop()
	due := time.NewTimer(c.tool.Retry.Backoff)
	defer due.Stop()
	select {
	case <-due.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
