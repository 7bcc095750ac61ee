package redact

import "bytes"

// assignment is a name and what text gives it: KEY=value, key: value, "key": "value", --key value, <key>value</key>,
// set("key", "value").
type assignment struct {
	name   span
	sign   byte // '=' ':' ',' '>' or ' '
	spaced bool // white space next to the sign
	flag   bool // --name
	named  bool // the name stands in quotes
	quote  byte // around the value, or 0
	slash  int  // backslashes in front of that quote, as in JSON inside JSON
	value  span
	ended  bool // the end of the value is known
}

// parse reads an assignment up to where its value begins. Most words are no names, so what follows is looked at first.
func parse(b []byte, at, n int) (a assignment, found, more bool) {
	e := at + n
	for e < len(b) && e-at < nameBehind && nameByte(b[e]) {
		e++
	}
	i := e
	if i < len(b) && b[i] == '\\' {
		for i++; i < len(b) && i-e < 4 && b[i] == '\\'; i++ {
		}
		if i < len(b) && b[i] != '"' && b[i] != '\'' {
			return a, false, false
		}
	}
	if i < len(b) && (b[i] == '"' || b[i] == '\'') {
		a.named = true
		i++
	}
	if i < len(b) && b[i] == ']' {
		i++
	}
	gap := i
	i = skipBlanks(b, i)
	if i == len(b) {
		return a, false, true
	}
	c := b[i]
	if i == gap && c != '=' && c != ':' && c != '>' && c != '?' && c != ',' {
		return a, false, false
	}
	s := at
	for s > 0 && at-s < nameBefore && nameByte(b[s-1]) {
		s--
	}
	if s < at && s > 0 && b[s-1] == '\\' {
		s++ // the n of \n
	}
	a.flag = s < at+n && b[s] == '-'
	a.name = span{start: s, end: e}
	switch {
	case c == '>' && !a.named && s > 0 && b[s-1] == '<' && i == e:
		a.sign = '>'
		a.value = span{start: i + 1}
		return a, i+1 < len(b), i+1 == len(b)
	case c == '=' || c == ':' || c == '?' || c == ',' && a.named:
		a.sign = c
		i++
	case a.flag && i > gap && !a.named, i > gap && login(b, s):
		a.sign = ' '
	default:
		return a, false, false
	}
	a.spaced = i > gap+1
	if a.sign != ' ' {
		if i == len(b) {
			return a, false, true
		}
		switch c := b[i]; {
		case c == '=' && (a.sign == ':' || a.sign == '?'), c == '>' && a.sign == '=':
			a.sign = '='
			i++
		case c == '=' || c == '~' || c == ':' || a.sign == '?':
			return a, false, false // a comparison, or C++
		}
		gap = i
		i = skipBlanks(b, i)
		a.spaced = a.spaced || i > gap
	}
	q := i
	for i < len(b) && i-q < 4 && b[i] == '\\' {
		i++
	}
	if i == len(b) {
		return a, false, true
	}
	if c := b[i]; c == '"' || c == '\'' || c == '`' {
		a.quote, a.slash = c, i-q
		i++
	} else if i > q {
		return a, false, false
	}
	a.value = span{start: i}
	return a, i < len(b), i == len(b)
}

func nameByte(c byte) bool { return token.has(c) || c == '.' }

func skipBlanks(b []byte, i int) int {
	for from := i; i < len(b) && i-from < blanks && (b[i] == ' ' || b[i] == '\t'); {
		i++
	}
	return i
}

// login tells whether "login NAME " stands in front of b[at:], as in a .netrc file.
func login(b []byte, at int) bool {
	line := b[max(0, at-nameBefore):at]
	if !bytes.Contains(line, []byte("login ")) {
		return false
	}
	f := bytes.Fields(line)
	return len(f) >= 2 && string(f[len(f)-2]) == "login" && len(line) > 0 && space(line[len(line)-1])
}

// measure finds the end of the value; more means that it may lie behind the end of b.
func (a *assignment) measure(b []byte) (more bool) {
	from := a.value.start
	limit := min(len(b), from+bareMax)
	switch {
	case a.quote != 0:
		limit = min(len(b), from+quotedMax)
		slashes := 0
		for i := from; i < limit; i++ {
			switch c := b[i]; {
			case c == '\\':
				slashes++
				continue
			case c == a.quote && (slashes <= a.slash && a.slash > 0 || slashes%2 == 0 && a.slash == 0):
				a.value.end, a.ended = i-min(slashes, a.slash), true
				return false
			case c == '\n' && a.quote != '`':
				a.value.end = i
				return false
			}
			slashes = 0
		}
		a.value.class = map[byte]class{'"': inDouble, '\'': inSingle, '`': inGrave}[a.quote]
	case a.sign == '>':
		a.value.class = inTag
	case a.sign == '=' && !a.spaced && shout(b[a.name.start:a.name.end]) && ownLine(b, a.name.start):
		a.value.class = solid
	default:
		a.value.class = bare
	}
	if a.quote == 0 {
		end := a.value.class.end(b[:limit], from)
		if end < limit || end == len(b) {
			a.value = span{start: from, end: end}
			a.ended = end < len(b) // one byte more tells what follows
			return end == len(b)
		}
	}
	a.value.end = limit
	return limit == len(b) && limit < from+bareMax || a.quote != 0 && limit == len(b) && limit < from+quotedMax
}

// ownLine tells whether the name at b[at:] begins a line, perhaps behind export or set.
func ownLine(b []byte, at int) bool {
	line := b[max(0, at-16):at]
	if at > 16 || bytes.IndexByte(line, '\n') >= 0 {
		i := bytes.LastIndexByte(line, '\n')
		if i < 0 {
			return false
		}
		line = line[i+1:]
	}
	line = bytes.TrimSpace(line)
	return len(line) == 0 || string(line) == "export" || string(line) == "set" || string(line) == "ENV" || string(line) == "ARG"
}
