package rpc

import (
	"context"
	"sync"

	"toolrun/runner"
)

// request is one request from its line to its answer.
type request struct {
	message
	session *session // the one that was asked
	batch   *batch   // nil where the request stands alone
	seq     int64    // the id that the SDK knows it by

	// ctx ends when the client cancels the request or the server ends; its cause says which.
	ctx    context.Context
	cancel context.CancelCauseFunc

	// Owned by the handler until it returns, then by whoever settles the request.
	result  []byte // JSON of a result that the SDK is not to encode
	reached bool   // the backend has the call, and with it its row

	cancelled bool // owned by inflight.mu
}

// inflight is every request that has been read and not been answered.
type inflight struct {
	mu      sync.Mutex
	last    int64
	byID    map[string]*request // by the client's id
	bySeq   map[int64]*request
	owed    int           // final answers that are still to come, and calls that go on without a request: an open subscriptions/listen owes none
	drained chan struct{} // closed as soon as owed is 0 after drain was called
}

func newInflight() *inflight {
	return &inflight{byID: make(map[string]*request), bySeq: make(map[int64]*request)}
}

// add gives the request its seq, unless its id is in use.
func (t *inflight) add(r *request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[r.id.key] != nil {
		return false
	}
	t.last++
	r.seq = t.last
	t.byID[r.id.key], t.bySeq[r.seq] = r, r
	if r.method != methodListen {
		t.owed++
	}
	return true
}

// cancel ends the request with this id by the client's wish. A request that is unknown, answered or cancelled already is
// nothing to cancel, and initialize must not be (MCP 2025-03-26, Cancellation).
func (t *inflight) cancel(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.byID[key]
	if r == nil || r.method == methodInitialize || r.cancelled {
		return
	}
	r.cancelled = true
	r.cancel(runner.ErrCancelled)
}

// settle takes the request out: from here on nobody can cancel it. It is nil where no request has this seq. The caller
// sends the answer, but not of a cancelled request, and then calls release.
func (t *inflight) settle(seq int64) *request {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.bySeq[seq]
	if r != nil {
		delete(t.bySeq, seq)
		delete(t.byID, r.id.key)
	}
	return r
}

// owe says that a call goes on without a request, until paid.
func (t *inflight) owe() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owed++
}

// paid says that such a call has ended.
func (t *inflight) paid() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settled()
}

// release says that the request is done with: its answer is on its way, or it has none.
func (t *inflight) release(r *request) {
	r.cancel(nil)
	if r.method == methodListen {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settled()
}

// settled counts one answer or call less. The caller holds mu.
func (t *inflight) settled() {
	t.owed--
	if t.owed == 0 && t.drained != nil {
		close(t.drained)
		t.drained = nil
	}
}

// drain returns a channel that is closed when no answer is owed. Nothing is added from then on.
func (t *inflight) drain() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	done := make(chan struct{})
	if t.owed == 0 {
		close(done)
	} else {
		t.drained = done
	}
	return done
}
