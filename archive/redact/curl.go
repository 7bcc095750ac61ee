package redact

import "bytes"

// curlUser judges -u USER:PASSWORD and --user behind the word curl on the same command, and masks the password, or the
// user where that is a token.
func curlUser(b []byte, at, n int, final bool) verdict {
	if at == 0 || !space(b[at-1]) {
		return verdict{}
	}
	i := at + n
	for i < len(b) && i-at < n+5 && (b[i] == ' ' || b[i] == '\t' || b[i] == '=') {
		i++
	}
	if i == len(b) && !final {
		return verdict{more: true, from: len(b)}
	}
	if i == len(b) || i == at+n && n > 2 || !curled(b, at) {
		return verdict{}
	}
	// A word of the shell, perhaps with quotes in or around it.
	quote, colon, end := byte(0), -1, i
	for ; end < len(b) && end < i+bareMax; end++ {
		switch c := b[end]; {
		case c == '\n', quote == 0 && (space(c) || c == '\\'):
		case c == quote:
			quote = 0
			continue
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
			continue
		default:
			if c == ':' && colon < 0 {
				colon = end
			}
			continue
		}
		break
	}
	if end == len(b) && !final && end < i+bareMax {
		return verdict{more: true, from: i}
	}
	if colon < 0 {
		return verdict{}
	}
	user, pass := unquoted(b, i, colon), unquoted(b, colon+1, end)
	switch v := b[pass.start:pass.end]; {
	case len(v) == 0:
		if !made(b[user.start:user.end]) {
			return verdict{}
		}
		return verdict{found: true, span: user}
	case len(v) < 3 || reference(v):
		return verdict{}
	}
	return verdict{found: true, span: pass}
}

// unquoted is b[from:to] without the quotes around it.
func unquoted(b []byte, from, to int) span {
	for from < to && (b[from] == '"' || b[from] == '\'') {
		from++
	}
	for to > from && (b[to-1] == '"' || b[to-1] == '\'') {
		to--
	}
	return span{start: from, end: to}
}

// curled tells whether the word curl stands in front of b[at:], at most five lines up.
func curled(b []byte, at int) bool {
	text := b[max(0, at-lookBehind):at]
	i := bytes.LastIndex(text, []byte("curl"))
	if i < 0 || i > 0 && word.has(text[i-1]) || i+4 < len(text) && word.has(text[i+4]) {
		return false
	}
	return bytes.Count(text[i:], []byte{'\n'}) <= 5
}
