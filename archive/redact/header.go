package redact

import (
	"bytes"
	stdbase64 "encoding/base64"
	"unicode/utf8"
)

// authorization judges "Authorization: Basic …" and the like, and auth = "…". The scheme stays. Bearer has a rule of its
// own.
func authorization(b []byte, a *assignment, final bool) verdict {
	from := a.value.start
	limit := min(len(b), from+bareMax)
	end := token.end(b[:limit], from)
	if end < len(b) && b[end] == ' ' && end > from && end-from <= 24 {
		scheme := bytes.ToLower(b[from:end])
		value := end + 1
		limit = min(len(b), value+bareMax)
		end = bare.end(b[:limit], value)
		if end == len(b) && !final && end < value+bareMax {
			return verdict{more: true, from: value}
		}
		v := b[value:end]
		switch {
		case string(scheme) == "bearer", bytes.HasPrefix(scheme, []byte("aws4-")), string(scheme) == "digest":
			return verdict{} // another rule masks what is secret in it
		case string(scheme) == "basic":
			if !credentials(v) {
				return verdict{}
			}
		case len(v) < 8 || !made(v):
			return verdict{}
		}
		return verdict{found: true, span: span{start: value, end: end, class: token68}}
	}
	if end == len(b) && !final && end < from+bareMax {
		return verdict{more: true, from: from}
	}
	more := a.measure(b)
	if more && !final {
		return verdict{more: true, from: from}
	}
	v := b[a.value.start:a.value.end]
	if a.quote != 0 && !a.ended || len(v) < 8 || publicPair(v) {
		return verdict{}
	}
	if pair(v) != nil || a.secret(b, isToken) {
		return verdict{found: true, span: a.value}
	}
	return verdict{}
}

// basic judges "basic" and base64 of USER:PASSWORD behind it, wherever it stands.
func basic(b []byte, at int, final bool) verdict {
	from := at + len("basic")
	if from == len(b) && !final {
		return verdict{more: true, from: from}
	}
	if from == len(b) || b[from] != ' ' {
		return verdict{}
	}
	from++
	limit := min(len(b), from+bareMax)
	end := base64.end(b[:limit], from)
	if end == len(b) && !final && end < from+bareMax {
		return verdict{more: true, from: from}
	}
	if v := b[from:end]; len(v) < 10 || pair(v) == nil || publicPair(v) {
		return verdict{}
	}
	return verdict{found: true, span: span{start: from, end: end, class: base64}}
}

// pair returns USER:PASSWORD if v is base64 of such a text, perhaps cut off.
func pair(v []byte) []byte {
	out := decoded(v)
	if bytes.IndexByte(out, ':') < 0 || !printable(out) {
		return nil
	}
	return out
}

// decoded returns what v is base64 of.
func decoded(v []byte) []byte {
	v = bytes.TrimRight(v, "=")
	if len(v)%4 == 1 {
		v = v[:len(v)-1]
	}
	out := make([]byte, stdbase64.RawStdEncoding.DecodedLen(len(v)))
	n, err := stdbase64.RawStdEncoding.Decode(out, v)
	if err != nil {
		return nil
	}
	return out[:n]
}

func printable(s []byte) bool {
	for _, c := range s {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return utf8.Valid(s)
}

// credentials tells whether v, behind "Authorization: Basic", is a secret: a pair, or what is no text at all.
func credentials(v []byte) bool {
	if pair(v) != nil {
		return !publicPair(v)
	}
	if !made(v) || printable(decoded(v)) {
		return false
	}
	for i := range 4 { // pieces of the examples of RFC 7617
		text := decoded(v[min(i, len(v)):])
		if bytes.Contains(text, []byte("opensesa")) || bytes.Contains(text, []byte("aladdi")) {
			return false
		}
	}
	return true
}

// publicPair tells whether v is base64 of a name and a word that stands for a password, as the examples of RFC 7617 are.
func publicPair(v []byte) bool {
	p := pair(v)
	user, pass, _ := bytes.Cut(p, []byte{':'})
	return p != nil && (len(pass) < 4 || reference(pass) || bytes.Equal(user, pass))
}

// cookies judges the values of a Cookie or Set-Cookie header: those are masked that a machine made.
func cookies(b []byte, a *assignment, final bool) (v verdict) {
	if a.sign != ':' && a.sign != ',' {
		return verdict{}
	}
	i := a.value.start
	for range 16 {
		eq := token68.end(b[:min(len(b), i+bareMax)], i)
		// token68 has = in it: the name ends at the first one.
		if j := bytes.IndexByte(b[i:eq], '='); j >= 0 {
			i += j + 1
		} else if eq == len(b) && !final {
			v.add(verdict{more: true, from: i})
			return v
		} else {
			return v
		}
		limit := min(len(b), i+quotedMax)
		end := bare.end(b[:limit], i)
		if end == len(b) && !final && end < i+quotedMax {
			v.add(verdict{more: true, from: i})
			return v
		}
		if end-i >= 16 && made(b[i:end]) {
			v.add(verdict{found: true, span: span{start: i, end: end, class: bare}})
		}
		if end+1 >= len(b) && !final {
			v.add(verdict{more: true, from: end})
			return v
		}
		if end+1 >= len(b) || b[end] != ';' || b[end+1] != ' ' {
			return v
		}
		i = end + 2
	}
	return v
}
