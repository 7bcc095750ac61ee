package rpc

import (
	"context"
	"strconv"
	"sync"
	"time"

	"toolrun/archive/redact"
)

// progressEvery is how often a client that gave a progressToken is told the last line of output, at most.
const progressEvery = time.Second

// progress sends notifications/progress for one call.
type progress struct {
	ctx   context.Context // of the call
	out   *writer
	token []byte // JSON text

	mu     sync.Mutex
	sent   int
	next   time.Time   // nothing is sent before
	timer  *time.Timer // set while latest waits for next
	latest string
	done   bool
}

func newProgress(ctx context.Context, out *writer, token []byte) *progress {
	return &progress{ctx: ctx, out: out, token: token}
}

// tell sends line now, or the latest line when it is time.
func (p *progress) tell(line redact.Text) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done || p.ctx.Err() != nil {
		return
	}
	p.latest = line.String()
	if p.timer != nil {
		return
	}
	if wait := time.Until(p.next); wait > 0 {
		p.timer = time.AfterFunc(wait, p.due)
		return
	}
	p.send()
}

func (p *progress) due() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = nil
	if !p.done && p.ctx.Err() == nil {
		p.send()
	}
}

// send counts notifications, because the value must grow and how much there is to do is not known.
func (p *progress) send() {
	p.sent++
	p.next = time.Now().Add(progressEvery)
	p.out.send(func(dst []byte) []byte {
		dst = append(dst, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`...)
		dst = append(append(dst, p.token...), `,"progress":`...)
		dst = strconv.AppendInt(dst, int64(p.sent), 10)
		dst = append(dst, `,"message":`...)
		return append(appendString(dst, p.latest), "}}"...)
	})
}

// stop returns when nothing more will be sent: after the answer there is no progress.
func (p *progress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	if p.timer != nil {
		p.timer.Stop()
	}
}
