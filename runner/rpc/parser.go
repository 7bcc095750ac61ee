package rpc

import (
	"bytes"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// envelope is a message as it stands in the line: raw values, nil where a member is absent.
type envelope struct {
	version, id, method, params []byte
	answer                      bool // there is a result or an error
	folded                      bool // a member is written as one of the envelope's, but for case

	name, arguments, meta []byte // members of params
	state, responses      []byte // requestState and inputResponses of a call that was asked (MCP 2026-07-28)
	foldedParams          bool   // the same for the members of params that tools/call knows
	foldedMeta            bool
}

// parser reads lines. It is not safe for concurrent use.
type parser struct{ dec jsontext.Decoder }

// envelope walks the members of a message. Every level below is checked as it passes.
func (p *parser) envelope(line []byte) (e envelope, f *fault) {
	p.dec.Reset(bytes.NewBuffer(line))
	defer p.dec.Reset(bytes.NewBuffer(nil)) // so that a long line is not kept
	if p.dec.PeekKind() != '{' {
		if _, err := p.value(line); err != nil {
			return e, faultOf(err)
		}
		if err := p.end(); err != nil {
			return e, faultOf(err)
		}
		return e, badRequest("a message is an object")
	}
	err := p.members(line, func(name string) error {
		var err error
		switch name {
		case "jsonrpc":
			e.version, err = p.value(line)
		case "id":
			e.id, err = p.value(line)
		case "method":
			e.method, err = p.value(line)
		case "params":
			e.params, err = p.params(line, &e)
		default:
			e.answer = e.answer || name == "result" || name == "error"
			e.folded = e.folded || folds(name, "jsonrpc", "id", "method", "params", "result", "error")
			_, err = p.value(line)
		}
		return err
	})
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return e, faultOf(err)
	}
	return e, nil
}

// params walks params where they are an object, so that their members need no second reading.
func (p *parser) params(line []byte, e *envelope) ([]byte, error) {
	if p.dec.PeekKind() != '{' {
		return p.value(line)
	}
	start := int64(-1)
	err := p.membersFrom(line, &start, func(name string) error {
		v, err := p.value(line)
		switch name {
		case "name":
			e.name = v
		case "arguments":
			e.arguments = v
		case "_meta":
			e.meta = v
		case "requestState":
			e.state = v
		case "inputResponses":
			e.responses = v
		default:
			e.foldedParams = e.foldedParams || folds(name, "name", "arguments")
			e.foldedMeta = e.foldedMeta || folds(name, "_meta")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return line[start:p.dec.InputOffset()], nil
}

// members calls visit with the name of each member of the object that comes next; visit reads the value.
func (p *parser) members(line []byte, visit func(name string) error) error {
	return p.membersFrom(line, new(int64), visit)
}

func (p *parser) membersFrom(line []byte, start *int64, visit func(name string) error) error {
	if _, err := p.dec.ReadToken(); err != nil {
		return err
	}
	*start = p.dec.InputOffset() - 1
	for p.dec.PeekKind() == '"' {
		name, err := p.value(line)
		if err != nil {
			return err
		}
		if err := visit(unquote(name)); err != nil {
			return err
		}
	}
	_, err := p.dec.ReadToken()
	return err
}

// value reads the next value and returns it as a part of line.
func (p *parser) value(line []byte) ([]byte, error) {
	v, err := p.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := p.dec.InputOffset()
	return line[end-int64(len(v)) : end : end], nil
}

// end reports an error unless nothing but white space is left of the line.
func (p *parser) end() error {
	_, err := p.dec.ReadToken()
	switch err {
	case io.EOF:
		return nil
	case nil:
		return io.ErrUnexpectedEOF // there is a second value; the fault is the same
	}
	return err
}

// split returns the members of a batch. They are valid JSON, but not yet known to be messages.
func (p *parser) split(line []byte) (members [][]byte, f *fault) {
	p.dec.Reset(bytes.NewBuffer(line))
	defer p.dec.Reset(bytes.NewBuffer(nil))
	if _, err := p.dec.ReadToken(); err != nil {
		return nil, faultOf(err)
	}
	for k := p.dec.PeekKind(); k != ']' && k != 0; k = p.dec.PeekKind() {
		v, err := p.value(line)
		if err != nil {
			return nil, faultOf(err)
		}
		members = append(members, v)
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return nil, faultOf(err)
	}
	if err := p.end(); err != nil {
		return nil, faultOf(err)
	}
	return members, nil
}

// folds says whether name differs from one of names in case only.
func folds(name string, names ...string) bool {
	for _, n := range names {
		if name != n && strings.EqualFold(name, n) {
			return true
		}
	}
	return false
}

// unquote returns the text of a JSON string that is known to be valid.
func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 && len(raw) >= 2 {
		return string(raw[1 : len(raw)-1])
	}
	s, _ := jsontext.AppendUnquote(nil, raw)
	return string(s)
}
