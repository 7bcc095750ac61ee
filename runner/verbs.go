package runner

import (
	"context"
	"errors"
	"fmt"
	"regexp"
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
		h.end(context.Cause(ctx))
		<-h.ended
	}
	h.watchIdle()
	c.span(started, c.r.now().Sub(started))
	out := c.capture()
	end, cause := ending{Outcome: ledger.OutcomeOK, Started: true}, error(nil)
	select {
	case <-h.started:
		if ctx.Err() != nil {
			end.Outcome, cause = outcomeOfCause(context.Cause(ctx)), context.Cause(ctx)
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
	h.touch()
	defer h.touch()
	started := c.r.now()
	waited, no := "", (*Reply)(nil)
	switch c.tool.Verb {
	case catalog.VerbSend:
		no = c.send(h)
	case catalog.VerbRead:
		waited, no = c.waitFor(ctx, h)
	case catalog.VerbPoll:
		waited = c.waitEnd(ctx, h)
	case catalog.VerbStop:
		c.stop(ctx, h)
	}
	if no != nil {
		return *no
	}
	c.span(started, c.r.now().Sub(started))
	out := []*capture{c.capture()}
	if !c.tool.StderrMerge {
		out = append(out, c.capture())
	}
	end, cause := ending{Outcome: ledger.OutcomeOK, Started: true}, causeOf(ctx)
	if cause != nil {
		end.Outcome = outcomeOfCause(cause)
	} else if c.tool.Verb != catalog.VerbSend {
		c.pass(h, out)
	}
	return c.told(c.finish(ctx, end, cause), h, waited)
}

// pass moves what is unread to the call: the reply shows it, and the row keeps it.
func (c *call) pass(h *handle, out []*capture) {
	whole := func(p []byte) int { return len(p) }
	cut := whole
	if h.runs() {
		cut = wholeCharacters
	}
	for i, to := range out {
		dropped, text := h.out[i].take(cut)
		if dropped > 0 {
			to.Write([]byte(leftOutMark(false, dropped)))
		}
		to.Write(text) // an error of the store comes back from finish
	}
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

// What a call has waited for.
const (
	waitedPattern = "pattern"
	waitedQuiet   = "quiet"
	waitedEnd     = "end"
	waitedTime    = "time"
)

// defaultQuiet is how long a program must be silent where a read says nothing else.
const defaultQuiet = 200 * time.Millisecond

// waitFor waits for what a read asks for: a pattern in what is unread, output and then quiet, the program's end, or a time.
func (c *call) waitFor(ctx context.Context, h *handle) (waited string, no *Reply) {
	var pattern *regexp.Regexp
	if p := c.args.Text(catalog.ArgPattern); p != "" {
		var err error
		if pattern, err = regexp.Compile(p); err != nil {
			reply := c.unfit(catalog.ArgPattern, "is not a regular expression of RE2")
			return "", &reply
		}
	}
	quiet, quietAsked := defaultQuiet, pattern == nil
	if c.args.Has(catalog.ArgQuiet) {
		quiet, quietAsked = time.Duration(c.args.Int(catalog.ArgQuiet))*time.Millisecond, true
	}
	over := time.NewTimer(time.Duration(c.args.Int(catalog.ArgWait)) * time.Millisecond)
	defer over.Stop()
	silent := time.NewTimer(quiet)
	defer silent.Stop()
	seen := int64(-1)
	for {
		running := h.runs() // before the look: what came before its end is seen
		out, n, more := h.out[0].peek()
		errs, m, moreErrs := h.out[1].peek()
		if pattern != nil && (c.matches(pattern, out) || c.matches(pattern, errs)) {
			return waitedPattern, nil
		}
		if !running {
			return waitedEnd, nil
		}
		if n+m != seen {
			silent.Reset(quiet)
			seen = n + m
		}
		var quietNow <-chan time.Time
		if quietAsked && len(out)+len(errs) > 0 {
			quietNow = silent.C
		}
		select {
		case <-more:
		case <-moreErrs:
		case <-h.ended:
		case <-quietNow:
			return waitedQuiet, nil
		case <-over.C:
			return waitedTime, nil
		case <-ctx.Done():
			return "", nil
		}
	}
}

// matches holds the pattern against the bytes, and at a terminal against the text that they draw.
func (c *call) matches(pattern *regexp.Regexp, text []byte) bool {
	if len(text) == 0 {
		return false
	}
	if pattern.Match(text) {
		return true
	}
	if c.tool.Terminal == (catalog.Terminal{}) {
		return false
	}
	s := screen{rules: c.rules, size: c.tool.Terminal}
	return pattern.MatchString(s.plain(text[max(0, len(text)-screenBytes):]))
}

// waitEnd waits for the program's end, at most as long as a poll says.
func (c *call) waitEnd(ctx context.Context, h *handle) string {
	over := time.NewTimer(time.Duration(c.args.Int(catalog.ArgWait)) * time.Millisecond)
	defer over.Stop()
	select {
	case <-h.ended:
		return waitedEnd
	case <-over.C:
		return waitedTime
	case <-ctx.Done():
		return ""
	}
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
	out := c.capture()
	out.Write([]byte(b.String()))
	return c.finish(ctx, ending{Outcome: ledger.OutcomeOK, Started: true}, nil)
}

// wholeCharacters is how much of p can be shown by itself: not the beginning of a character, or of an escape sequence.
func wholeCharacters(p []byte) int {
	n := len(endAtRune(p))
	for i := n - 1; i >= 0 && i >= n-64; i-- {
		if p[i] == 0x1b {
			if !sequenceEnds(p[i:n]) {
				return i
			}
			break
		}
	}
	return n
}

// sequenceEnds tells whether an escape sequence (ECMA-48) that begins p is whole.
func sequenceEnds(p []byte) bool {
	if len(p) < 2 {
		return false
	}
	switch p[1] {
	case '[':
		for _, b := range p[2:] {
			if b >= 0x40 && b <= 0x7e {
				return true
			}
		}
		return false
	case ']', 'P', 'X', '^', '_':
		for i, b := range p[2:] {
			if b == 0x07 || b == '\\' && p[i+1] == 0x1b {
				return true
			}
		}
		return false
	}
	if p[1] >= 0x20 && p[1] <= 0x2f {
		return len(p) > 2
	}
	return true
}
