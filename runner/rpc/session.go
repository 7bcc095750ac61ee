package rpc

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// session is one of the SDK's sessions, and the transport and connection it stands on. It has no stream of its own: the
// reader gives it messages, and the writer of the server takes its answers.
type session struct {
	server *server
	inbox  chan jsonrpc.Message
	closed chan struct{}
	once   sync.Once
	mcp    *mcp.ServerSession
	passed passed
}

// connect makes a session that begins in state, nil for a new one.
func connect(s *server, state *mcp.ServerSessionState) *session {
	c := &session{server: s, inbox: make(chan jsonrpc.Message, 64), closed: make(chan struct{})}
	var err error
	c.mcp, err = s.mcp.Connect(context.Background(), c, &mcp.ServerSessionOptions{State: state})
	if err != nil { // only ever the error of c.Connect
		panic("rpc: " + err.Error())
	}
	return c
}

// Connect implements mcp.Transport.
func (c *session) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID implements mcp.Connection: stdio has none.
func (c *session) SessionID() string { return "" }

// Close implements mcp.Connection.
func (c *session) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// Read implements mcp.Connection. It meets the end only when end was called: an end of stdin would make the SDK drop
// the answers to what it has read before.
func (c *session) Read(context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.inbox:
		return m, nil
	case <-c.closed:
		return nil, io.EOF
	}
}

// give hands a message to the SDK. It does not wait for its handler.
func (c *session) give(m jsonrpc.Message) {
	select {
	case c.inbox <- m:
	case <-c.closed:
	}
}

// end ends the session, in which no answer is owed, and returns when its handlers have.
func (c *session) end() {
	c.Close()
	c.mcp.Wait()
}

// extraKey is where a request travels through the SDK, which passes an Extra on and never looks inside.
const extraKey = "toolrun"

// wire is the request as the SDK sees it: under an id of ours, because its own ids are a float64 or a string. Of a
// tools/call it sees only what says the protocol.
func (r *request) wire() *jsonrpc.Request {
	id, _ := jsonrpc.MakeID(float64(r.seq))
	params := r.params
	if r.method == methodCall {
		params = []byte(`{"name":""}`)
		if era := r.meta.era; era != nil {
			params = append(append([]byte(`{"name":"","_meta":`), era...), '}')
		}
	}
	extra := &mcp.RequestExtra{TokenInfo: &auth.TokenInfo{Extra: map[string]any{extraKey: r}}}
	return &jsonrpc.Request{ID: id, Method: r.method, Params: params, Extra: extra}
}

// passed is what the latest tools/call of a session said of its protocol that the SDK let pass. The next ones say the
// same, and the SDK has nothing more to say to them: they are served without it, since a look of it costs 64 KiB of buffer
// and the wake-up of two more threads.
type passed struct{ era atomic.Pointer[[]byte] }

func (p *passed) is(era []byte) bool {
	known := p.era.Load()
	return known != nil && bytes.Equal(*known, era)
}

func (p *passed) add(era []byte) {
	if !p.is(era) {
		p.era.Store(&era)
	}
}

// requestOf finds the request that the SDK carried through; nil for a notification.
func requestOf(req mcp.Request) *request {
	extra := req.GetExtra()
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	r, _ := extra.TokenInfo.Extra[extraKey].(*request)
	return r
}

// Write implements mcp.Connection. It never fails, because the SDK would cancel every call, and never blocks. Answers of
// cancelled requests end here.
func (c *session) Write(_ context.Context, m jsonrpc.Message) error {
	s := c.server
	resp, ok := m.(*jsonrpc.Response)
	if !ok {
		line, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			s.log.Error("a message to the client cannot be encoded", "error", err)
			return nil
		}
		s.out.send(func(dst []byte) []byte { return append(dst, line...) })
		return nil
	}
	seq, _ := resp.ID.Raw().(int64)
	r := s.open.settle(seq)
	if r == nil {
		s.log.Error("an answer to no request is dropped", "seq", seq)
		return nil
	}
	result := []byte(resp.Result)
	if r.result != nil {
		result = r.result
	}
	s.conclude(r, result, resp.Error)
	return nil
}

// conclude answers a request that was settled, by its result or, where that is not nil, by err.
func (s *server) conclude(r *request, result []byte, err error) {
	defer s.open.release(r)
	build := s.answer(r, result, err)
	if r.cancelled {
		build = nil
	}
	s.reply(r.batch, build)
}

// answer makes the answer to r, and records the request where it is refused and the backend does not know it yet.
func (s *server) answer(r *request, result []byte, err error) func(dst []byte) []byte {
	if err == nil {
		return func(dst []byte) []byte { return appendResult(dst, r.id.text, result) }
	}
	code, text, data := wireError(err, s.masked(r.method))
	if r.method == methodInitialize && !strings.Contains(err.Error(), "duplicate") {
		s.initialized.Store(false)
	}
	if !r.reached {
		s.recordRefused(&r.message, r.session, &fault{code: code, text: text})
	}
	return func(dst []byte) []byte { return s.appendFault(dst, r.id.text, code, text, data) }
}

// reply sends an answer, nil for none, by itself or into its batch.
func (s *server) reply(b *batch, build func(dst []byte) []byte) {
	switch {
	case b != nil:
		b.answer(build)
	case build != nil:
		s.out.send(build)
	}
}
