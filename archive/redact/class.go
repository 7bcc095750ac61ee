package redact

// class is a set of bytes that a token consists of; a bit each, so that the classes of open matches are one value.
type class uint8

const (
	alnum   class = 1 << iota // A-Z a-z 0-9
	word                      // alnum and _
	dashed                    // alnum and -
	token                     // alnum, _ and -
	token68                   // RFC 7235 §2.1: alnum - . _ ~ + / =
	base64                    // alnum + / =
)

var classes = func() (t [256]class) {
	for c := range t {
		if c := byte(c); 'a' <= lower(c) && lower(c) <= 'z' || '0' <= c && c <= '9' {
			t[c] = alnum | word | dashed | token | token68 | base64
		}
	}
	t['_'] = word | token | token68
	t['-'] = dashed | token | token68
	t['.'], t['~'] = token68, token68
	t['+'], t['/'], t['='] = token68|base64, token68|base64, token68|base64
	return t
}()

// has tells whether the byte is in the class.
func (k class) has(c byte) bool { return classes[c]&k != 0 }

// end returns where the run of bytes of the class that begins at b[from:] ends.
func (k class) end(b []byte, from int) int {
	for from < len(b) && classes[b[from]]&k != 0 {
		from++
	}
	return from
}
