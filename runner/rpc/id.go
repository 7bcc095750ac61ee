package rpc

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// identity is the id of a request. MCP allows strings and integers; an integer may be of any length, because only its
// text is kept: the SDK gets ids of ours instead, and the client its own text back.
type identity struct {
	text []byte // JSON text as it came
	key  string // equal for equal ids: "5" and 5 differ, "5" and "\u0035" do not
}

// parseID reads a JSON value as an id. Null, fractions, exponents, booleans, arrays and objects are none.
func parseID(raw []byte) (identity, bool) {
	if len(raw) == 0 {
		return identity{}, false
	}
	switch c := raw[0]; {
	case c == '"':
		s, err := jsontext.AppendUnquote(nil, raw)
		return identity{raw, "s" + string(s)}, err == nil
	case c == '-' || '0' <= c && c <= '9':
		return identity{raw, "n" + string(raw)}, !bytes.ContainsAny(raw, ".eE")
	}
	return identity{}, false
}
