package rpc

import (
	"bytes"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"toolrun/runner"
)

// maxNameBytes bounds every string that is taken from _meta: they are keys and labels of rows, not content.
const maxNameBytes = 1024

// Prefixes of the keys of _meta that are read as a family.
const (
	ownPrefix = "toolrun/"
	mcpPrefix = "io.modelcontextprotocol/" // MCP 2026-07-28: what initialize said before is said in each request
)

// meta is what a request's _meta says. Origin has no Client and no Protocol where the request itself does not tell.
type meta struct {
	origin        runner.Origin
	era           []byte // JSON object of the members under mcpPrefix; nil where there are none
	progressToken []byte // JSON text of a string or a number
	elicits       bool   // the request says that its client can ask its user
}

// parseMeta reads an object that is known to be valid JSON. A toolrun/ key that is ours and has a value of the wrong kind
// is a fault: whoever sends it relies on it. Null is as good as absent. Keys of other vendors that do not look as
// expected are passed over, and so is a traceparent that is none (W3C Trace Context §3.2: ignore it).
func parseMeta(raw []byte) (meta, *fault) {
	var m meta
	var f *fault
	var foreign foreign
	eachMember(raw, func(name string, v []byte) {
		switch {
		case strings.HasPrefix(name, ownPrefix):
			if wrong := m.own(name[len(ownPrefix):], v); wrong != "" && f == nil {
				f = badParams("_meta " + name + " must be " + wrong)
			}
		case strings.HasPrefix(name, mcpPrefix):
			m.eraMember(name, v)
		case name == "progressToken" && (v[0] == '"' || v[0] == '-' || '0' <= v[0] && v[0] <= '9'):
			m.progressToken = v
		case name == "traceparent":
			m.origin.TraceID, m.origin.SpanID = traceparent(label(v))
		default:
			foreign.member(name, v)
		}
	})
	if m.era != nil {
		m.era = append(m.era, '}')
	}
	foreign.fill(&m.origin)
	return m, f
}

// own takes a toolrun/ key. It returns what the value must be where it is not.
func (m *meta) own(key string, v []byte) (wrong string) {
	if string(v) == "null" {
		return ""
	}
	o := &m.origin
	switch key {
	case "tool_call_id":
		return ownString(v, &o.CallID)
	case "session_id":
		return ownString(v, &o.SessionID)
	case "model":
		return ownString(v, &o.Model)
	case "provider":
		return ownString(v, &o.Provider)
	case "parent_call_id":
		return ownString(v, &o.ParentCallID)
	case "turn":
		n, wrong := ownCount(v)
		o.Turn = int(n)
		return wrong
	case "input_tokens":
		return ownTokens(v, &o.InputTokens)
	case "output_tokens":
		return ownTokens(v, &o.OutputTokens)
	}
	return ""
}

func ownString(v []byte, to *string) (wrong string) {
	if v[0] == '"' {
		if s := unquote(v); len(s) <= maxNameBytes {
			*to = s
			return ""
		}
	}
	return "a string of at most " + strconv.Itoa(maxNameBytes) + " bytes"
}

// ownCount takes an integer that a double carries exactly, because others will read it from the row as one.
func ownCount(v []byte) (n int64, wrong string) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < 0 || n >= 1<<53 {
		return 0, "an integer from 0 to 2^53-1"
	}
	return n, ""
}

func ownTokens(v []byte, to **int64) (wrong string) {
	n, wrong := ownCount(v)
	if wrong == "" {
		*to = &n
	}
	return wrong
}

// eraMember keeps what the SDK is to see of this _meta, and reads from it who is calling.
func (m *meta) eraMember(name string, v []byte) {
	switch name[len(mcpPrefix):] {
	case "protocolVersion":
		m.origin.Protocol = label(v)
	case "clientInfo":
		m.origin.Client = clientOf(v)
	case "clientCapabilities":
		m.elicits = elicits(v)
	}
	sep := byte(',')
	if m.era == nil {
		sep = '{'
	}
	m.era = append(m.era, sep)
	m.era, _ = jsontext.AppendQuote(m.era, name)
	m.era = append(append(m.era, ':'), v...)
}

// modern says whether the request speaks the stateless protocol, as the SDK tells it (MCP 2026-07-28, by comparison).
func (m *meta) modern() bool { return m.origin.Protocol >= modernVersion }

// clientOf is the name/version of an Implementation object, "" where it has no name.
func clientOf(v []byte) string {
	if v[0] != '{' {
		return ""
	}
	var name, version string
	eachMember(v, func(member string, v []byte) {
		switch member {
		case "name":
			name = label(v)
		case "version":
			version = label(v)
		}
	})
	return clientName(name, version)
}

func clientName(name, version string) string {
	if name == "" || version == "" {
		return name
	}
	return name + "/" + version
}

// label is the text of a JSON string that is short enough to name something, else "".
func label(v []byte) string {
	if len(v) == 0 || v[0] != '"' {
		return ""
	}
	if s := unquote(v); len(s) <= maxNameBytes {
		return s
	}
	return ""
}

// parsers are reused: a new one costs more than the few bytes it reads here.
var parsers = sync.Pool{New: func() any { return new(parser) }}

// eachMember calls visit for each member of an object that is known to be valid JSON; v is a part of raw.
func eachMember(raw []byte, visit func(name string, v []byte)) {
	p := parsers.Get().(*parser)
	defer parsers.Put(p)
	p.dec.Reset(bytes.NewBuffer(raw))
	defer p.dec.Reset(bytes.NewBuffer(nil))
	p.members(raw, func(name string) error {
		v, err := p.value(raw)
		if err == nil {
			visit(name, v)
		}
		return err
	})
}
