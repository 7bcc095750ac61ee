package redact

import (
	"bytes"
	"strings"
)

// option is what the strings of an argv array say of the next one: --password VALUE, -u USER:PASSWORD of curl.
type option struct {
	kind kind
	curl bool
	user bool
}

// next takes notice of a string.
func (o *option) next(s string) {
	o.kind, o.user = isPublic, false
	name := strings.TrimLeft(s, "-")
	switch {
	case s == "curl" || strings.HasSuffix(s, "/curl"):
		o.curl = true
	case s == "-u" || s == "--user" || s == "--proxy-user" || s == "-U":
		o.user = o.curl
	case len(name) < len(s) && len(name) > 1 && !strings.ContainsAny(name, "= \t\n"):
		if o.kind = kindOf([]byte(name)); o.kind == isCookie || o.kind == isAuth {
			o.kind = isToken
		}
	}
}

// value returns what the string becomes where the one in front of it says that it is a secret.
func (o *option) value(s string) (Text, bool) {
	switch {
	case o.user:
		if user, pass, found := strings.Cut(s, ":"); found && len(pass) >= 3 && !reference([]byte(pass)) {
			return Text{s: user + ":" + Mark, n: 1}, true
		}
	case o.kind != isPublic && !strings.HasPrefix(s, "-") && given([]byte(s), o.kind):
		return Text{s: Mark, n: 1}, true
	}
	return Text{}, false
}

// given tells whether a value that a structure ties to the name of a secret is one: whatever does not obviously stand
// for something else. There is no source code here, so words are taken for secrets, too.
func given(v []byte, k kind) bool {
	v = bytes.TrimSpace(v)
	switch string(bytes.ToLower(v)) {
	case "", "true", "false", "null", "none", "nil", "undefined":
		return false
	}
	if number(v, 0) {
		return len(v) >= 4 && (k == isPassword || len(v) >= 6)
	}
	same := len(v) > 1
	for _, c := range v {
		same = same && c == v[0]
	}
	if same {
		return false
	}
	if bytes.Equal(v, []byte(Mark)) {
		return false
	}
	switch c, last := v[0], v[len(v)-1]; {
	case c == '$' && (bytes.HasPrefix(v, []byte("${")) || bytes.HasPrefix(v, []byte("$(")) || word.end(v, 1) == len(v) && !digit(v[1])):
		return false
	case c == '<' && last == '>', c == '{' && last == '}', c == '%' && last == '%' && len(v) > 2:
		return false
	}
	for _, prefix := range [...]string{"os.environ", "os.getenv", "process.env", "vault:", "op://", "arn:", "!", "ENC["} {
		if bytes.HasPrefix(v, []byte(prefix)) {
			return false
		}
	}
	return true
}
