package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"toolrun/archive/held"
	"toolrun/archive/ledger"
	"toolrun/runner"
)

// answered stands for a result that is encoded already, in request.result. The SDK passes it through its own encoder.
type answered struct{ mcp.ResultBase }

// MarshalJSON makes it as cheap as it can be.
func (*answered) MarshalJSON() ([]byte, error) { return []byte("{}"), nil }

// serve is the whole life of a call that does not go through the SDK.
func (s *server) serve(r *request) {
	result, err := survived(s, r, s.call)
	if s.open.settle(r.seq) == nil {
		s.log.Error("a call is no longer known, its answer is dropped", "seq", r.seq)
		return
	}
	s.conclude(r, result, err)
}

// firstCall is a call that came through the SDK: those after it need not.
func (s *server) firstCall(r *request) (_ mcp.Result, err error) {
	r.session.passed.add(r.meta.era)
	if r.result, err = s.call(r); err != nil {
		return nil, err
	}
	return new(answered), nil
}

// call hands a tools/call to the backend, or takes up one that it has already. The context is the request's own, not
// the SDK's, which also ends when nothing more can be read.
func (s *server) call(r *request) ([]byte, error) {
	if r.meta.modern() && !isNull(r.state) {
		return s.resume(r)
	}
	req := runner.Request{Name: r.name, Arguments: r.arguments, Origin: s.originOf(r)}
	s.announce(req.Origin)
	if s.asks[r.name] {
		switch {
		case r.meta.modern() && r.meta.elicits:
			r.reached = true
			return s.attend(r, s.park(r, req))
		case r.session == s.handshake && s.who.elicits():
			var asking sync.Mutex
			req.Ask = func(ctx context.Context, c held.Call) runner.Said {
				asking.Lock()
				defer asking.Unlock()
				return s.elicit(ctx, c)
			}
			defer asking.Lock() // no question is asked or taken back behind the answer
		}
	}
	if r.meta.progressToken != nil {
		p := newProgress(r.ctx, s.out, r.meta.progressToken)
		defer p.stop() // before the answer is sent
		req.Progress = p.tell
	}
	r.reached = true
	return s.replied(r, s.backend.Call(r.ctx, req))
}

// replied gives the backend's reply as a CallToolResult.
func (s *server) replied(r *request, reply runner.Reply) ([]byte, error) {
	facts, err := encode(reply.Facts())
	if err != nil {
		return nil, fmt.Errorf("encode the facts of a call: %w", err)
	}
	if reply.Err != nil {
		s.log.Error("a call is not on the record, or may not stay there", "error", reply.Err)
	}
	if reply.Row != nil && reply.Row.Outcome == ledger.OutcomeUnknownTool {
		return nil, &jsonrpc.Error{Code: codeInvalidParams, Message: reply.Message, Data: facts}
	}
	return s.appendReply(nil, r, reply, facts), nil
}

// appendReply appends a CallToolResult. Some clients show a model only the text, some only the structured content.
func (s *server) appendReply(dst []byte, r *request, reply runner.Reply, facts []byte) []byte {
	text := reply.Text()
	dst = slices.Grow(dst, len(text)+len(text)/8+len(facts)+512)
	dst = append(dst, `{"_meta":{`...)
	if row := reply.Row; row != nil {
		dst = append(dst, `"toolrun/tool_call_id":`...)
		dst = appendString(dst, row.ToolCallID.String())
		dst = fmt.Appendf(dst, `,"toolrun/seq":%d,"toolrun/run_id":`, row.Seq)
		dst = appendString(dst, row.RunID)
	}
	if r.meta.modern() { // MCP 2026-07-28: serverInfo here, resultType below
		if reply.Row != nil {
			dst = append(dst, ',')
		}
		dst = append(dst, `"`+mcp.MetaKeyServerInfo+`":{"name":"toolrun","version":`...)
		dst = append(appendString(dst, s.cfg.Version), '}')
	}
	dst = append(dst, `},"content":[{"type":"text","text":`...)
	dst = appendString(dst, text)
	dst = append(dst, `}],"structuredContent":`...)
	dst = append(dst, facts...)
	dst = fmt.Appendf(dst, `,"isError":%t`, reply.IsError())
	if r.meta.modern() {
		dst = append(dst, `,"resultType":"complete"`...)
	}
	return append(dst, '}')
}

// encode is json.Marshal without the escapes that HTML would need.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
