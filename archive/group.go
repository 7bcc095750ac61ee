package archive

import "sync"

// group lets callers that come while do runs share its next run: each wait returns after a run that began after wait was
// called. One fdatasync so serves all calls that end at about the same time.
type group struct {
	do func() error

	mu      sync.Mutex
	running bool
	next    *round // of those who wait for the run after this one
}

type round struct {
	done chan struct{}
	err  error
}

func (g *group) wait() error {
	g.mu.Lock()
	r := g.next
	lead := r == nil
	if lead {
		r = &round{done: make(chan struct{})}
		g.next = r
	}
	if g.running || !lead {
		g.mu.Unlock()
		<-r.done
		return r.err
	}
	g.mu.Unlock()
	g.run()
	return r.err
}

// run runs do for the waiting round, and then for the one that gathered meanwhile.
func (g *group) run() {
	for {
		g.mu.Lock()
		r := g.next
		g.next, g.running = nil, r != nil
		g.mu.Unlock()
		if r == nil {
			return
		}
		r.err = g.do()
		close(r.done)
	}
}
