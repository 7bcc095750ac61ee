package rpc

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// Error codes of JSON-RPC 2.0 §5.1, and the one of the range it leaves to servers that a refusing host answers with.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeRefused        = -32000
)

// fault is what is wrong with a line. Its text never repeats a value, a key or a character of the line.
type fault struct {
	code int
	text string
	id   []byte // JSON text; nil is answered as null
	// silent: the line is a notification, which JSON-RPC forbids to answer, whatever is wrong with it.
	silent bool
}

// with sets the id that the answer carries.
func (f *fault) with(id []byte) *fault {
	f.id = id
	return f
}

func badRequest(text string) *fault {
	return &fault{code: codeInvalidRequest, text: "invalid request: " + text}
}

func badParams(text string) *fault {
	return &fault{code: codeInvalidParams, text: "invalid params: " + text}
}

// faultOf turns an error of the JSON reader into a fault. A name that stands twice is JSON by RFC 8259 §4, but nobody
// can say which value was meant; everything else is no JSON (RFC 8259), or not of Unicode characters (RFC 7493 §2.1).
func faultOf(err error) *fault {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return badRequest("a key stands twice in one object")
	}
	return &fault{code: codeParse, text: "parse error: the line is not one value of valid JSON in valid Unicode"}
}
