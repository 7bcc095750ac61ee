package redact

import "bytes"

// genericKey is the rule file's generic-api-key at the word b[at:at+n] of a name: up to 20 characters more, a sign, and
// a value of 10 to 150 characters with an entropy of more than 3.5 bits.
func genericKey(b []byte, at, n int, final bool) verdict {
	if rest := b[at : at+n]; n == len("pass") && at+n < len(b) && lower(b[at+n]) != 'w' && lower(rest[0]) == 'p' {
		return verdict{}
	} else if bytes.EqualFold(rest, []byte("pass")) || bytes.EqualFold(rest, []byte("cred")) {
		long := false
		for _, tail := range [...]string{"wd", "word", "s", "ential"} {
			end := min(len(b), at+n+len(tail))
			if part := b[at+n : end]; bytes.EqualFold(part, []byte(tail)[:len(part)]) && (lower(rest[0]) == 'p') == (tail[0] == 'w') {
				if len(part) < len(tail) && !final {
					return verdict{more: true, from: len(b)}
				}
				long = long || len(part) == len(tail)
			}
		}
		if !long {
			return verdict{}
		}
	}
	value, found, more := afterName(b, at+n, nameRest)
	if more && !final {
		return verdict{more: true, from: len(b)}
	}
	if !found {
		return verdict{}
	}
	const most = 150
	end := run(genericSet, b, value, most+1)
	if end == len(b) && !final && end-value <= most {
		return verdict{more: true, from: value}
	}
	if end-value < 10 || end-value > most {
		return verdict{}
	}
	v := b[value:end]
	first := run(genericName, b, value, most+1)
	if first != end { // + or / in it: base64
		body := run(genericBase64, b, value, most+1)
		for end = body; end < len(b) && b[end] == '=' && end-body < 3; {
			end++
		}
		if v = b[value:end]; body-value < 12 || !alnum.has(v[0]) {
			return verdict{}
		}
	}
	if end < len(b) && !endsPlainly(b[end]) && !(endsWord(b[end]) && mixed(v)) {
		return verdict{}
	}
	if !trusted(b, at, value, v) {
		return verdict{}
	}
	start := at
	for start > 0 && at-start < 50 && (word.has(b[start-1]) || b[start-1] == '.' || b[start-1] == '-') {
		start--
	}
	if digitGroups(v) == 0 || entropy(v) <= generic.entropy || allowed(generic.allow, b, start, end, v) {
		return verdict{}
	}
	return verdict{found: true, span: span{start: value, end: end}}
}

// mixed tells whether v is so long and mixed that it is no name of source code, whatever follows it.
func mixed(v []byte) bool {
	t := traitsOf(v)
	return t.n >= 32 && t.upper > 0 && t.lower > 0 && t.digits > 0 && t.marks == 0 && entropy(v) > 4.4
}

// genericWords are the words of the rule's names that are looked for; "api" and "access" are not, as with them alone hardly
// a value is a secret.
var genericWords = set("pass secret token key auth cred")

// trusted is stricter than the rule file where that takes source code and logs for secrets: key alone means nothing, a
// value behind a comma has to stand in quotes, and one that has the word key, secret or the like in it is itself a name.
func trusted(b []byte, at, value int, v []byte) bool {
	start, end := at, at
	for start > 0 && at-start < nameBefore && nameByte(b[start-1]) {
		start--
	}
	for end < value && nameByte(b[end]) {
		end++
	}
	name := b[start:end]
	sign := bytes.TrimRight(b[end:value], " \t\r\n\"'`")
	comma := len(sign) > 0 && sign[len(sign)-1] == ','
	if w := lower(b[at]); (w == 'k' || w == 'a' || comma) && kindOf(name) == isPublic || protocolName(name) {
		return false
	}
	if digest(b[at:value], v) || comma && (space(b[value-1]) || b[value-1] == ',') {
		return false
	}
	if run(genericName, v, 0, len(v)) == len(v) && identifier(v) {
		return false
	}
	if len(v) >= 32 && hexadecimal(v) && capital(name[0]) && !shout(name) && bytes.HasPrefix(b[end:], []byte(":")) {
		return false // a field of a test vector
	}
	return !reference(v)
}

var (
	genericName   = ranges("--..09==AZ__az")
	genericBase64 = ranges("++//09AZaz")
	genericSet    = ranges("++--..//09==AZ__az")
)
