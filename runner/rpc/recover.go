package rpc

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// recoverEnvelope reads what can be read without a guess of a line in which a key stands twice somewhere: the members
// that stand once. A _meta that is itself ambiguous is none.
func recoverEnvelope(line []byte) (e envelope) {
	top := recoverMembers(line, "id", "method", "params")
	e.id, e.method, e.params = top[0], top[1], top[2]
	if isObject(e.params) {
		in := recoverMembers(e.params, "name", "arguments", "_meta")
		e.name, e.arguments, e.meta = in[0], in[1], in[2]
	}
	if !jsontext.Value(e.meta).IsValid() {
		e.meta = nil
	}
	return e
}

// recoverID looks for the id of a line of which only the beginning is known. It returns nil unless the id is legal and
// stands once as far as can be seen.
func recoverID(head []byte) []byte {
	id, legal := parseID(recoverMembers(head, "id")[0])
	if !legal {
		return nil
	}
	return id.text
}

// recoverMembers returns the members with these names of what begins as an object, nil for those that do not stand in it
// once. Members that stand before a place that cannot be read are read, but for the very last value: a number may be cut.
func recoverMembers(object []byte, names ...string) [][]byte {
	values := make([][]byte, len(names))
	twice := make([]bool, len(names))
	dec := jsontext.NewDecoder(bytes.NewBuffer(object), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return values
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			break
		}
		at := -1
		for i, n := range names {
			if name.String() == n {
				at = i
			}
		}
		v, err := dec.ReadValue()
		if err != nil {
			break
		}
		v = bytes.Clone(v)
		if dec.PeekKind() == 0 {
			break
		}
		if at >= 0 {
			twice[at] = twice[at] || values[at] != nil
			values[at] = v
		}
	}
	for i := range values {
		if twice[i] {
			values[i] = nil
		}
	}
	return values
}
