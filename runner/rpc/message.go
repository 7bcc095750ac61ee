package rpc

import "encoding/json"

// What a message is.
type kind int

const (
	isRequest kind = iota
	isNotification
	isResponse // to a request of ours
)

// message is one line, or one member of a batch, understood. Its slices are parts of the line.
type message struct {
	kind   kind
	line   []byte
	id     identity // of a request or a response
	method string
	params []byte // an object; nil where there are none or they are null
	meta   meta   // of a request

	// Of tools/call only.
	name      string
	arguments json.RawMessage // any value, digit for digit; nil where there are none
}

// parse understands one message. A fault that has an id has a legal one.
func (p *parser) parse(line []byte) (message, *fault) {
	e, f := p.envelope(line)
	if f != nil {
		if f.code == codeInvalidRequest {
			f.id = recoverID(line)
		}
		return message{}, f
	}
	id, legal := parseID(e.id)
	switch {
	case e.folded:
		return message{}, badRequest("a key differs from jsonrpc, id, method, params, result or error in case only").with(id.text)
	case e.id != nil && !legal:
		return message{}, badRequest("the id must be a string or an integer")
	case string(e.version) != `"2.0"`:
		return message{}, badRequest(`jsonrpc must be "2.0"`).with(id.text)
	case e.method == nil && e.answer && legal:
		return message{kind: isResponse, line: line, id: id}, nil
	case e.method == nil || e.method[0] != '"':
		return message{}, badRequest("method must be a string").with(id.text)
	case e.answer:
		return message{}, badRequest("a request has no result and no error").with(id.text)
	}
	m := message{kind: isRequest, line: line, id: id, method: unquote(e.method)}
	if e.id == nil {
		m.kind = isNotification
	}
	if f := m.takeParams(&e); f != nil {
		f.id, f.silent = id.text, m.kind == isNotification
		return m, f
	}
	return m, nil
}

// takeParams checks what of params every method has in common, and all of those of tools/call.
func (m *message) takeParams(e *envelope) *fault {
	switch {
	case e.params == nil || string(e.params) == "null":
	case e.params[0] != '{':
		return badParams("params must be an object")
	default:
		m.params = e.params
	}
	if e.foldedMeta || m.method == methodCall && e.foldedParams {
		return badParams("a key differs from name, arguments or _meta in case only")
	}
	if m.kind == isRequest && e.meta != nil && string(e.meta) != "null" {
		if e.meta[0] != '{' {
			return badParams("_meta must be an object")
		}
		var f *fault
		if m.meta, f = parseMeta(e.meta); f != nil {
			return f
		}
	}
	if m.method != methodCall {
		return nil
	}
	if len(e.name) == 0 || e.name[0] != '"' {
		return badParams("unknown tool: name must be a string")
	}
	m.name, m.arguments = unquote(e.name), e.arguments
	if m.kind == isNotification {
		return badRequest("tools/call needs an id")
	}
	return nil
}
