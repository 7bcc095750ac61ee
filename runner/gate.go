package runner

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// errBusy: all places are taken and the queue is full.
var errBusy = errors.New("busy")

// gate lets a bounded number of calls run and a bounded number wait, first come first served.
//
// A tool's own limit holds back only that tool: calls of others go past its waiters. Invariant under mu: no waiter could
// run now; so an arrival that may run overtakes nobody who could.
type gate struct {
	jobs  int // calls that run at a time
	queue int // calls that wait

	mu      sync.Mutex
	running int
	perTool map[string]int // running calls of the tools that have a limit of their own
	waiting []*waiter      // in the order of arrival
}

// waiter is one call in the queue.
type waiter struct {
	tool     string
	limit    int
	admitted bool          // owned by gate.mu
	ready    chan struct{} // closed when admitted
}

func newGate(jobs, queue int) *gate {
	return &gate{jobs: jobs, queue: queue, perTool: make(map[string]int)}
}

// enter waits for a place; limit is the tool's own bound, 0 for none. It returns errBusy at once when the queue is full,
// and the cause of ctx when that ends first. After nil the caller owes leave with the same tool and limit.
func (g *gate) enter(ctx context.Context, tool string, limit int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	g.mu.Lock()
	if g.fits(tool, limit) {
		g.admit(tool, limit)
		g.mu.Unlock()
		return nil
	}
	if len(g.waiting) >= g.queue {
		g.mu.Unlock()
		return errBusy
	}
	w := &waiter{tool: tool, limit: limit, ready: make(chan struct{})}
	g.waiting = append(g.waiting, w)
	g.mu.Unlock()

	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		g.abandon(w)
		return context.Cause(ctx)
	}
}

// leave gives a place back and admits whoever may run now.
func (g *gate) leave(tool string, limit int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release(tool, limit)
}

// abandon takes a waiter out of the queue, or gives its place back when it was admitted at the same moment.
func (g *gate) abandon(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.admitted {
		g.release(w.tool, w.limit)
		return
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(other *waiter) bool { return other == w })
}

// load is how many calls run and how many wait.
func (g *gate) load() (running, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running, len(g.waiting)
}

func (g *gate) fits(tool string, limit int) bool {
	return g.running < g.jobs && (limit == 0 || g.perTool[tool] < limit)
}

func (g *gate) admit(tool string, limit int) {
	g.running++
	if limit > 0 {
		g.perTool[tool]++
	}
}

func (g *gate) release(tool string, limit int) {
	g.running--
	if limit > 0 {
		if g.perTool[tool]--; g.perTool[tool] == 0 {
			delete(g.perTool, tool)
		}
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(w *waiter) bool {
		if !g.fits(w.tool, w.limit) {
			return false
		}
		g.admit(w.tool, w.limit)
		w.admitted = true
		close(w.ready)
		return true
	})
}
