package catalog

import (
	"strconv"
	"strings"
)

// path leads to a value of a TOML file: names of keys, and "[n]" for an element of an array.
type path []string

func (p path) key(names ...string) path { return append(p[:len(p):len(p)], names...) }

func (p path) index(i int) path { return p.key(indexPiece + strconv.Itoa(i) + "]") }

// indexPiece begins the piece of an array element; no key of a TOML file can be mistaken for it, since a key that holds
// a NUL is written in quotes.
const indexPiece = "\x00["

// String writes the path as TOML writes a dotted key, so that it can be searched for in the file.
func (p path) String() string {
	var b strings.Builder
	for i, piece := range p {
		if rest, ok := strings.CutPrefix(piece, indexPiece); ok {
			b.WriteString("[" + rest)
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		if isBareKey(piece) {
			b.WriteString(piece)
		} else {
			b.WriteString(strconv.Quote(piece))
		}
	}
	return b.String()
}

func isBareKey(s string) bool {
	for i := range len(s) {
		if !isBareKeyByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func isBareKeyByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// source is one TOML file while it is read: where each of its keys stands and where its faults go.
type source struct {
	name  string
	lines map[string]int // by path.String
	errs  *Errors        // shared by all files of a catalog; nil drops the faults
}

// line returns the line of p or, where p is not written out, of the nearest table around it.
func (s *source) line(p path) int {
	for n := len(p); n > 0; n-- {
		if line, ok := s.lines[p[:n].String()]; ok {
			return line
		}
	}
	return 0
}

func (s *source) fail(p path, problem string) {
	if s.errs != nil {
		*s.errs = append(*s.errs, place{s, p}.says(problem))
	}
}

// place is where a value was written.
type place struct {
	src *source
	at  path
}

func (p place) fail(problem string) { p.src.fail(p.at, problem) }

// key is where a key of the table at p stands.
func (p place) key(names ...string) place { return place{p.src, p.at.key(names...)} }

// says is a sentence about what was written there.
func (p place) says(problem string) *Error {
	return &Error{File: p.src.name, Line: p.src.line(p.at), Key: p.at.String(), Problem: problem}
}
