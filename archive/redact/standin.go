package redact

import "bytes"

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
	for _, s := range [...]string{"sha1", "sha256", "sha384", "sha512", "md5"} {
		if rest, ok := bytes.CutPrefix(v, []byte(s)); ok && (len(rest) == 0 || !alnum.has(rest[0])) {
			return true // else it is a secret that happens to begin so
		}
	}
	for _, s := range [...]string{"os.environ", "process.env", "env.", "file:", "vault:", "op:", "urn:", "ref+", "!", "ENC[", "arn:"} {
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
	return i >= 0 && i < 3 && numbered(v) && !secretAccessKey(v)
}

// secretAccessKey tells whether v has the form of a secret key of AWS: 40 characters of base64, of each kind some.
func secretAccessKey(v []byte) bool {
	t := traitsOf(v)
	return len(v) == 40 && base64.end(v, 0) == 40 && t.upper > 3 && t.lower > 3 && t.digits > 0
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
