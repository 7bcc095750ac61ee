package redact

import "bytes"

// window is how much of a token its rule looks at; what has not shown itself to be a secret by then is none.
const window = 128

// shapes are the anchors of well-known tokens.
func shapes() []*anchor {
	list := []*anchor{
		{lit: []byte("sk-"), rule: apiKey},
		{lit: []byte("bearer"), fold: true, rule: bearer},
		{lit: []byte("AKIA"), rule: awsKeyID},
		{lit: []byte("ASIA"), rule: awsKeyID},
		{lit: []byte("github_pat_"), rule: prefixed("github_pat_", word, 22, 12)},
		{lit: []byte("PRIVATE KEY"), rule: privateKey},
		{lit: []byte("basic"), fold: true, rule: basic},
		{lit: []byte("://"), rule: urlPassword},
	}
	for _, kind := range []string{"p", "o", "u", "s", "r"} {
		list = append(list, &anchor{lit: []byte("gh" + kind + "_"), rule: prefixed("ghp_", alnum, 36, 16)})
	}
	for _, kind := range []string{"a", "b", "p", "r", "s"} {
		list = append(list, &anchor{lit: []byte("xox" + kind + "-"), rule: prefixed("xoxb-", dashed, 10, 10)})
	}
	return list
}

// prefixed is the rule of a token that is a prefix and at least least bytes of a class; where the input ends inside the
// token, cut bytes will do.
func prefixed(prefix string, k class, least, cut int) rule {
	return func(b []byte, at int, final bool) verdict {
		from := at + len(prefix)
		end := k.end(b[:min(len(b), from+least)], from)
		switch {
		case end-from == least, final && end == len(b) && end-from >= cut:
			return verdict{found: true, span: span{at, end, k}}
		case end == len(b) && !final:
			return verdict{more: true}
		}
		return verdict{}
	}
}

// apiKey is sk-…: at a boundary, 20 token characters with digits and letters mixed, or 20 letters and digits in a row.
// Names such as sk-learn-contrib-documentation are none, nor are OpenSSH's sk-ssh-ed25519@… and sk-ecdsa-sha2-nistp256@….
func apiKey(b []byte, at int, final bool) verdict {
	if !boundary(b, at) {
		return verdict{}
	}
	from := at + len("sk-")
	end := token.end(b[:min(len(b), from+window)], from)
	letter, digit, row, longest := false, false, 0, 0
	for _, c := range b[from:end] {
		switch {
		case c == '-' || c == '_':
			row = -1
		case '0' <= c && c <= '9':
			digit = true
		default:
			letter = true
		}
		row++
		longest = max(longest, row)
	}
	switch {
	case end-from >= 20 && (bytes.HasPrefix(b[from:], []byte("ssh-")) || bytes.HasPrefix(b[from:], []byte("ecdsa-"))):
		return verdict{}
	case end-from >= 20 && (letter && digit || longest >= 20):
		return verdict{found: true, span: span{at, end, token}}
	case end == len(b) && end-from < window && !final:
		return verdict{more: true}
	}
	return verdict{}
}

// awsKeyID is AKIA… or ASIA…: 16 capitals and digits more, and boundaries on both sides.
func awsKeyID(b []byte, at int, final bool) verdict {
	if !boundary(b, at) && !(at > 0 && b[at-1] == '-') {
		return verdict{}
	}
	const length = 20
	for i := at + 4; i < at+length; i++ {
		if i == len(b) {
			return verdict{more: !final}
		}
		if c := b[i]; !('A' <= c && c <= 'Z' || '0' <= c && c <= '9') {
			return verdict{}
		}
	}
	end := at + length
	if end == len(b) && !final {
		return verdict{more: true}
	}
	if end < len(b) && word.has(b[end]) {
		return verdict{}
	}
	return verdict{found: true, span: span{start: at, end: end}}
}

// bearer masks the token of RFC 6750 §2.1 and leaves the word Bearer. Behind "Authorization:" 4 characters are a token;
// elsewhere it takes 8 that are not an English word ("bearer authentication").
func bearer(b []byte, at int, final bool) verdict {
	if !boundary(b, at) && !(at > 0 && b[at-1] == '-') {
		return verdict{}
	}
	from := at + len("bearer")
	for from < len(b) && (b[from] == ' ' || b[from] == '\t') && from-at < len("bearer")+8 {
		from++
	}
	if from == at+len("bearer") {
		// In a URL the space is %20.
		rest := b[from:min(len(b), from+3)]
		switch {
		case string(rest) == "%20":
			from += 3
		case len(rest) < 3 && !final && bytes.HasPrefix([]byte("%20"), rest):
			return verdict{more: true}
		default:
			return verdict{}
		}
	}
	end := token68.end(b[:min(len(b), from+window)], from)
	found := end-from >= 8 && !wordlike(b[from:end]) && !version(b[from:end])
	if end-from >= 4 && afterAuthorization(b, at) {
		found = true
	}
	switch {
	case found:
		return verdict{found: true, span: span{from, end, token68}}
	case end == len(b) && end-from < window && !final:
		return verdict{more: true}
	}
	return verdict{}
}

// wordlike tells whether s could be words joined by punctuation: under 20 letters each, small but perhaps for the
// first. A longer s is never more like words than a shorter one.
func wordlike(s []byte) bool {
	letters := 0
	for _, c := range s {
		switch {
		case c == '-' || c == '.' || c == '_' || c == '/' || c == '=':
			letters = 0
			continue
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z' && letters == 0:
			letters++
		default:
			return false
		}
		if letters >= 20 {
			return false
		}
	}
	return true
}

// version tells whether s begins like v1.2.
func version(s []byte) bool {
	if s[0] == 'v' {
		s = s[1:]
	}
	major, _, found := bytes.Cut(s, []byte{'.'})
	return found && len(major) > 0 && len(major) < 4 && number(major, 1)
}

// afterAuthorization tells whether the word authorization, and punctuation, stands before b[at].
func afterAuthorization(b []byte, at int) bool {
	i := at
	for i > 0 && at-i < 12 && bytes.IndexByte([]byte(" \t:=\"'\\,"), b[i-1]) >= 0 {
		i--
	}
	const name = "authorization"
	return i < at && i >= len(name) && bytes.EqualFold(b[i-len(name):i], []byte(name))
}
