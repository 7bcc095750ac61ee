package catalog

import (
	"fmt"
	"strings"
)

// text is a string of a command or of stdin with its placeholders.
type text []part

// part is either literal text or a placeholder.
type part struct {
	literal string
	param   string // "" for literal text
	spread  bool   // {param...}
}

// literal returns the text if it has no placeholder, and what precedes the first one otherwise.
func (t text) literal() string {
	if len(t) > 0 && t[0].param == "" {
		return t[0].literal
	}
	return ""
}

// plain says that the text has no placeholder.
func (t text) plain() bool { return len(t) == 0 || len(t) == 1 && t[0].param == "" }

// parseText reads the placeholders of a template: {name}, {name...} and {{ for a brace. A } outside of a placeholder is
// itself. The problem is empty where it could.
func parseText(s string) (t text, problem string) {
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			t = append(t, part{literal: literal.String()})
			literal.Reset()
		}
	}
	for s != "" {
		open := strings.IndexByte(s, '{')
		if open < 0 {
			literal.WriteString(s)
			break
		}
		literal.WriteString(s[:open])
		s = s[open+1:]
		if strings.HasPrefix(s, "{") {
			literal.WriteByte('{')
			s = s[1:]
			continue
		}
		name, rest, closed := strings.Cut(s, "}")
		name, spread := strings.CutSuffix(name, "...")
		if !closed || !paramName.MatchString(name) {
			return nil, "{ begins a placeholder such as {name} or {name...}; write {{ for a brace"
		}
		flush()
		t = append(t, part{param: name, spread: spread})
		s = rest
	}
	flush()
	return t, ""
}

// source writes the text again as a template, in the one way that the definition is hashed from.
func (t text) source() string {
	var b strings.Builder
	for _, p := range t {
		switch {
		case p.param == "":
			b.WriteString(strings.ReplaceAll(p.literal, "{", "{{"))
		case p.spread:
			fmt.Fprintf(&b, "{%s...}", p.param)
		default:
			fmt.Fprintf(&b, "{%s}", p.param)
		}
	}
	return b.String()
}
