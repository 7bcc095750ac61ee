package rpc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"toolrun/runner"
)

// middleware stands between the SDK and its handlers. Methods that concern tools never reach those.
func (s *server) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		r := requestOf(req)
		if r == nil { // a notification
			return next(ctx, method, req)
		}
		return survived(s, r, func(r *request) (mcp.Result, error) {
			switch r.method {
			case methodInitialize:
				return s.initialize(ctx, method, req, r, next)
			case methodList:
				return s.list(req, r)
			case methodCall:
				return s.firstCall(r)
			case methodListen:
				return s.listen(ctx, req, r)
			case methodSetLevel: // not offered: nothing is ever logged to a client
				return nil, &jsonrpc.Error{Code: codeNoMethod, Message: `method not found: "` + method + `"`}
			}
			return next(ctx, method, req)
		})
	}
}

// survived handles a request; a panic of the handler is the end of this request only.
func survived[R any](s *server, r *request, handle func(*request) (R, error)) (res R, err error) {
	defer func() {
		if v := recover(); v != nil {
			s.panicked(r.method, v)
			err = &jsonrpc.Error{Code: codeInternal, Message: "internal error"}
		}
	}()
	return handle(r)
}

// panicked logs where a handler died. The value is told only where the runtime made it: others may hold arguments.
func (s *server) panicked(method string, v any) {
	why := fmt.Sprintf("%T", v)
	var rt runtime.Error
	if err, ok := v.(error); ok && errors.As(err, &rt) {
		why = rt.Error()
	}
	s.log.Error("a handler panicked; its request is answered with an error", "method", method, "why", why, "stack", string(debug.Stack()))
}

// initialize lets the SDK agree on a version, and keeps who the client is.
func (s *server) initialize(ctx context.Context, method string, req mcp.Request, r *request, next mcp.MethodHandler) (mcp.Result, error) {
	res, err := next(ctx, method, req)
	if err != nil {
		return nil, err
	}
	s.who.initialize(clientOf(orNull(memberOf(r.params, "clientInfo"))), elicits(memberOf(r.params, "capabilities")), res.(*mcp.InitializeResult).ProtocolVersion)
	s.announce(s.originOf(r))
	return res, nil
}

// originOf is who sent the request.
func (s *server) originOf(r *request) runner.Origin {
	return s.who.origin(r.meta.origin, r.session == s.handshake)
}

// announce has the session recorded before anything that belongs to it.
func (s *server) announce(o runner.Origin) {
	if err := s.who.announce(s.backend, o); err != nil {
		s.log.Error("a session is not on the record", "error", err)
	}
}

func orNull(v []byte) []byte {
	if v == nil {
		return []byte("null")
	}
	return v
}

// list answers tools/list: all tools on one page, since two of the common clients read no second one. No cursor was ever
// handed out, so that none is valid.
func (s *server) list(req mcp.Request, r *request) (mcp.Result, error) {
	if params, ok := req.GetParams().(*mcp.ListToolsParams); ok && params != nil && params.Cursor != "" {
		return nil, &jsonrpc.Error{Code: codeInvalidParams, Message: "invalid params: unknown cursor"}
	}
	s.announce(s.originOf(r))
	return &mcp.ListToolsResult{Tools: s.tools, Cacheable: mcp.Cacheable{CacheScope: "private"}}, nil
}

// listen answers subscriptions/listen with the acknowledgement that nothing will come: the catalog is frozen. It stays
// open until the client cancels it or the server ends, as the subscription of a client that got something would.
func (s *server) listen(ctx context.Context, req mcp.Request, r *request) (mcp.Result, error) {
	params, ok := req.GetParams().(*mcp.SubscriptionsListenParams)
	if !ok || params.Notifications == nil {
		return nil, &jsonrpc.Error{Code: codeInvalidParams, Message: "invalid params: notifications must be an object"}
	}
	s.out.send(func(dst []byte) []byte {
		dst = append(dst, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"`+mcp.MetaKeySubscriptionID+`":`...)
		return append(append(dst, r.id.text...), `},"notifications":{}}}`...)
	})
	select {
	case <-ctx.Done():
	case <-r.ctx.Done():
	}
	return &mcp.SubscriptionsListenResult{}, nil
}
