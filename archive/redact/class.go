package redact

// class is a set of bytes that a secret consists of; a bit each, so that the classes of open matches are one value.
type class uint16

const (
	alnum    class = 1 << iota // A-Z a-z 0-9
	word                       // alnum and _
	dashed                     // alnum and -
	token                      // alnum, _ and -
	base64                     // alnum + / =
	token68                    // RFC 7235 §2.1: alnum - . _ ~ + / =
	wrapped                    // base64 in both alphabets, over line ends
	bare                       // what an unquoted value consists of
	solid                      // what one consists of that has a line to itself
	inDouble                   // up to the next double quote or line end
	inSingle                   // up to the next single quote or line end
	inGrave                    // up to the next back quote
	inTag                      // up to the next <
)

// closed are the classes whose bytes are sets of characters, smallest first.
var closed = []class{alnum, word, dashed, token, base64, token68}

var classes = func() (t [256]class) {
	for i := range t {
		switch c := byte(i); {
		case 'a' <= lower(c) && lower(c) <= 'z' || '0' <= c && c <= '9':
			t[i] = alnum | word | dashed | token | base64 | token68 | wrapped | bare | solid
		case c > ' ' && c != 0x7f:
			t[i] = bare | solid
		}
	}
	add := func(set string, k class) {
		for i := range len(set) {
			t[set[i]] |= k
		}
	}
	add("_", word|token|token68|wrapped)
	add("-", dashed|token|token68|wrapped)
	add(".~", token68)
	add("+/=", token68|base64|wrapped)
	add("\\\r\n", wrapped)
	for i := range t {
		c := byte(i)
		for _, q := range []struct {
			end string
			k   class
		}{{"\"\n", inDouble}, {"'\n", inSingle}, {"`", inGrave}, {"<", inTag}} {
			if c != q.end[0] && c != q.end[len(q.end)-1] {
				t[i] |= q.k
			}
		}
	}
	remove := func(set string, k class) {
		for i := range len(set) {
			t[set[i]] &^= k
		}
	}
	remove("\"'`,;&|<>()[]{}\\", bare)
	remove("\"'`\\", solid)
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

// around returns the smallest class that has all bytes of the set, or none.
func around(set *[256]bool) class {
	for _, k := range closed {
		all := true
		for c := range set {
			all = all && (!set[c] || k.has(byte(c)))
		}
		if all {
			return k
		}
	}
	return 0
}

// edge tells whether no word goes on at b[at]. A letter or digit before it may be the end of an escape: \n, \x0a,
// \u000a, %3D, or ESC [ 3 1 m.
func edge(b []byte, at int) bool { return at == 0 || !word.has(b[at-1]) || escaped(b, at) }

// boundary is edge for tokens that do not begin behind a dash either.
func boundary(b []byte, at int) bool { return at == 0 || !token.has(b[at-1]) || escaped(b, at) }

// escaped tells whether an escape ends in front of b[at].
func escaped(b []byte, at int) bool {
	if at >= 2 && b[at-2] == '\\' || at >= 3 && b[at-3] == '%' && hexadecimal(b[at-2:at]) {
		return true
	}
	if at >= 4 && b[at-4] == '\\' && b[at-3] == 'x' && hexadecimal(b[at-2:at]) {
		return true
	}
	if at >= 6 && b[at-6] == '\\' && b[at-5] == 'u' && hexadecimal(b[at-4:at]) {
		return true
	}
	if at >= 1 && 'a' <= lower(b[at-1]) && lower(b[at-1]) <= 'z' {
		i := at - 1
		for i > 0 && at-i < 20 && ('0' <= b[i-1] && b[i-1] <= '9' || b[i-1] == ';') {
			i--
		}
		return i > 0 && b[i-1] == '[' && (i < at-1 || i > 1 && b[i-2] == 0x1b)
	}
	return false
}

func hexadecimal(s []byte) bool {
	for _, c := range s {
		if !('0' <= c && c <= '9' || 'a' <= lower(c) && lower(c) <= 'f') {
			return false
		}
	}
	return true
}
