package redact

import (
	stdbase64 "encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
)

// What programs make of a value that is not ASCII and holds both quotes and a backslash.
func TestEscapedFormsOfADeclaredSecret(t *testing.T) {
	const s = "pässw0rd'€\\x\"😀z"
	r := New(map[string]string{"S": s})
	for name, in := range map[string]string{
		"Python ascii":         `'p\xe4ssw0rd\'\u20ac\\x"\U0001f600z'`,
		"Python repr of bytes": `b'p\xc3\xa4ssw0rd\'\xe2\x82\xac\\x"\xf0\x9f\x98\x80z'`,
		"Python json.dumps":    `"p\u00e4ssw0rd'\u20ac\\x\"\ud83d\ude00z"`,
		"JSON in capitals":     `"p\u00E4ssw0rd'\u20AC\\x\"\uD83D\uDE00z"`,
		"git ls-files":         `"p\303\244ssw0rd'\342\202\254\\x\"\360\237\230\200z"`,
		"git in JSON":          `"\"p\\303\\244ssw0rd'\\342\\202\\254\\\\x\\\"\\360\\237\\230\\200z\""`,
		"ls -b":                `p\303\244ssw0rd'\342\202\254\\x"\360\237\230\200z`,
		"ls on a terminal":     `'p'$'\303\244''ssw0rd'\'''$'\342\202\254''\x"'$'\360\237\230\200''z'`,
		"bash %q":              `$'p\303\244ssw0rd\'\342\202\254\\x"\360\237\230\200z'`,
		"bash -x":              `'pässw0rd'\''€\x"😀z'`,
		"Python shlex":         `'pässw0rd'"'"'€\x"😀z'`,
		"Go %q":                `"pässw0rd'€\\x\"😀z"`,
		"Go %+q":               `"p\u00e4ssw0rd'\u20ac\\x\"\U0001f600z"`,
		"Rust escape_default":  `p\u{e4}ssw0rd\'\u{20ac}\\x\"\u{1f600}z`,
		"nginx":                `"p\xC3\xA4ssw0rd'\xE2\x82\xAC\\x\"\xF0\x9F\x98\x80z"`,
		"percent":              "p%C3%A4ssw0rd%27%E2%82%AC%5Cx%22%F0%9F%98%80z",
		"base64":               stdbase64.StdEncoding.EncodeToString([]byte("ö" + s)),
		"hex":                  hex.EncodeToString([]byte(s)),
	} {
		got := r.Text("v=" + in + ";").String()
		if strings.Count(got, Mark) != 1 || len(got) > len(Mark)+12 {
			t.Errorf("%s: %s became %s", name, in, got)
		}
	}
}
