package redact

import (
	"bytes"
	stdbase64 "encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// minForm is the least length of a part or an encoded form that is worth masking: shorter ones stand in innocent text.
const minForm = 8

// forms returns how a declared value may be written: itself, each line of it, the strings of it if it is JSON, and of
// each the encodings. The first is the value; the order has no meaning beyond that.
func forms(value string) []string {
	value = strings.TrimSpace(value)
	list := []string{value}
	parts := append([]string{value}, lines(value)...)
	parts = append(parts, jsonParts(value)...)
	for i, part := range parts {
		if i > 0 && len(part) >= minForm {
			list = append(list, part)
		}
		for _, form := range encodings(part) {
			if len(form) >= minForm {
				list = append(list, form)
			}
		}
	}
	return list
}

// lines returns the lines of a value that has several, without those that frame a PEM block.
func lines(value string) []string {
	if !strings.ContainsAny(value, "\r\n") {
		return nil
	}
	var list []string
	for line := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == '\r' || r == '\n' }) {
		line = strings.TrimSpace(line)
		if len(line) >= minForm && !strings.HasPrefix(line, "-----") {
			list = append(list, line)
		}
	}
	return list
}

// jsonParts returns the compact form of a value that is a JSON object or array, and the strings in it that a reader
// would call secret: jq prints the one, a program uses the other.
func jsonParts(value string) []string {
	v := jsontext.Value(value)
	if k := v.Kind(); k != '{' && k != '[' || !v.IsValid() {
		return nil
	}
	v = v.Clone()
	if err := v.Compact(); err != nil {
		return nil
	}
	list := []string{string(v)}
	d := jsontext.NewDecoder(bytes.NewReader(v))
	key := ""
	for {
		t, err := d.ReadToken()
		if err != nil { // io.EOF: the value is valid
			return list
		}
		if t.Kind() != '"' {
			key = ""
			continue
		}
		s := t.String()
		if kind, n := d.StackIndex(d.StackDepth()); kind == '{' && n%2 == 1 {
			key = s
			continue
		}
		if len(s) >= minForm && (secretKey(key) || !common(s)) {
			list = append(list, s)
			list = append(list, lines(s)...)
		}
		key = ""
	}
}

// secretKey tells whether a key calls its value a secret.
func secretKey(key string) bool {
	key = strings.ToLower(key)
	for _, name := range []string{"pass", "secret", "token", "key", "auth", "cred", "pin", "priv"} {
		if strings.Contains(key, name) {
			return true
		}
	}
	return false
}

// common tells whether a string of a secret document, such as service_account or a public address, stands in innocent
// text as well.
func common(s string) bool {
	if rest, ok := strings.CutPrefix(s, "https://"); ok && !strings.ContainsAny(rest, "@?") {
		return true
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_-. ") == ""
}

// encodings returns how programs write s inside other text.
func encodings(s string) []string {
	list := []string{hex.EncodeToString([]byte(s)), strings.ToUpper(hex.EncodeToString([]byte(s)))}
	list = append(list, base64Forms(s)...)
	list = append(list, urlForms(s)...)
	for _, f := range append(jsonForms(s), escapeForms(s)...) {
		// Such text is often carried in JSON, and JSON in JSON, and quoted in messages.
		list = append(list, f, inner(string(appendQuote(nil, f))))
		list = append(list, shellForms(f)...)
	}
	return list
}

// base64Forms returns the characters that s becomes in base64, standard and URL alphabet, at each of the three places
// where it may begin in a group; those that also depend on a neighbour of s are left out.
func base64Forms(s string) []string {
	var list []string
	for before, skip := range []int{0, 2, 3} {
		whole := append(make([]byte, before), s...)
		end := len(whole)/3*4 + len(whole)%3
		for _, enc := range []*stdbase64.Encoding{stdbase64.RawStdEncoding, stdbase64.RawURLEncoding} {
			if text := enc.EncodeToString(whole); skip < end {
				list = append(list, text[skip:end])
			}
		}
	}
	return list
}

// urlForms returns s percent-encoded as Go, browsers and Python do it, in capital and small digits.
func urlForms(s string) []string {
	query, path := url.QueryEscape(s), url.PathEscape(s)
	component := strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(query)
	slashes := strings.ReplaceAll(strings.ReplaceAll(query, "+", "%20"), "%2F", "/")
	list := []string{query, path, component, slashes, strings.ReplaceAll(query, "+", "%20")}
	for _, f := range list {
		list = append(list, lowerPercent(f))
	}
	return list
}

func lowerPercent(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			b[i+1], b[i+2] = lower(b[i+1]), lower(b[i+2])
		}
	}
	return string(b)
}

// jsonForms returns s as it stands between the quotes of a JSON string: as little escaped as can be, with / escaped (PHP),
// with <, > and & escaped (Go), and all of that in ASCII only (Python, .NET).
func jsonForms(s string) []string {
	least := inner(string(appendQuote(nil, s)))
	list := []string{least, strings.ReplaceAll(least, "/", `\/`)}
	if html, err := json.Marshal(s); err == nil {
		list = append(list, inner(string(html)))
	}
	for _, f := range list {
		for _, format := range []string{`\u%04x`, `\u%04X`} {
			list = append(list, asciiOnly(f, format))
		}
	}
	return list
}

// inner drops the quotes of a JSON string.
func inner(quoted string) string { return quoted[1 : len(quoted)-1] }

func asciiOnly(s, format string) string {
	var b strings.Builder
	for _, r := range s {
		if r < 0x7f {
			b.WriteRune(r)
		} else {
			units(&b, r, format)
		}
	}
	return b.String()
}
