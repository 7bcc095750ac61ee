package rpc

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// appendResult appends a JSON-RPC response with a result, given as JSON.
func appendResult(dst, id, result []byte) []byte {
	dst = appendHead(dst, id)
	dst = append(dst, `,"result":`...)
	return append(append(dst, result...), '}')
}

// appendError appends a JSON-RPC response with an error. data is JSON or nil.
func appendError(dst, id []byte, code int, text string, data []byte) []byte {
	dst = appendHead(dst, id)
	dst = append(dst, `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(code), 10)
	dst = append(dst, `,"message":`...)
	dst = appendString(dst, text)
	if data != nil {
		dst = append(append(dst, `,"data":`...), data...)
	}
	return append(dst, "}}"...)
}

// appendFault appends an error answer from which secrets were removed: its text may repeat what the client sent, a method's
// name or a resource's. Only the id goes back as it came, as JSON-RPC wants it.
func (s *server) appendFault(dst, id []byte, code int, text string, data []byte) []byte {
	if rules := s.cfg.Rules; rules != nil && data != nil {
		masked, err := rules.JSON(data)
		data = masked.Raw()
		if err != nil {
			data = nil
		}
	}
	return appendError(dst, id, code, s.masked(text), data)
}

// masked removes secrets from a text. It comes before any cut: half a secret does not look like one.
func (s *server) masked(text string) string {
	if s.cfg.Rules == nil {
		return text
	}
	return s.cfg.Rules.Text(text).String()
}

func appendHead(dst, id []byte) []byte {
	if id == nil {
		id = []byte("null")
	}
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	return append(dst, id...)
}

// appendString appends a JSON string; what is not UTF-8 in s becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}

// wireError is the one table from a handler's error to what the client is told. Errors of the SDK that are no
// jsonrpc.Error themselves repeat parts of the request, and some have no code; they are told in our words. method is masked.
func wireError(err error, method string) (code int, text string, data json.RawMessage) {
	if e, ok := err.(*jsonrpc.Error); ok && e.Code != 0 {
		return int(e.Code), e.Message, e.Data
	}
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		code = int(e.Code)
	}
	switch {
	case code == codeNoMethod:
		if len(method) > 100 {
			method = method[:100] + "..."
		}
		text = "method not found: " + strconv.Quote(method)
	case code == codeInvalidRequest && strings.Contains(err.Error(), `"params"`):
		code, text = codeInvalidParams, "invalid params: they are missing"
	case code == codeInvalidRequest:
		text = "invalid request for this method"
	case code == codeInvalidParams:
		text = "invalid params for this method"
	case strings.Contains(err.Error(), "duplicate"):
		code, text = codeInvalidRequest, "invalid request: this session is initialized already"
	case strings.Contains(err.Error(), "initialization"):
		code, text = codeInvalidRequest, "invalid request: this session is not initialized"
	case method == methodInitialize:
		code, text = codeInvalidParams, "invalid params for this method"
	default:
		code, text = codeInternal, "internal error"
	}
	return code, text, data
}
