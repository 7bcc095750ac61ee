package runner

import (
	"io"
	"slices"
	"sync"

	"toolrun/archive/ledger"
	"toolrun/archive/watch"
)

// watched are the attempts that run, for whoever wants to look: see package watch.
type watched struct {
	mu   sync.Mutex
	list []*attempt // in the order of their start
}

// attempt is one that runs. captures are those of its call.
type attempt struct {
	watch.Call
	captures []*capture
	ended    chan struct{}
}

// begin makes the call's attempt one that can be watched, until the function that it returns is called.
func (w *watched) begin(c *call) (end func()) {
	a := &attempt{
		Call: watch.Call{
			ToolCallID: c.row.ToolCallID.String(), RunID: c.row.RunID, SessionID: c.row.SessionID.String(),
			ToolName: c.row.ToolName.String(), StartedAt: ledger.FormatTime(c.r.now()),
		},
		captures: c.streams,
		ended:    make(chan struct{}),
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, a)
	return func() {
		w.mu.Lock()
		w.list = slices.DeleteFunc(w.list, func(b *attempt) bool { return a == b })
		w.mu.Unlock()
		close(a.ended)
	}
}

// Running implements watch.Source.
func (w *watched) Running() []watch.Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := make([]watch.Call, len(w.list))
	for i, a := range w.list {
		calls[i] = a.Call
	}
	return calls
}

// Copy implements watch.Source.
func (w *watched) Copy(id string, to io.Writer, gone <-chan struct{}, follow bool) bool {
	w.mu.Lock()
	i := slices.IndexFunc(w.list, func(a *attempt) bool { return a.ToolCallID == id })
	var a *attempt
	if i >= 0 {
		a = w.list[i]
	}
	w.mu.Unlock()
	if a == nil {
		return false
	}
	seen := newUnread()
	for _, c := range a.captures {
		c.tap(seen)
		defer c.untap(seen)
	}
	for ended := !follow; ; {
		_, _, more := seen.state()
		dropped, text := seen.take(func(p []byte) int { return len(p) })
		if dropped > 0 {
			text = append([]byte(leftOutMark(false, dropped)), text...)
		}
		if _, err := to.Write(text); err != nil || ended {
			return true
		}
		select {
		case <-more:
		case <-a.ended:
			ended = true // once more: what came before the end
		case <-gone:
			return true
		}
	}
}
