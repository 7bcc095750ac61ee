package rpc

import (
	"context"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"toolrun/archive/held"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/runner"
)

// parked is a call of a client that is asked by an InputRequiredResult (MCP 2026-07-28): it outlives the request that
// brought it, which that result answers, and is taken up by the request that brings the user's answer. One goroutine runs
// it; at most one request attends it at a time.
type parked struct {
	server    *server
	name      string
	arguments [32]byte
	cancel    context.CancelCauseFunc

	question chan held.Call   // holds one: the call is held
	answers  chan runner.Said // holds one: of the re-send
	done     chan ended       // holds one
	progress atomic.Pointer[progress]
}

// ended is the end of a parked call.
type ended struct {
	reply runner.Reply
	err   error
}

// inputKey is the name of our one question in inputRequests and inputResponses.
const inputKey = "approval"

// park begins a call that may have to ask by an InputRequiredResult.
func (s *server) park(r *request, req runner.Request) *parked {
	ctx, cancel := context.WithCancelCause(s.calls)
	p := &parked{
		server: s, name: r.name, arguments: argumentsOf(r.arguments), cancel: cancel,
		question: make(chan held.Call, 1), answers: make(chan runner.Said, 1), done: make(chan ended, 1),
	}
	req.Ask = p.ask
	req.Progress = p.tell
	s.open.owe()
	go func() {
		defer s.open.paid()
		defer cancel(nil)
		reply, err := survived(s, r, func(*request) (runner.Reply, error) { return s.backend.Call(ctx, req), nil })
		p.done <- ended{reply, err}
	}()
	return p
}

// ask has the open request answered by the question, and waits for what a re-send brings. When none can come any more
// nobody can take the call's answer either.
func (p *parked) ask(ctx context.Context, c held.Call) runner.Said {
	if ctx.Err() != nil {
		return runner.Said{}
	}
	p.question <- c
	select {
	case said := <-p.answers:
		return said
	case <-p.server.ended:
		p.cancel(runner.Interrupted("stdin has ended, and the client's user was not heard"))
	case <-ctx.Done():
	}
	return runner.Said{}
}

// tell passes progress on to the request that attends.
func (p *parked) tell(line redact.Text) {
	if to := p.progress.Load(); to != nil {
		to.tell(line)
	}
}

// attend answers a request by the end of a call, or by its question.
func (s *server) attend(r *request, p *parked) ([]byte, error) {
	stop := context.AfterFunc(r.ctx, func() { p.cancel(context.Cause(r.ctx)) })
	defer stop() // before the request is released, which ends its context
	if r.meta.progressToken != nil {
		to := newProgress(r.ctx, s.out, r.meta.progressToken)
		defer to.stop()
		p.progress.Store(to)
		defer p.progress.Store(nil)
	}
	select {
	case end := <-p.done:
		if end.err != nil {
			return nil, end.err
		}
		return s.replied(r, end.reply)
	case c := <-p.question:
		state := s.states.issue(p, c.Expires())
		dst := []byte(`{"_meta":{"` + mcp.MetaKeyServerInfo + `":{"name":"toolrun","version":`)
		dst = append(appendString(dst, s.cfg.Version), `}},"inputRequests":{"`+inputKey+`":{"method":"`+methodElicit+`","params":`...)
		dst = appendQuestion(dst, &c, "form")
		dst = append(dst, `}},"requestState":"`+state+`","resultType":"input_required"}`...)
		return dst, nil
	}
}

// resume takes up the call that a request's requestState names.
func (s *server) resume(r *request) ([]byte, error) {
	p, err := s.states.use(label(r.state), r.name, argumentsOf(r.arguments))
	if err != nil {
		return nil, &jsonrpc.Error{Code: codeInvalidParams, Message: err.Error()}
	}
	r.reached = true
	var said runner.Said
	if isObject(r.responses) {
		said = saidOf(memberOf(r.responses, inputKey), ledger.ViaInputRequired)
	}
	p.answers <- said
	return s.attend(r, p)
}
