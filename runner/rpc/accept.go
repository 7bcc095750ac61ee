package rpc

import (
	"bytes"
	"context"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Methods that are more to this package than a name.
const (
	methodInitialize  = "initialize"
	methodInitialized = "notifications/initialized"
	methodCancelled   = "notifications/cancelled"
	methodList        = "tools/list"
	methodCall        = "tools/call"
	methodListen      = "subscriptions/listen"
	methodSetLevel    = "logging/setLevel"
)

// Versions of MCP that make a difference here.
const (
	modernVersion = "2026-07-28" // the first without a handshake
	batchVersion  = "2025-03-26" // the only one with batches
)

// accept takes one line that is not blank.
func (s *server) accept(p *parser, line []byte) {
	if bytes.TrimLeft(line, " \t\r")[0] == '[' {
		s.acceptBatch(p, line)
		return
	}
	m, f := p.parse(line)
	if f != nil {
		s.reject(nil, line, f)
		return
	}
	s.dispatch(m, nil)
}

// acceptBatch takes one line that begins as an array.
func (s *server) acceptBatch(p *parser, line []byte) {
	members, f := p.split(line)
	switch {
	case f != nil:
	case !s.batches || !s.initialized.Load():
		f = badRequest("a batch is answered in a " + batchVersion + " session only")
	case len(members) == 0:
		f = badRequest("the batch is empty")
	case len(members) > maxBatch:
		f = badRequest("the batch is too long")
	}
	if f != nil {
		s.reject(nil, line, f)
		return
	}
	b := newBatch(s.out)
	defer b.answer(nil)
	for _, member := range members {
		m, f := p.parse(member)
		if f == nil && m.method == methodInitialize {
			f = badRequest("initialize must not be part of a batch").with(m.id.text)
		}
		if f != nil {
			b.expect()
			s.reject(b, member, f)
			continue
		}
		s.dispatch(m, b)
	}
}

// dispatch sends a message on its way. b is nil outside a batch.
func (s *server) dispatch(m message, b *batch) {
	switch m.kind {
	case isNotification:
		s.notified(m)
		return
	case isResponse:
		s.log.Debug("a response to no request of ours is dropped")
		return
	}
	if b != nil {
		b.expect()
	}
	if s.cfg.Refuse != nil {
		s.refused = true
		s.reject(b, m.line, &fault{code: codeRefused, text: s.cfg.Refuse.Error(), id: m.id.text})
		return
	}
	r := &request{message: m, batch: b, session: s.sessionFor(&m)}
	r.ctx, r.cancel = context.WithCancelCause(s.calls)
	if !s.open.add(r) {
		r.cancel(nil)
		s.reject(b, m.line, badRequest("the id is in use by a request that is not answered").with(m.id.text))
		return
	}
	r.session.give(r.wire())
}

// sessionFor chooses by what the request says of itself, else by how the client began.
func (s *server) sessionFor(m *message) *session {
	switch {
	case m.method == methodInitialize && !m.meta.modern():
		if !s.initialized.Swap(true) {
			s.batches = protocolOf(m.params) == batchVersion
		}
		return s.handshake
	case m.meta.modern() || !s.initialized.Load():
		return s.stateless
	}
	return s.handshake
}

// notified takes a notification. Cancelling is done here and not by the SDK, which would answer a cancelled call, and
// would not even begin one that is cancelled in its queue: it would have no row.
func (s *server) notified(m message) {
	switch m.method {
	case methodCancelled:
		if id, legal := parseID(memberOf(m.params, "requestId")); legal {
			s.open.cancel(id.key)
		}
	case methodInitialized:
		s.handshake.give(&jsonrpc.Request{Method: m.method, Params: m.params})
	}
}

// reject answers a line that is not understood, and has it recorded. In a batch, an answer was expected.
func (s *server) reject(b *batch, line []byte, f *fault) {
	s.rejected(f, int64(len(line)), digest(line))
	var build func(dst []byte) []byte
	if !f.silent {
		build = func(dst []byte) []byte { return appendError(dst, f.id, f.code, f.text, nil) }
	}
	s.reply(b, build)
}

func (s *server) rejectLong(long *overlong) {
	f := badRequest("the line is too long").with(recoverID(long.head))
	s.rejected(f, long.bytes, long.sha256)
	s.reply(nil, func(dst []byte) []byte { return appendError(dst, f.id, f.code, f.text, nil) })
}

func (s *server) rejected(f *fault, bytes int64, sha256 string) {
	s.log.Warn("a line is rejected", "code", f.code, "why", f.text, "bytes", bytes)
	s.backend.RejectedLine(f.code, bytes, sha256)
}

// protocolOf is the version that initialize asks for.
func protocolOf(params []byte) string { return label(memberOf(params, "protocolVersion")) }

// memberOf is one member of an object, nil where it is absent. raw is nil or known to be an object of valid JSON.
func memberOf(raw []byte, name string) (value []byte) {
	if raw == nil {
		return nil
	}
	eachMember(raw, func(member string, v []byte) {
		if member == name {
			value = v
		}
	})
	return value
}
