package redact

import "bytes"

// secret decides whether the value is one. Source code is full of names and values that look like these, and has to stay
// byte for byte; so what could as well be an expression, a name or a word for people stays.
func (a *assignment) secret(b []byte, k kind) bool {
	v := b[a.value.start:a.value.end]
	if len(v) < 4 {
		return false
	}
	if a.value.class != 0 && !a.ended { // longer than is looked at, or at the end of the input
		if a.quote != 0 {
			return made(v) || k == isPassword && chosen(v)
		}
	}
	next := byte('\n')
	if a.value.end < len(b) {
		next = b[a.value.end]
	}
	name := b[a.name.start:a.name.end]
	switch {
	case a.sign == '>':
		return next == '<' && v[0] != '\\' && !number(v, 0) && (k == isPassword && !reference(v) && traitsOf(v).spaces == 0 || made(v))
	case a.sign == ' ' && !a.flag:
		return chosen(v) && digitGroups(v) > 0 // .netrc
	case a.quote != 0:
		return a.quotedSecret(b, v, k)
	case bytes.IndexByte(v, '(') >= 0, next == '(', next == '[' || next == '{' || next == '<' && a.sign != ':':
		return false // a call, an element, a type
	case a.sign == ',':
		return false
	}
	if number(v, 4) {
		return k == isPassword && a.sign == '=' && !a.spaced
	}
	if !a.plain(b) && expression(v, next) && !(k == isPassword && next == ';' && a.field(b)) {
		return false
	}
	if k == isPassword {
		if a.sign == '=' && !a.spaced && (shout(name) || a.flag) && len(v) >= 6 && !shout(v) && !reference(v) && asciiWord(v) {
			return true
		}
		return chosen(v) && (a.sign == '=' && !a.spaced || closes(next) && (a.sign == ':' && a.spaced || digitGroups(v) > 0))
	}
	return made(v) && (a.sign == '=' && !a.spaced || a.flag || a.sign == ':' && quotedAround(b, a.name.start, next) || len(v) >= 12 && closes(next) && !prose(b, a.name.start) || scattered(v))
}

// scattered tells whether v is random enough to be a secret in the middle of a sentence. One in five of 32 hexadecimal digits has an
// entropy below 3.5.
func scattered(v []byte) bool {
	e := entropy(v)
	return len(v) >= 20 && e > 3.5 || len(v) >= 32 && e > 3 && hexadecimal(v)
}

// quotedSecret decides of a value in quotes.
func (a *assignment) quotedSecret(b, v []byte, k kind) bool {
	if !a.ended || a.vector(b, v) {
		return false
	}
	if k != isPassword || a.sign == ',' {
		return made(v)
	}
	if chosen(v) || number(v, 6) && a.sign == '=' {
		return true
	}
	// "password": "letmein" is JSON; "password": "Password" or "Enter your password" is a text for people.
	t := traitsOf(v)
	return a.named && a.sign == ':' && t.n >= 6 && t.spaces == 0 && t.letters()+t.marks == t.n && (t.upper == 0 || t.lower > 0 && !capital(v[0])) && !reference(v) && !nameInside(v)
}

// vector tells whether this looks like a field of a test vector in source (PrivateKey: "7d7d…") or in a document of one
// ("shared_secret": "2fc9…"): hexadecimal, and a name that only such have.
func (a *assignment) vector(b, v []byte) bool {
	if len(v) < 32 || !hexadecimal(v) {
		return false
	}
	name := b[a.name.start:a.name.end]
	return protocolName(name) || a.sign == ':' && !a.named && capital(name[0]) && !shout(name)
}

// nameInside tells whether v is itself a name of something secret.
func nameInside(v []byte) bool {
	small := bytes.ToLower(v)
	for _, w := range [...]string{"passw", "secret", "token", "pwd", "passphrase", "credential"} {
		if bytes.Contains(small, []byte(w)) {
			return true
		}
	}
	return false
}

// expression tells whether an unquoted v, with next behind it, is source code: the name of something, a member of it, or
// operators between such.
func expression(v []byte, next byte) bool {
	if len(v) > 100 {
		return false
	}
	digits, dots, operators := 0, 0, 0
	start := true
	for _, c := range v {
		switch {
		case c == '.' || operator[c]:
			if c == '.' {
				dots++
			} else {
				operators++
			}
			if start && operators == 0 {
				return false
			}
			start = true
			continue
		case digit(c):
			if start && operators == 0 {
				return false
			}
			digits++
		case !word.has(c):
			return false
		}
		start = false
	}
	in := next == ',' || next == ';' || next == ')' || next == '}' || next == ']'
	if operators > 0 {
		return in && digits <= 3
	}
	return digitGroups(v) <= 1 && nameInside(v) || digits <= 3 && (dots > 0 && words(v) || in)
}

var operator = *ranges("!!&&**++::==??||")

// words tells whether all parts of v between dots are words, perhaps with a number.
func words(v []byte) bool {
	for part := range bytes.SplitSeq(v, []byte{'.'}) {
		if !numbered(part) {
			return false
		}
	}
	return true
}

// quotedAround tells whether NAME: VALUE stands in quotes as a whole, as a header does on a command line.
func quotedAround(b []byte, start int, next byte) bool {
	return start > 0 && (next == '"' || next == '\'') && b[start-1] == next
}

// plain tells whether this cannot be source code: an option, a variable of the environment, a part of a query.
func (a *assignment) plain(b []byte) bool {
	start := a.name.start
	return a.flag || a.sign == '=' && !a.spaced && (shout(b[start:a.name.end]) || start > 0 && (b[start-1] == '&' || b[start-1] == '?'))
}

// asciiWord tells whether v has no white space and no letters of a language that a help text would be in.
func asciiWord(v []byte) bool {
	t := traitsOf(v)
	return t.spaces == 0 && t.high == 0
}

// field tells whether NAME=VALUE is a field of a connection string: Server=db;Pwd=…;Database=x.
func (a *assignment) field(b []byte) bool {
	if start := a.name.start; start > 0 && b[start-1] == ';' {
		return true
	}
	end := a.fieldName(b)
	return end > a.value.end+2 && end < len(b) && b[end] == '='
}

// fieldName returns where the name behind the semicolon behind the value ends.
func (a *assignment) fieldName(b []byte) int {
	i := a.value.end + 1
	for i < len(b) && i-a.value.end < maxWord && (alnum.has(b[i]) || b[i] == ' ') {
		i++
	}
	return i
}

// shout tells whether a name is in capitals, as variables of the environment are.
func shout(name []byte) bool {
	t := traitsOf(name)
	return t.upper > 0 && t.lower == 0 && t.others == 0
}

// closes tells whether next may follow a value that is no expression.
func closes(next byte) bool {
	return space(next) || next == '"' || next == '\'' || next == '\\' || next == '&' || next == '<'
}

// prose tells whether a word stands in front of the name, as in "invalid token: …".
func prose(b []byte, at int) bool {
	return at >= 2 && b[at-1] == ' ' && small(b[at-2])
}
