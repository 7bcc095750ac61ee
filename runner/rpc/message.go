package rpc

import "encoding/json"

// What a message is.
type kind int

const (
	isRequest kind = iota
	isNotification
	isResponse // to a request of ours
)

// message is one line, or one member of a batch, as far as it could be understood. Its slices are parts of the line.
type message struct {
	kind   kind
	line   []byte
	id     identity // of a request or a response
	method string
	params []byte // an object; nil where there are none or they are null
	meta   meta   // of a request

	// Of tools/call only.
	call      bool // there is a name that can be read: accepted or refused, it goes to the backend
	name      string
	arguments json.RawMessage // any value, digit for digit; nil where there are none
	state     []byte          // requestState, and the next inputResponses; any value
	responses []byte
}

// parse understands one message. A fault that has an id has a legal one. With a fault the message holds what could be
// read all the same.
func (p *parser) parse(line []byte) (m message, f *fault) {
	m.line = line
	e, f := p.envelope(line)
	if f != nil {
		if f.code == codeInvalidRequest {
			e = recoverEnvelope(line)
			m.take(&e)
			f.id = m.id.text
		}
		return m, f
	}
	wrongMeta := m.take(&e)
	switch {
	case e.folded:
		f = badRequest("a key differs from jsonrpc, id, method, params, result or error in case only")
	case e.id != nil && m.id.text == nil:
		f = badRequest("the id must be a string or an integer")
	case string(e.version) != `"2.0"`:
		f = badRequest(`jsonrpc must be "2.0"`)
	case e.method == nil && e.answer && m.id.text != nil:
		m.kind = isResponse
		return m, nil
	case !isString(e.method):
		f = badRequest("method must be a string")
	case e.answer:
		f = badRequest("a request has no result and no error")
	default:
		if f = m.checkParams(&e, wrongMeta); f != nil {
			f.silent = m.kind == isNotification
		}
	}
	if f != nil {
		f.id = m.id.text
	}
	return m, f
}

// take takes what is of its kind and gives what is wrong with the _meta of a request.
func (m *message) take(e *envelope) (wrongMeta *fault) {
	if e.id == nil {
		m.kind = isNotification
	} else if id, legal := parseID(e.id); legal {
		m.id = id
	}
	if isString(e.method) {
		m.method = unquote(e.method)
	}
	if isObject(e.params) {
		m.params = e.params
	}
	if isObject(e.meta) {
		m.meta, wrongMeta = parseMeta(e.meta)
	}
	if m.method == methodCall && isString(e.name) {
		m.call, m.name, m.arguments = true, unquote(e.name), e.arguments
		m.state, m.responses = e.state, e.responses
	}
	return wrongMeta
}

// checkParams checks what of params every method has in common, and all of those of tools/call.
func (m *message) checkParams(e *envelope, wrongMeta *fault) *fault {
	switch {
	case !isNull(e.params) && !isObject(e.params):
		return badParams("params must be an object")
	case e.foldedMeta || m.method == methodCall && e.foldedParams:
		return badParams("a key differs from name, arguments or _meta in case only")
	case m.kind == isRequest && !isNull(e.meta) && !isObject(e.meta):
		return badParams("_meta must be an object")
	case m.kind == isRequest && wrongMeta != nil:
		return wrongMeta
	case m.method == methodCall && !m.call:
		return badParams("unknown tool: name must be a string")
	case m.method == methodCall && m.kind == isNotification:
		return badRequest("tools/call needs an id")
	}
	return nil
}

// What a raw value is; nil, for a member that is absent, is as good as null.
func isString(v []byte) bool { return len(v) > 0 && v[0] == '"' }
func isObject(v []byte) bool { return len(v) > 0 && v[0] == '{' }
func isNull(v []byte) bool   { return v == nil || string(v) == "null" }
