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

// run runs do for the round that waits; where another gathered meanwhile, a goroutine goes on with that.
func (g *group) run() {
	g.mu.Lock()
	r := g.next
	g.next, g.running = nil, true
	g.mu.Unlock()
	r.err = g.do()
	close(r.done)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running = g.next != nil; g.running {
		go g.run()
	}
}
