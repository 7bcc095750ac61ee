package main

import (
	"bytes"
	"encoding/json"

	"toolrun/archive/ledger"
	"toolrun/archive/pairing"
	"toolrun/archive/redact"
	"toolrun/catalog"
	"toolrun/runner/terminal"
)

// drawnWhole is how many bytes at a terminal an answer is made of as a whole; of more, it draws the two ends apart.
const drawnWhole = 64 << 10

// drawer draws stored bytes as the answer of their row showed them; it knows the terminals of the tools from their definitions.
type drawer struct {
	rec   *record
	rules *redact.Rules
	tools map[string]*definedTerminal // by definition_sha256; nil: not known
}

// definedTerminal is what a definition says of a tool's terminal.
type definedTerminal struct {
	PTY    json.RawMessage `json:"pty"` // false, or a size
	Verb   string          `json:"verb"`
	Redact bool            `json:"redact"`

	size struct{ Rows, Cols int }
}

func newDrawer(rec *record) *drawer {
	return &drawer{rec: rec, rules: redact.New(nil), tools: map[string]*definedTerminal{}}
}

func (d *drawer) terminal(definition string) *definedTerminal {
	if t, ok := d.tools[definition]; ok {
		return t
	}
	t := new(definedTerminal)
	if text, err := d.rec.content(definition); err != nil || json.Unmarshal(text, t) != nil || t.PTY == nil {
		t = nil
	} else if string(t.PTY) != "false" && json.Unmarshal(t.PTY, &t.size) != nil {
		t = nil
	}
	d.tools[definition] = t
	return t
}

// draw implements pairing.Record.Drawn.
func (d *drawer) draw(row *ledger.Row, content []byte) ([]byte, error) {
	t := d.terminal(string(row.DefinitionSHA256))
	switch {
	case t == nil && bytes.IndexByte(content, '\r') < 0 && bytes.IndexByte(content, 0x1b) < 0: // a terminal would have written one
		return content, nil
	case t == nil:
		return nil, pairing.ErrNotDrawn
	case t.size.Rows == 0 || t.Verb == catalog.VerbList || t.Verb == catalog.VerbStart && !row.IsProcess():
		return content, nil
	case len(content) > drawnWhole:
		return nil, pairing.ErrNotDrawn
	}
	text := terminal.Plain(content, t.size.Rows, t.size.Cols)
	if t.Redact {
		text = d.rules.Text(text).String()
	}
	return []byte(text), nil
}
