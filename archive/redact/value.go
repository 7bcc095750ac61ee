package redact

import "bytes"

// traits of a value.
type traits struct {
	n                                         int
	lower, upper, digits, marks, others, high int // marks: - _ . ; others: other punctuation; high: not ASCII
	spaces                                    int
}

func traitsOf(v []byte) (t traits) {
	t.n = len(v)
	for _, c := range v {
		switch {
		case small(c):
			t.lower++
		case capital(c):
			t.upper++
		case digit(c):
			t.digits++
		case c == '-' || c == '_' || c == '.':
			t.marks++
		case c >= 0x80:
			t.high++
		case space(c):
			t.spaces++
		default:
			t.others++
		}
	}
	return t
}

func (t *traits) letters() int { return t.lower + t.upper + t.high }

// mixed tells whether there is more than letters.
func (t *traits) mixed() bool { return t.letters() > 0 && t.digits+t.others > 0 }

// chosen tells whether a value could be a password that a person thought of: not only letters, and no word that stands
// for one.
func chosen(v []byte) bool {
	t := traitsOf(v)
	return t.n >= 6 && t.mixed() && t.spaces == 0 && !reference(v)
}

// made tells whether a value could have been made by a machine: letters and digits mixed as names and versions do not.
func made(v []byte) bool {
	t := traitsOf(v)
	if t.n >= 20 && t.spaces == 0 && jumbled(v) && !reference(v) {
		return true
	}
	if t.n < 8 || t.letters() == 0 || t.digits < 2 || t.spaces > 0 || reference(v) || t.others == 0 && identifier(v) {
		return false
	}
	for i := 0; i < len(v); {
		start := i
		for i < len(v) && (alnum.has(v[i]) || v[i] >= 0x80) {
			i++
		}
		if piece := v[start:i]; len(piece) >= 5 && !number(piece, 0) && !numbered(piece) {
			return true
		}
		if i == start {
			i++
		}
	}
	return false
}

// jumbled tells whether small and capital letters change as in no camelCase: several single small ones among capitals.
func jumbled(v []byte) bool {
	single := 0
	for i := 1; i+1 < len(v); i++ {
		if small(v[i]) && capital(v[i-1]) && capital(v[i+1]) {
			single++
		}
	}
	return single >= 2 && entropy(v) > 3.5
}

// identifier tells whether v is itself the name of something secret: testRSA2048PrivateKey.
func identifier(v []byte) bool {
	return len(v) <= 64 && digitGroups(v) <= 2 && (nameInside(v) || bytes.Contains(bytes.ToLower(v), []byte("key")))
}

// number tells whether v has only digits, and at least n.
func number(v []byte, n int) bool {
	for _, c := range v {
		if !digit(c) {
			return false
		}
	}
	return len(v) >= n
}

// numbered tells whether v is words and numbers joined by punctuation, as names, versions and dates are: prod-key-2024,
// v1.2.3-rc1, sha256, 8bit.
func numbered(v []byte) bool {
	for i := 0; i < len(v); {
		if !alnum.has(v[i]) && v[i] < 0x80 {
			i++
			continue
		}
		start, changes, digits := i, 0, 0
		for i < len(v) && (alnum.has(v[i]) || v[i] >= 0x80) {
			if digit(v[i]) {
				digits++
			}
			if i > start && digit(v[i]) != digit(v[i-1]) {
				changes++
			}
			i++
		}
		if changes > 1 || digits > 4 || changes == 1 && digits > 3 {
			return false
		}
	}
	return true
}

