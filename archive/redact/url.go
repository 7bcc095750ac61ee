package redact

import "bytes"

// urlPassword judges SCHEME://USER:PASSWORD@HOST and masks the password. A token in place of the user is found by its own
// shape.
func urlPassword(b []byte, at int, final bool) verdict {
	from := at + len("://")
	limit := min(len(b), from+bareMax)
	i := from
	colon, sign, slash := -1, -1, -1 // first colon, last @ in front of a slash or the first behind it, first slash
scan:
	for ; i < limit; i++ {
		switch c := b[i]; {
		case c <= ' ' || c == '"' || c == '\'' || c == '`' || c == '<' || c == '>' || c == '\\' || c == 0x7f:
			break scan
		case c == ':' && colon < 0 && sign < 0:
			colon = i
		case c == '@':
			if sign = i; slash >= 0 {
				break scan
			}
		case (c == '/' || c == '?' || c == '#') && slash < 0:
			if slash = i; colon < 0 || sign >= 0 || port(b[colon+1:i]) {
				break scan
			}
		}
	}
	if i == len(b) && i < from+bareMax && !final {
		if colon < 0 {
			return verdict{more: true, from: len(b)}
		}
		return verdict{more: true, from: colon + 1}
	}
	if colon < 0 || sign < 0 && i == from+bareMax {
		return verdict{}
	}
	user, end := b[from:colon], sign
	if sign < 0 {
		if end = i; slash >= 0 || i < len(b) { // not cut off: this is a host, and no port but a name
			return verdict{}
		}
	}
	v := b[colon+1 : end]
	if (sign < 0 || slash >= 0 && slash < sign) && !made(v) {
		return verdict{} // else a path would look the same
	}
	if len(v) < 4 || bytes.Equal(user, v) || reference(v) {
		return verdict{}
	}
	return verdict{found: true, span: span{start: colon + 1, end: end}}
}

// port tells whether v, with a slash behind it, is a port.
func port(v []byte) bool { return len(v) <= 5 && number(v, 0) }
