package redact

import "bytes"

// Bounds of what is looked at around a name.
const (
	nameBefore = 64  // of the name in front of the word that was found
	nameBehind = 48  // and behind it
	blanks     = 8   // white space on each side of the sign
	bareMax    = 256 // of an unquoted value
	quotedMax  = 512 // of a quoted one
)

// keyAnchors are the words that names of secrets are found by.
func keyAnchors() (list []*anchor) {
	for _, word := range []string{"pass", "pwd", "secret", "token", "key", "auth", "cred", "cookie", "jwt", "sessid", "_pw"} {
		list = append(list, &anchor{lit: []byte(word), fold: true, after: behindName, rule: func(b []byte, at int, final bool) verdict {
			v := keyed(b, at, len(word), final)
			if genericWords[word] {
				v.add(genericKey(b, at, len(word), final))
			}
			return v
		}})
	}
	return list
}

// behindName is what may stand behind a word of a name: more of it, or what leads to its value.
var behindName = ranges("--..09AZ__az  \t\r==::>>??,,||\"\"''\\\\]]")

// keyed judges what is assigned to a name that has the word b[at:at+n].
func keyed(b []byte, at, n int, final bool) verdict {
	a, found, more := parse(b, at, n)
	if !found {
		if more && !final {
			return verdict{more: true, from: len(b)}
		}
		return verdict{}
	}
	if a.sign == ':' && a.quote == 0 && bytes.EqualFold(b[max(a.name.start, a.name.end-4):a.name.end], []byte("pass")) {
		return verdict{} // PASS: TestName
	}
	k := kindOf(b[a.name.start:a.name.end])
	if s := a.name.start; k == isPublic && s > 0 && b[s-1] == ' ' {
		for s--; s > 0 && a.name.start-s < maxWord && alnum.has(b[s-1]); { // "API key: …"
			s--
		}
		if word := fold(b[s : a.name.start-1]); keyWords[word.s()] {
			k = kindOf(b[s:a.name.end])
		}
	}
	switch k {
	case isPublic:
		return verdict{}
	case isAuth:
		return authorization(b, &a, final)
	case isCookie:
		return cookies(b, &a, final)
	}
	more = a.measure(b) || a.quote == 0 && b[a.value.end] == ';' && a.fieldName(b) == len(b)
	if more && !final {
		return verdict{more: true, from: a.value.start}
	}
	if !a.secret(b, k) {
		return verdict{}
	}
	return verdict{found: true, span: a.value}
}
