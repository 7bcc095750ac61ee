package rpc

import (
	"bytes"
	"context"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"toolrun/archive/ledger"
	"toolrun/runner"
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

// accept takes one line that is not blank. It returns a call that the caller is to serve, or nil.
func (s *server) accept(p *parser, line []byte) *request {
	if bytes.TrimLeft(line, " \t\r")[0] == '[' {
		s.acceptBatch(p, line)
		return nil
	}
	m, f := p.parse(line)
	if f != nil {
		s.reject(nil, &m, f)
		return nil
	}
	return s.dispatch(m, nil)
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
		s.rejectBatch(p, line, members, f)
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
			s.reject(b, &m, f)
			continue
		}
		if r := s.dispatch(m, b); r != nil {
			go s.serve(r)
		}
	}
}

// dispatch sends a message on its way, or returns a call that the caller is to serve. b is nil outside a batch.
func (s *server) dispatch(m message, b *batch) *request {
	switch m.kind {
	case isNotification:
		s.notified(m)
		return nil
	case isResponse:
		if !s.questions.answered(&m) {
			s.log.Debug("a response to no request of ours is dropped")
		}
		return nil
	}
	if b != nil {
		b.expect()
	}
	if s.cfg.Refuse != nil {
		s.refused = true
		s.reject(b, &m, &fault{code: codeRefused, text: s.cfg.Refuse.Error(), id: m.id.text})
		return nil
	}
	if m.method == methodInitialize {
		s.begin(&m)
	}
	r := &request{message: m, batch: b, session: s.sessionFor(&m)}
	r.ctx, r.cancel = context.WithCancelCause(s.calls)
	if !s.open.add(r) {
		r.cancel(nil)
		s.reject(b, &m, badRequest("the id is in use by a request that is not answered").with(m.id.text))
		return nil
	}
	if r.method == methodCall && r.session.passed.is(r.meta.era) {
		return r
	}
	r.session.give(r.wire())
	return nil
}

// sessionFor chooses by what the request says of itself, else by how the client began.
func (s *server) sessionFor(m *message) *session {
	if m.meta.modern() || !s.initialized.Load() {
		return s.stateless
	}
	return s.handshake
}

// begin notes that the client begins with initialize.
func (s *server) begin(m *message) {
	if !m.meta.modern() && !s.initialized.Swap(true) {
		s.batches = protocolOf(m.params) == batchVersion
	}
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

// reject has a message that is not accepted recorded, and answers it. In a batch, an answer was expected.
func (s *server) reject(b *batch, m *message, f *fault) {
	s.recordRefused(m, s.sessionFor(m), f)
	var build func(dst []byte) []byte
	if !f.silent {
		build = func(dst []byte) []byte { return s.appendFault(dst, f.id, f.code, f.text, nil) }
	}
	s.reply(b, build)
}

// rejectBatch answers a whole batch by one error. Each call in it that can be read is a refused call all the same, unless
// there are more of them than a batch may have.
func (s *server) rejectBatch(p *parser, line []byte, members [][]byte, f *fault) {
	calls := 0
	if len(members) <= maxBatch {
		for _, member := range members {
			if m, _ := p.parse(member); m.call {
				s.recordRefused(&m, s.sessionFor(&m), f)
				calls++
			}
		}
	}
	if calls == 0 {
		s.rejected(f, int64(len(line)), digest(line))
	}
	s.reply(nil, func(dst []byte) []byte { return s.appendFault(dst, f.id, f.code, f.text, nil) })
}

func (s *server) rejectLong(long *overlong) {
	f := badRequest("the line is too long").with(recoverID(long.head))
	s.rejected(f, long.bytes, long.sha256)
	s.reply(nil, func(dst []byte) []byte { return s.appendFault(dst, f.id, f.code, f.text, nil) })
}

// recordRefused puts what is answered with an error on the record: as a refused call where it is one whose tool can be
// named, else as a rejected line.
func (s *server) recordRefused(m *message, in *session, f *fault) {
	if !m.call {
		s.rejected(f, int64(len(m.line)), digest(m.line))
		return
	}
	refusal := runner.Refusal{Outcome: ledger.OutcomeInvalidArguments, Reason: f.text}
	if f.code == codeRefused { // the reason is told at the end, and once
		refusal.Outcome = ledger.OutcomeSandboxUnavailable
	} else {
		s.log.Warn("a call is refused", "code", f.code, "why", f.text)
	}
	origin := s.who.origin(m.meta.origin, in == s.handshake)
	s.announce(origin)
	reply := s.backend.Call(s.calls, runner.Request{Name: m.name, Arguments: m.arguments, Origin: origin, Refusal: refusal})
	if reply.Row == nil {
		s.log.Error("a refused call has no row", "error", reply.Err)
	}
}

func (s *server) rejected(f *fault, bytes int64, sha256 string) {
	if f.code != codeRefused {
		s.log.Warn("a line is rejected", "code", f.code, "why", f.text, "bytes", bytes)
	}
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
