package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"toolrun/archive/ledger"
	"toolrun/catalog"
	"toolrun/sandbox"
)

// FlagProcess is on the row of a program that stayed open: of its whole life, and not of a call.
const FlagProcess = ledger.FlagProcess

// stopGrace is how long a program whose input has ended may take to end by itself, before it is killed.
const stopGrace = 2 * time.Second

func newInput() *sandbox.Input { return new(sandbox.Input) }

// start starts a program that stays. Its call ends when the program runs, or could not be started.
func (c *call) start(ctx context.Context) Reply {
	if no := c.r.handles.reserve(c.tool); no != nil {
		c.unasked()
		return c.refuse(*no)
	}
	started := c.r.now()
	h, own, err := c.open()
	if err != nil {
		c.r.handles.giveUp(c.tool)
		c.unasked()
		return c.refuse(*refused(ledger.OutcomeInterrupted, "the program cannot be put on the record: "+err.Error(), "nothing was started"))
	}
	c.r.handles.add(own, h)
	select {
	case <-h.started:
	case <-h.ended:
	case <-ctx.Done():
	}
	cause := causeOf(ctx)
	if cause != nil { // nobody gets the handle
		h.end(cause)
		<-h.ended
	}
	h.watchIdle()
	c.span(started, c.r.now().Sub(started))
	out := c.captureText(0)
	end := ending{Outcome: ledger.OutcomeOK, Started: true}
	select {
	case <-h.started:
		if cause != nil {
			end.Outcome = outcomeOfCause(cause)
		}
		fmt.Fprintln(out, h.id)
	default:
		end, cause = c.notStarted(h)
	}
	return c.told(c.finish(ctx, end, cause), h, "")
}

// notStarted is the end of a start whose program has not begun to run: that of the program.
func (c *call) notStarted(h *handle) (ending, error) {
	row := h.reply.Row
	if row == nil {
		return ending{Outcome: ledger.OutcomeInterrupted}, h.reply.Err
	}
	cause := errors.New("the program was not started")
	if row.ErrorMessage != nil {
		cause = errors.New(row.ErrorMessage.String())
	}
	return ending{Outcome: row.Outcome}, cause
}

// told adds to the reply how it stands with the program.
func (c *call) told(reply Reply, h *handle, waited string) Reply {
	if reply.Row != nil {
		reply.Process = h.process()
		reply.Process.Waited = waited
	}
	return reply
}

// use is a call of a program that stays, by its handle. It starts nothing and takes no place of those that do.
func (c *call) use(ctx context.Context) Reply {
	if c.tool.Verb == catalog.VerbList {
		return c.list(ctx)
	}
	h := c.r.handles.find(c.args.Text(catalog.ArgHandle), c.row.SessionID.String(), c.tool.Base)
	if h == nil {
		return c.unfit(catalog.ArgHandle, fmt.Sprintf("is no handle that %s_start gave in this session and run, or one of long ago; %s_list names them", c.tool.Base, c.tool.Base))
	}
	defer h.use()()
	started := c.r.now()
	var waited string
	var got printed
	var no *Reply
	switch c.tool.Verb {
	case catalog.VerbSend:
		no = c.send(h)
	case catalog.VerbRead, catalog.VerbPoll:
		waited, got, no = c.wait(ctx, h)
	case catalog.VerbStop:
		if c.stop(ctx, h); ctx.Err() == nil {
			got = h.take()
		}
	}
	if no != nil {
		return *no
	}
	c.span(started, c.r.now().Sub(started))
	out := []*capture{c.capture()}
	if !c.tool.StderrMerge {
		out = append(out, c.capture())
	}
	got.show(out, c.tool.Terminal != catalog.Terminal{})
	end, cause := ending{Outcome: ledger.OutcomeOK, Started: true}, causeOf(ctx)
	if cause != nil {
		end.Outcome = outcomeOfCause(cause)
	}
	return c.told(c.finish(ctx, end, cause), h, waited)
}

// unfit refuses the call for what an argument names.
func (c *call) unfit(field, problem string) Reply {
	d := decide(question{Tool: c.tool, Name: c.tool.Name, Problem: &catalog.ArgumentError{Field: field, Problem: problem}})
	c.row.Flags = append(c.row.Flags, d.Flags...)
	c.unasked()
	return c.refuse(d)
}

// send types into the program.
func (c *call) send(h *handle) *Reply {
	text := c.args.Text(catalog.ArgInput)
	if c.args.Bool(catalog.ArgEnter) && text != "" && text[len(text)-1] >= ' ' && text[len(text)-1] != 0x7f {
		text += "\n"
	}
	if len(text) > sandbox.MaxPendingInput {
		reply := c.unfit(catalog.ArgInput, fmt.Sprintf("has %d bytes, at most %d can wait for the program: send it in parts", len(text), sandbox.MaxPendingInput))
		return &reply
	}
	err := h.send([]byte(text), c.args.Bool(catalog.ArgEOF))
	var reply Reply
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errEnded):
		reply = c.unfit(catalog.ArgHandle, err.Error()+": "+h.process().Text())
	case errors.Is(err, errLineTooLong):
		reply = c.unfit(catalog.ArgInput, err.Error())
	default:
		c.unasked()
		reply = c.refuse(*refused(ledger.OutcomeBusy, err.Error(), "nothing was typed: read what it prints, and send again when it reads"))
	}
	return &reply
}

// stop ends the program: by the end of its input, where it has one, else at once.
func (c *call) stop(ctx context.Context, h *handle) {
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	if h.input == nil {
		grace.Reset(0)
	} else {
		h.input.Close()
	}
	select {
	case <-h.ended:
		return
	case <-grace.C:
	case <-ctx.Done():
	}
	h.end(&stopped{ledger.OutcomeCancelled, "stopped by " + c.tool.Name})
	select {
	case <-h.ended:
	case <-ctx.Done():
	}
}

// list names the programs of the session.
func (c *call) list(ctx context.Context) Reply {
	started := c.r.now()
	var b strings.Builder
	for _, h := range c.r.handles.of(c.row.SessionID.String(), c.tool.Base) {
		fmt.Fprintf(&b, "%s\n  %s\n", h.process().Text(), h.argv)
	}
	if b.Len() == 0 {
		fmt.Fprintf(&b, "no program of %s_start in this session and run\n", c.tool.Base)
	}
	c.span(started, c.r.now().Sub(started))
	out := c.captureText(b.Len())
	out.Write([]byte(b.String()))
	return c.finish(ctx, ending{Outcome: ledger.OutcomeOK, Started: true}, nil)
}
