package catalog

import (
	"strings"
)

// lineScanner finds the line of every key and array element of a TOML document. The parser proper (BurntSushi/toml)
// tells positions only for faults of syntax; faults of meaning need them too. It reads documents that the parser has
// accepted, so it checks nothing; on any other input it ends all the same, with what it found until then.
type lineScanner struct {
	src    string
	pos    int
	line   int
	lines  map[string]int
	arrays map[string]int // number of tables so far of each [[array of tables]]
	depth  int
	deep   int // line of the first value that is nested deeper than maxNesting; 0 if there is none
}

// keyLines returns the line of each path in src. Of a path that occurs twice, as in a document that the parser refuses,
// it gives the first. If deep is not 0, values are nested deeper than maxNesting on that line, and the rest is not read.
func keyLines(src string) (lines map[string]int, deep int) {
	s := &lineScanner{
		src: strings.TrimPrefix(src, "\ufeff"), line: 1,
		lines: make(map[string]int), arrays: make(map[string]int),
	}
	var table path
	for s.skipBlank(true); s.pos < len(s.src) && s.deep == 0; s.skipBlank(true) {
		start := s.pos
		if s.peek() == '[' {
			table = s.header()
		} else {
			s.keyValue(table)
		}
		if s.pos == start {
			s.pos++
		}
	}
	return s.lines, s.deep
}

func (s *lineScanner) peek() byte {
	if s.pos < len(s.src) {
		return s.src[s.pos]
	}
	return 0
}

func (s *lineScanner) take(prefix string) bool {
	if strings.HasPrefix(s.src[s.pos:], prefix) {
		s.pos += len(prefix)
		return true
	}
	return false
}

// skipBlank steps over spaces and, if newlines is set, over line ends and comments too.
func (s *lineScanner) skipBlank(newlines bool) {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == ' ' || c == '\t':
		case newlines && c == '\n':
			s.line++
		case newlines && c == '\r':
		case newlines && c == '#':
			for s.pos < len(s.src) && s.src[s.pos] != '\n' {
				s.pos++
			}
			continue
		default:
			return
		}
		s.pos++
	}
}

func (s *lineScanner) record(p path, from int) {
	for n := from; n <= len(p); n++ {
		if id := p[:n].String(); s.lines[id] == 0 {
			s.lines[id] = s.line
		}
	}
}

// header reads [a.b] or [[a.b]] and returns the path of the table that it opens.
func (s *lineScanner) header() path {
	s.pos++
	array := s.take("[")
	var p path
	for i, name := range s.dottedKey() {
		p = p.key(name)
		s.record(p, i+1)
		if n := s.arrays[p.String()]; n > 0 { // a name below an array of tables means its last table
			p = p.index(n - 1)
		}
	}
	if array {
		if last := len(p) - 1; last >= 0 && strings.HasPrefix(p[last], indexPiece) {
			p = p[:last]
		}
		n := s.arrays[p.String()]
		s.arrays[p.String()]++
		p = p.index(n)
		s.record(p, len(p))
	}
	for s.take("]") {
	}
	return p
}

// keyValue reads key = value, where the key may be dotted.
func (s *lineScanner) keyValue(table path) {
	p := table.key(s.dottedKey()...)
	if len(p) > len(table) {
		s.record(p, len(table)+1)
	}
	s.skipBlank(false)
	if s.take("=") {
		s.skipBlank(false)
		s.value(p)
	}
}

// dottedKey reads a.b."c d" with its dots.
func (s *lineScanner) dottedKey() []string {
	var names []string
	for {
		s.skipBlank(false)
		switch c := s.peek(); {
		case c == '"' || c == '\'':
			names = append(names, s.str())
		case isBareKeyByte(c):
			start := s.pos
			for isBareKeyByte(s.peek()) {
				s.pos++
			}
			names = append(names, s.src[start:s.pos])
		default:
			return names
		}
		s.skipBlank(false)
		if !s.take(".") {
			return names
		}
	}
}

// value steps over one value and records what is inside of it.
func (s *lineScanner) value(p path) {
	if s.depth == maxNesting {
		s.deep, s.pos = s.line, len(s.src)
		return
	}
	s.depth++
	defer func() { s.depth-- }()
	switch s.peek() {
	case '"', '\'':
		s.str()
	case '[':
		s.pos++
		for i := 0; ; i++ {
			s.skipBlank(true)
			if s.take("]") || s.pos >= len(s.src) {
				return
			}
			start, element := s.pos, p.index(i)
			s.record(element, len(element))
			s.value(element)
			s.skipBlank(true)
			if !s.take(",") && s.pos == start {
				return
			}
		}
	case '{':
		s.pos++
		for {
			s.skipBlank(true)
			if s.take("}") || s.pos >= len(s.src) {
				return
			}
			start := s.pos
			s.keyValue(p)
			s.skipBlank(true)
			if !s.take(",") && s.pos == start {
				return
			}
		}
	default: // number, boolean, date
		for s.pos < len(s.src) && !strings.ContainsRune(",]}#\n", rune(s.src[s.pos])) {
			s.pos++
		}
	}
}
