package runner

import (
	"context"
	"fmt"
	"slices"
	"time"

	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/archive/trace"
	"toolrun/catalog"
)

// call is one request on its way to its reply; one goroutine owns it.
type call struct {
	r       *Runner
	req     Request
	row     *ledger.Row // grows as the call goes; what a row needs in any case is there before the tool_call line
	rules   *redact.Rules
	tool    *catalog.Tool // nil: no such tool
	args    *catalog.Args // nil: refused
	problem error         // what is wrong with the arguments
	input   redact.JSON   // canonical
	argv    redact.JSON   // as the row will have it
	session *session
	id      identity
	streams []*capture // stdout, then stderr unless it is merged

	announced bool        // the tool_call line is written; the row is when it has its seq
	base      ledger.Row  // the row as it was announced, where the tool is tried again
	next      *ledger.Row // of the attempt that follows; its tool_call line is written
	process   *handle     // that this is the call of; nil: it ends with its program
}

// Call runs one request to its end. The reply always has a row, but for ErrLedgerUnavailable. When ctx ends the tool is
// killed and context.Cause tells why: ErrCancelled, or anything else for interrupted.
func (r *Runner) Call(ctx context.Context, req Request) (reply Reply) {
	r.life.RLock()
	defer r.life.RUnlock()
	if r.closed {
		return Reply{Err: unavailable(ErrInterrupted)}
	}
	c := &call{r: r, req: req}
	c.begin()
	defer c.survive(&reply)

	if err := r.settle(); err != nil {
		return Reply{Err: unavailable(err)}
	}
	c.read()
	if err := c.identify(); err != nil {
		return Reply{Err: unavailable(err)}
	}
	d := decide(c.question())
	if err := c.announce(d); err != nil {
		r.ids.forget(req.Origin.CallID, c.id)
		return Reply{Err: unavailable(err)}
	}
	if d.Outcome != "" {
		return c.refuse(d)
	}
	if d.Ask {
		if no := c.ask(ctx); no != nil {
			return c.refuse(*no)
		}
	}
	if c.tool.Verb != "" && c.tool.Verb != catalog.VerbStart {
		return c.use(ctx)
	}
	return c.attempts(ctx)
}

// question is what policy is asked about this call.
func (c *call) question() question {
	q := question{
		Tool:       c.tool,
		Name:       c.row.ToolName.String(),
		Duplicate:  c.id.Duplicate,
		Refusal:    c.req.Refusal,
		Problem:    c.problem,
		Autonomous: c.r.cfg.Autonomous,
	}
	if c.tool == nil {
		q.Registered = c.r.cfg.Catalog.Names()
	}
	if c.id.Client != nil {
		q.ID = c.id.Client.String()
	}
	return q
}

// announce puts the call on the record before anything of it runs: the objects of its input and of a long argv, session
// line, tool_call line.
func (c *call) announce(d decision) error {
	hash, err := c.r.putInput(c.input)
	if err != nil {
		return err
	}
	if d.Outcome == "" && c.args != nil && c.tool.Program() != "" {
		if c.argv, err = c.r.putArgv(c.rules.Strings(c.args.Argv())); err != nil {
			return err
		}
	}
	c.row.InputHash = hash
	c.row.Flags = append(c.row.Flags, d.Flags...)
	if c.tool != nil && (c.tool.Verb == catalog.VerbRead || c.tool.Verb == catalog.VerbPoll || c.tool.Verb == catalog.VerbList) {
		c.row.Flags = append(c.row.Flags, ledger.FlagLook)
	}
	c.row.ApprovalStatus = d.Approval
	c.row.RepeatOf, c.row.Repeat = c.session.repeatOf(c.row.ToolName.String(), hash)
	if err := c.r.announce(c.session, c.row.SessionID, c.req.Origin); err != nil {
		return err
	}
	if err := c.r.putCall(c.row, c.input, d.Ask); err != nil {
		return err
	}
	c.announced = true
	if c.tool != nil && c.tool.Retry.Max > 0 {
		c.base = *c.row
	}
	if c.tool != nil {
		c.r.used[c.tool.Name].Store(true)
	}
	return nil
}

// maxReasonBytes bounds what an answer says of a refusal, which may name what the caller sent.
const maxReasonBytes = 8 << 10

// refuse ends a call of which nothing was started.
func (c *call) refuse(d decision) Reply {
	v := ledger.EndingOf(d.Outcome, false)
	c.row.Outcome, c.row.Status, c.row.ErrorType = d.Outcome, v.Status, v.ErrorType
	reason, _ := bounded(c.rules, d.Reason, maxReasonBytes)
	d.Reason = reason.String()
	c.row.ErrorMessage = c.message(d.Reason)
	c.row.StartedAt = ledger.FormatTime(c.r.now())
	c.row.EndedAt = c.row.StartedAt
	reply := c.commit(redact.Text{})
	if reply.Row != nil {
		reply.Message = c.rules.Text(d.Message()).String()
	}
	return reply
}

// commit writes the row: from there on the call has happened, and its reply may go out.
func (c *call) commit(head redact.Text) Reply {
	c.flagRedacted()
	err := c.r.commit(c.row, head)
	if c.row.Seq == noSeq {
		return Reply{Err: unavailable(err)}
	}
	c.session.remember(c.row)
	if err != nil {
		err = unavailable(fmt.Errorf("the call has ended and its row is written, but a power failure may take it back: %w", err))
	}
	return Reply{Row: c.row, Err: err}
}

// flagRedacted flags a call of which something was masked.
func (c *call) flagRedacted() {
	if c.row.Redactions > 0 && !slices.Contains(c.row.Flags, trace.FlagRedacted) {
		c.row.Flags = append(c.row.Flags, trace.FlagRedacted)
	}
}

// message makes the row's error_message: one line, redacted.
func (c *call) message(s string) *redact.Text {
	text := redact.Summary(c.rules.Text(s), summaryChars)
	return &text
}

// span sets the times of an attempt.
func (c *call) span(started time.Time, took time.Duration) {
	c.row.DurationMS = max(took.Milliseconds(), 0)
	c.row.StartedAt = ledger.FormatTime(started)
	c.row.EndedAt = ledger.FormatTime(started.Truncate(time.Millisecond).Add(time.Duration(c.row.DurationMS) * time.Millisecond))
}
