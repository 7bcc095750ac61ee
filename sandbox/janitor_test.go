package sandbox

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Without a bound a server that is kept busy by 8 callers ran out of descriptors within seconds.
func TestCallsDoWhatTheJanitorIsBehindWith(t *testing.T) {
	j := newJanitor()
	held, open, did := make(chan struct{}), make(chan struct{}), atomic.Int64{}
	j.later(func() { close(held); <-open })
	<-held
	const behind = 5
	for range janitorBound + behind {
		j.later(func() { did.Add(1) })
	}
	j.begin(t.Context())
	if n := did.Load(); n != behind {
		t.Errorf("a call did %d jobs before it began, not %d", n, behind)
	}
	j.begin(t.Context())
	if n := did.Load(); n != behind {
		t.Errorf("the next one did %d more, with no more than the bound to do", n-behind)
	}
	close(open)
	j.end()
	j.end()
	j.settle()
	if n := did.Load(); n != janitorBound+behind {
		t.Errorf("%d jobs of %d are done", n, janitorBound+behind)
	}
	j.close()
}

// What a call has begun to do for the janitor is done before those go on that take away what it works on.
func TestSettledIsWhatCallsDoToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJanitor()
		held, open := make(chan struct{}), make(chan struct{})
		j.later(func() { close(held); <-open })
		<-held
		begun, end := make(chan struct{}), make(chan struct{})
		j.later(func() { close(begun); <-end })
		for range janitorBound {
			j.later(func() {})
		}
		go func() { j.begin(t.Context()); j.end() }()
		<-begun
		settled := make(chan struct{})
		go func() { j.settle(); close(settled) }()
		close(open)
		time.Sleep((janitorBound + 2) * janitorDelay) // all that is left is what the call does
		synctest.Wait()
		select {
		case <-settled:
			t.Error("it was settled before the call had done its job")
		default:
		}
		close(end)
		<-settled
		j.close()
	})
}
