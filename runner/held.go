package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"toolrun/archive/held"
	"toolrun/archive/ledger"
	"toolrun/archive/trace"
	"toolrun/catalog"
)

// Ask asks a person in one way of the caller's own, beside toolrun allow and deny, whether a held call may run. It
// returns when there is an answer, when its way of asking has ended without one, or when ctx ends.
type Ask func(ctx context.Context, call held.Call) Said

// Said is how an [Ask] ended. The zero value is no answer: the call stays held.
type Said struct {
	Answered bool
	held.Answer
}

// Reasons to stop asking, as the causes of an Ask's context.
var errAnswered = errors.New("the call was answered in another way")

// ask holds a call until a person has answered. Nil: it may run, and that is on the record. It waits outside of the gate
// and of the tool's timeout; the time counts as hold_ms.
func (c *call) ask(ctx context.Context) *decision {
	came := c.r.now()
	defer func() { c.row.HoldMS += max(c.r.now().Sub(came).Milliseconds(), 0) }()
	if n := c.r.heldCalls.Add(1); int(n) > c.r.cfg.Queue {
		c.r.heldCalls.Add(-1)
		return refused(ledger.OutcomeBusy, fmt.Sprintf("busy: %d calls wait for approval", n-1), "nothing was started: call again when some of them were answered")
	}
	defer c.r.heldCalls.Add(-1)
	wait := c.r.cfg.Archive.Config.ApprovalWait
	h, err := c.r.desk.Hold(c.shown(), c.r.now().Add(wait))
	if err != nil {
		return refused(ledger.OutcomeApprovalUnavailable, err.Error(), "nothing was started: tell the user")
	}
	defer h.Close("the call has ended")
	level := slog.LevelWarn
	if c.req.Ask != nil { // somebody is asked
		level = slog.LevelInfo
	}
	c.r.log.Log(ctx, level, "a call waits for approval", "tool_call_id", c.row.ToolCallID.String(), "tool", c.tool.Name, "risk", c.tool.Risk, "answer_with", c.r.cfg.AllowCommand(c.row.ToolCallID.String()))
	stop := c.progress(fmt.Sprintf("%s waits for a person to allow it: toolrun pending shows call %s", c.tool.Name, c.row.ToolCallID))
	defer stop()

	expired := time.NewTimer(wait)
	defer expired.Stop()
	asking, stopAsking := context.WithCancelCause(ctx)
	defer stopAsking(nil)
	said := make(chan Said, 1)
	if c.req.Ask != nil {
		go func() { said <- c.req.Ask(asking, h.Call) }()
	}
	for {
		select {
		case a := <-h.Answers:
			stopAsking(errAnswered)
			no, err := c.answered(a)
			h.Close(whyNot(err))
			return no
		case s := <-said:
			if !s.Answered {
				continue // that way of asking has ended; said stays silent from now on
			}
			h.Close("the call was answered through its client")
			no, _ := c.answered(s.Answer)
			return no
		case <-expired.C:
			h.Close("the call waited too long and is over")
			return refused(ledger.OutcomeApprovalUnavailable, fmt.Sprintf("nobody answered within %v whether %s may run", wait, c.tool.Name),
				"nothing was started: tell the user, who answers by 'toolrun pending' and 'toolrun allow' while a call waits; then call again")
		case <-ctx.Done():
			d := refusalOf(context.Cause(ctx), c.tool.Name, "approval", 0, 0)
			return &d
		}
	}
}

func refused(outcome, reason, advice string) *decision {
	var d decision
	d.refuse(outcome, "", reason, advice)
	return &d
}

func whyNot(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// answered puts an answer on the record. Nil: the call may run. The error is that of the record: then nothing runs.
func (c *call) answered(a held.Answer) (no *decision, err error) {
	by, err := json.Marshal(a.By)
	if err != nil {
		return nil, err
	}
	who, err := c.rules.JSON(by)
	if err != nil {
		return nil, err
	}
	approval := trace.Approval{Row: c.row, Answer: ledger.ApprovalDenied, By: who}
	if a.Allow {
		approval.Answer = ledger.ApprovalApproved
	}
	// Killed before it: nothing of the call ran. Killed after it: the row that closes the call says who answered.
	if err := c.r.cfg.Archive.Approve(c.r.cfg.Run, approval); err != nil {
		d := refused(ledger.OutcomeApprovalUnavailable, "the answer cannot be put on the record: "+err.Error(), "nothing was started")
		return d, err
	}
	c.row.ApprovalStatus = ledger.OrNull(approval.Answer)
	if a.Allow {
		c.row.ApprovedBy = who
		return nil, nil
	}
	c.row.DeclinedBy = who
	reason := "declined by " + person(a.By)
	if a.Reason != "" {
		reason += ": " + a.Reason
	}
	return refused(ledger.OutcomeDeclined, reason, "nothing was started: do not call it again unless the user wants it"), nil
}

// person is who answered, in words.
func person(by ledger.Answerer) string {
	switch {
	case by.Via == ledger.ViaElicitation || by.Via == ledger.ViaInputRequired:
		return "the user, asked by the client"
	case by.TTY != nil && by.UID != nil:
		return fmt.Sprintf("user %d at %s", *by.UID, *by.TTY)
	case by.UID != nil:
		return fmt.Sprintf("user %d", *by.UID)
	}
	return "a person"
}

// shown is all that a person has to see before the call runs.
func (c *call) shown() held.Call {
	t := c.tool
	s := held.Call{
		ToolCallID: c.row.ToolCallID, SessionID: c.row.SessionID, Client: c.row.Client, Tool: c.row.ToolName, Risk: t.Risk,
		Arguments: c.input, Timeout: t.Timeout.Milliseconds(),
	}
	for _, place := range networkOf(t) {
		s.Network = append(s.Network, c.rules.Text(place))
	}
	if plan := c.r.plans[t.Name]; plan != nil {
		argv := c.args.Argv()
		if t.Verb == catalog.VerbSend { // the program that it is typed into
			if h := c.r.handles.find(c.args.Text(catalog.ArgHandle), c.row.SessionID.String(), t.Base); h != nil {
				argv = h.call.args.Argv()
			}
		}
		if argv != nil {
			s.Argv = c.rules.Strings(argv)
		}
		s.Cwd = c.rules.Text(plan.dir)
		for _, place := range plan.writes {
			s.Write = append(s.Write, c.rules.Text(place))
		}
	}
	return s
}

// networkOf is where a tool may connect to.
func networkOf(t *catalog.Tool) []string {
	switch {
	case t.Program() == "" && t.Verb != catalog.VerbSend:
		return []string{catalog.NetworkNone}
	case t.Sandbox.Network == catalog.NetworkHosts:
		return t.Sandbox.Hosts
	}
	return []string{t.Sandbox.Network}
}
