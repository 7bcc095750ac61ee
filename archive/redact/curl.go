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
	quote := byte(0)
	if b[i] == '"' || b[i] == '\'' {
		quote = b[i]
		i++
	}
	limit := min(len(b), i+bareMax)
	end := i
	for end < limit && (quote == 0 && !space(b[end]) && b[end] != '"' && b[end] != '\'' && b[end] != '\\' || quote != 0 && b[end] != quote && b[end] != '\n') {
		end++
	}
	if end == len(b) && !final && end < i+bareMax {
		return verdict{more: true, from: i}
	}
	user, pass, found := bytes.Cut(b[i:end], []byte{':'})
	switch {
	case !found:
		return verdict{}
	case len(pass) == 0:
		if !made(user) {
			return verdict{}
		}
		return verdict{found: true, span: span{start: i, end: i + len(user)}}
	case len(pass) < 3 || reference(pass) || bytes.IndexByte(user, '$') >= 0 && reference(pass):
		return verdict{}
	}
	return verdict{found: true, span: span{start: i + len(user) + 1, end: end}}
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
