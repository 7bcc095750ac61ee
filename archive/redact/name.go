package redact

// kind is what a name says of the value that it stands for.
type kind uint8

const (
	isPublic   kind = iota
	isPassword      // chosen by people: any value may be one
	isToken         // made by machines: a value looks random
	isAuth          // the same, or a scheme and then the secret
	isCookie        // NAME=VALUE; …
)

// words that make the value of a name that ends in them a secret. Their plurals do too.
var lastWords = map[string]kind{
	"password": isPassword, "passwd": isPassword, "passphrase": isPassword, "passcode": isPassword, "pwd": isPassword, "pass": isPassword, "pw": isPassword,
	"secret": isToken, "token": isToken, "apikey": isToken, "accesskey": isToken, "secretkey": isToken, "privatekey": isToken, "authkey": isToken,
	"accountkey": isToken, "sharedaccesskey": isToken, "authtoken": isToken, "accesstoken": isToken, "refreshtoken": isToken, "sessiontoken": isToken,
	"credential": isToken, "cred": isToken, "jwt": isToken, "sessid": isToken, "phpsessid": isToken, "clientsecret": isToken, "idtoken": isToken,
	"authorization": isAuth, "auth": isAuth, "cookie": isCookie,
}

// keyWords are the words in front of "key" that make it a secret one.
var keyWords = set("access account admin api app auth client consumer crypt deploy encryption encrypt hmac ingest integration jwt " +
	"license master private root secret service session shared sign signing ssh storage subscription webhook write")

// qualifiers may stand behind the word that counts.
var qualifiers = set("value base confirm confirmation again repeat old new current text plain plaintext raw data b64 base64 default prod " +
	"production dev development test staging live ro rw main primary secondary string str")

// notBefore are words in front of token and secret that make it something else: of a language, of a page, a count.
var notBefore = set("page next continuation cursor max min num n total input output prompt completion stop special bos eos pad unk sep cls " +
	"mask start end line lex syntax csrf xsrf invalid unexpected design public publishable previous prev cached reasoning count per")

// protocolWords are words in front of secret that key exchanges use; their test vectors stand in source.
var protocolWords = set("shared exporter early handshake traffic resumption premaster master ephemeral")

// protocolName tells whether a name is such a term: shared_secret, exporterSecret.
func protocolName(name []byte) bool {
	var words [maxWords][]byte
	n := split(name, &words)
	if n < 2 {
		return false
	}
	front, last := fold(words[n-2]), fold(words[n-1])
	return last.s() == "secret" && protocolWords[front.s()]
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	from := 0
	for i := 0; i <= len(words); i++ {
		if i == len(words) || words[i] == ' ' {
			m[words[from:i]] = true
			from = i + 1
		}
	}
	return m
}

const (
	maxWords = 12
	maxWord  = 24
)

// kindOf tells what a name such as clientSecret, X-Api-Key or DB_PASSWORD_2 says of its value.
func kindOf(name []byte) kind {
	var words [maxWords][]byte
	n := split(name, &words)
	skipped := 0
	for n > 0 {
		w := fold(words[n-1])
		k := ofWord(w.s())
		if k == isPublic && len(w.s()) > 1 && w.b[w.n-1] == 's' {
			w.n--
			k = ofWord(w.s())
		}
		var front folded
		if n > 1 {
			front = fold(words[n-2])
		}
		switch s := w.s(); {
		case k != isPublic:
			if k == isToken && n > 1 && notBefore[front.s()] {
				return isPublic
			}
			return k
		case s == "key" && n > 1 && keyWords[front.s()]:
			return isToken
		case skipped == 2 || !(qualifiers[s] || s == ""):
			return isPublic
		}
		n--
		skipped++
	}
	return isPublic
}

// ofWord looks a word up, also one that others are glued to: dbpassword, mypasswd.
func ofWord(s string) kind {
	if k, ok := lastWords[s]; ok {
		return k
	}
	for _, tail := range [...]string{"password", "passwd", "passphrase"} {
		if len(s) > len(tail) && s[len(s)-len(tail):] == tail {
			return isPassword
		}
	}
	for _, tail := range [...]string{"apikey", "secretkey", "accesskey", "authtoken", "accesstoken"} {
		if len(s) > len(tail) && s[len(s)-len(tail):] == tail {
			return isToken
		}
	}
	return isPublic
}

// folded is a word in small letters without the digits at its end.
type folded struct {
	b [maxWord]byte
	n int
}

func (f *folded) s() string { return string(f.b[:f.n]) }

func fold(word []byte) (f folded) {
	for len(word) > 0 && digit(word[len(word)-1]) {
		word = word[:len(word)-1]
	}
	word = word[max(0, len(word)-maxWord):]
	for i, c := range word {
		f.b[i] = lower(c)
	}
	f.n = len(word)
	return f
}

// split cuts a name into its last words, at punctuation and at capitals.
func split(name []byte, words *[maxWords][]byte) (n int) {
	end := len(name)
	for end > 0 && n < maxWords {
		if !alnum.has(name[end-1]) {
			end--
			continue
		}
		start := end - 1
		for start > 0 && alnum.has(name[start-1]) && !hump(name, start) {
			start--
		}
		words[n] = name[start:end]
		n++
		end = start
	}
	for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
		words[i], words[j] = words[j], words[i]
	}
	return n
}

// hump tells whether a new word begins at name[i]: a capital behind a small letter, or the last of several capitals in
// front of a small one.
func hump(name []byte, i int) bool {
	if !capital(name[i]) {
		return false
	}
	return !capital(name[i-1]) && !digit(name[i-1]) || i+1 < len(name) && small(name[i+1]) && capital(name[i-1])
}

func capital(c byte) bool { return 'A' <= c && c <= 'Z' }

func small(c byte) bool { return 'a' <= c && c <= 'z' }
