package runner

import (
	"context"
	"fmt"
	"strings"
	"time"

	"toolrun/archive/ledger"
	"toolrun/catalog"
	"toolrun/runner/terminal"
)

// printed is what a call took of what a program has printed: of stdout, and of stderr where that is apart.
type printed [2]struct {
	dropped int64 // bytes before text that nobody read in time
	text    []byte
}

// take takes what is unread. While the program runs, no character and no escape sequence is taken in part.
func (h *handle) take() printed {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.takeLocked()
}

// takeIf takes what is unread, if nothing was taken since takes was h.takes: what a call has seen, it gets.
func (h *handle) takeIf(takes int) (got printed, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.takes != takes {
		return got, false
	}
	return h.takeLocked(), true
}

func (h *handle) takeLocked() (got printed) {
	h.takes++
	cut := func(p []byte) int { return len(p) }
	if h.runs() {
		cut = func(p []byte) int { return terminal.Whole(endAtRune(p)) }
	}
	for i, u := range h.out {
		if u != nil {
			got[i].dropped, got[i].text = u.take(cut)
		}
	}
	return got
}

func (h *handle) taken() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.takes
}

// show gives what was taken to a call: its reply shows it, and its row keeps it.
func (p *printed) show(to []*capture, terminal bool) {
	for i, c := range to {
		if p[i].dropped > 0 {
			mark := leftOutMark(false, p[i].dropped)
			if terminal {
				mark = strings.ReplaceAll(mark, "\n", "\r\n")
			}
			c.Write([]byte(mark))
		}
		c.Write(p[i].text) // an error of the store comes back from finish
	}
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

// wish is what a read or a poll waits for.
type wish struct {
	pattern *matcher      // nil: none
	quiet   time.Duration // output, and then so long none; negative: not asked for
	most    time.Duration // never longer
}

// wish reads the arguments of a read or a poll, whose only wish is the end.
func (c *call) wish(ctx context.Context) (w wish, no *Reply) {
	w.quiet, w.most = -1, time.Duration(c.args.Int(catalog.ArgWait))*time.Millisecond
	if p := c.args.Text(catalog.ArgPattern); p != "" {
		m, err := newMatcher(p, c.tool.Terminal, c.rules)
		if err != nil {
			reply := c.unfit(catalog.ArgPattern, err.Error())
			return w, &reply
		}
		m.ctx, m.until = ctx, time.Now().Add(w.most+matchGrace)
		w.pattern = m
	} else if c.tool.Verb == catalog.VerbRead {
		w.quiet = defaultQuiet
	}
	if c.args.Has(catalog.ArgQuiet) {
		w.quiet = time.Duration(c.args.Int(catalog.ArgQuiet)) * time.Millisecond
	}
	return w, nil
}

// wait waits for what the call asks for, and takes what is unread then. A call that is taken back takes nothing.
func (c *call) wait(ctx context.Context, h *handle) (waited string, got printed, no *Reply) {
	w, no := c.wish(ctx)
	if no != nil {
		return "", got, no
	}
	if n := c.r.handles.waiting.Add(1); int(n) > c.r.cfg.Queue {
		c.r.handles.waiting.Add(-1)
		c.unasked()
		reply := c.refuse(*refused(ledger.OutcomeBusy, fmt.Sprintf("busy: %d calls wait for programs", n-1), "nothing was read: call again when some of them have ended"))
		return "", got, &reply
	}
	defer c.r.handles.waiting.Add(-1)
	over, silent := time.NewTimer(w.most), time.NewTimer(max(w.quiet, 0))
	defer over.Stop()
	defer silent.Stop()
	var late, quiet bool
	for seen := int64(-1); ctx.Err() == nil; {
		running, takes := h.runs(), h.taken() // before the look: what came before the end is seen
		unread, n, more := h.out[0].state()
		unreadErrs, m, moreErrs := h.out[1].state()
		fresh := n+m != seen
		if fresh {
			silent.Reset(max(w.quiet, 0))
			seen, quiet = n+m, false
		}
		began := time.Now()
		switch {
		case fresh && (w.pattern.matches(h.out[0]) || w.pattern.matches(h.out[1])):
			waited = waitedPattern
		case !running:
			waited = waitedEnd
		case late:
			waited = waitedTime
		case quiet && w.quiet >= 0 && unread+unreadErrs > 0:
			waited = waitedQuiet
		}
		if waited != "" {
			if got, ok := h.takeIf(takes); ok {
				return waited, got, nil
			}
			waited = "" // another call took it
			continue
		}
		var rest <-chan time.Time
		switch looked := time.Since(began); {
		case w.pattern == nil && w.quiet < 0:
			more, moreErrs = nil, nil
		case looked > time.Millisecond: // a flood is looked at half of the time
			more, moreErrs, rest = nil, nil, time.After(looked)
		}
		select {
		case <-more:
		case <-moreErrs:
		case <-rest:
		case <-h.ended:
		case <-silent.C:
			quiet = true
		case <-over.C:
			late = true
		case <-ctx.Done():
		}
	}
	return "", got, nil
}