// reference tells whether v stands for a value instead of being one: a variable, a template, a path, an address, a
// digest, a date, one character again and again, or a word such as changeme.
func reference(v []byte) bool {
	if len(v) == 0 {
		return true
	}
	switch c := v[0]; c {
	case '$', '<', '{', '*':
		return true
	case '%', '@', '&', '(', '[':
		if len(v) > 1 && !digit(v[1]) {
			return true
		}
	case '/', '.', '~':
		if path(v) {
			return true
		}
	}
	same := true
	for _, c := range v[1:] {
		same = same && c == v[0]
	}
	if same {
		return true
	}
	for _, s := range [...]string{"${", "{{", "$(", "%s", "%v", "%q", "%d", "%x", "%0", "://", "...", "\\(", "\\x", "\\u", Mark} {
		if bytes.Contains(v, []byte(s)) {
			return true
		}
	}
	for _, s := range [...]string{"sha1", "sha256", "sha384", "sha512", "md5", "os.environ", "process.env", "env.", "file:", "vault:", "op:", "urn:", "ref+", "!", "ENC[", "arn:"} {
		if bytes.HasPrefix(v, []byte(s)) {
			return true
		}
	}
	if len(v) < 20 && bytes.HasPrefix(v, []byte("0x")) && hexadecimal(v[2:]) || v[len(v)-1] == '=' && alnum.end(v, 0) == len(v)-1 && digitGroups(v) == 0 {
		return true // a number, the name of the next one
	}
	if len(v) >= 10 && number(v[:4], 4) && v[4] == '-' && number(v[5:7], 2) && v[7] == '-' {
		return true // a date
	}
	if i := bytes.LastIndexByte(v, '.'); i > 0 && fileTypes[string(bytes.ToLower(v[i+1:]))] && numbered(v) {
		return true
	}
	return standIn(v)
}

var fileTypes = set("pem key crt cer pub p12 pfx jks json yaml yml toml ini env txt conf cfg go py js ts rb php java html md sh log gpg asc")

// path tells whether v, which begins with / . or ~, is a path and not base64.
func path(v []byte) bool {
	i := bytes.IndexByte(v, '/')
	return i >= 0 && i < 3 && numbered(v)
}

// standIns are words that people write in place of a secret.
var standIns = set("password pasword passwd pass pwd passphrase passcode secret token apikey accesskey secretkey key credential credentials changeme " +
	"changeit changethis example sample test testing foo bar baz foobar qux dummy fake mock placeholder redacted hidden removed masked sanitized " +
	"obfuscated none null nil undefined unset empty blank true false required optional string str text bytes int integer number bool boolean " +
	"object array default value todo tbd unknown opensesame something whatever here goes insert replace replaceme supersecret topsecret " +
	"secretpassword passwordhere secrethere tokenhere notasecret notarealpassword notreal abc abcdef xyz asdf qwerty")

// before words that stand in for a secret.
var standInFronts = [...]string{"my", "your", "the", "some", "a", "an", "new", "old", "test", "user", "db", "admin", "invalid", "wrong", "bad", "valid", "any"}

// standIn tells whether v is such a word, without regard to case, digits, punctuation and letters written as digits:
// secr3t, P%40ssword, my-token-1, <password>.
func standIn(v []byte) bool {
	if len(v) > 40 {
		return false
	}
	var plain, leet [40]byte
	n, m, digits := 0, 0, 0
	for i := 0; i < len(v); i++ {
		c := v[i]
		if c == '%' && i+2 < len(v) && hexadecimal(v[i+1:i+3]) {
			i += 2
			if c = '/'; v[i-1] == '4' && v[i] == '0' {
				c = '@'
			}
		}
		if digit(c) {
			digits++
		}
		if c = lower(c); small(c) {
			plain[n] = c
			n++
		}
		switch c {
		case '0':
			c = 'o'
		case '1', '!':
			c = 'i'
		case '3':
			c = 'e'
		case '4', '@':
			c = 'a'
		case '5', '$':
			c = 's'
		case '7':
			c = 't'
		}
		if small(c) {
			leet[m] = c
			m++
		}
	}
	return digits <= 4 && standInWord(plain[:n]) || standInWord(leet[:m])
}

func standInWord(w []byte) bool {
	if standIns[string(w)] {
		return true
	}
	for _, front := range standInFronts {
		if rest, ok := bytes.CutPrefix(w, []byte(front)); ok && standIns[string(rest)] {
			return true
		}
	}
	return false
}
