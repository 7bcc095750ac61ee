package redact

import (
	"bytes"
	stdbase64 "encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// SCENARIOS 106.
func TestTokenCutAnywhereIsMasked(t *testing.T) {
	tok := "ghp_" + strings.Repeat("A", 36)
	for k := 1; k < len(tok); k++ {
		got, n := streamed(t, New(nil), "before "+tok+" after\n", []int{7 + k})
		if got != "before "+Mark+" after\n" || n != 1 {
			t.Errorf("cut after %d bytes: %q", k, got)
		}
		// Half on stdout, half on stderr: no piece of 20 bytes of a token that can be told.
		got, _ = streamed(t, New(nil), tok[:k], nil)
		if len(got) >= 20 && got != Mark {
			t.Errorf("the first %d bytes alone: %q", k, got)
		}
	}
}

// SCENARIOS 107.
func TestTokensAcrossBufferOffsetsInOneLine(t *testing.T) {
	tok := "ghp_" + strings.Repeat("A", 36)
	line := bytes.Repeat([]byte("x"), 300000)
	for _, at := range []int{4096, 32768, 65536, 131072, 262144} {
		copy(line[at-20:], " "+tok+" ")
	}
	for _, size := range []int{1, 4096, 32768, 65536, 300000} {
		var cuts []int
		for i := size; i < len(line); i += size {
			cuts = append(cuts, i)
		}
		got, n := streamed(t, New(nil), string(line), cuts)
		if n != 5 || strings.Count(got, Mark) != 5 || strings.Contains(got, "AAAA") || len(got) != len(line)-5*(len(tok)-len(Mark)) {
			t.Errorf("writes of %d bytes: %d marks, %d bytes", size, n, len(got))
		}
	}
}

// SCENARIOS 74.
func TestBinaryOutputStaysByteForByte(t *testing.T) {
	all := make([]byte, 0, 1<<16)
	for i := range 1 << 15 {
		all = append(all, byte(i>>8), byte(i))
	}
	for _, in := range []string{"a\xff\xfe\x00b\n", "\xe2\x82", string(all)} {
		if got, n := streamed(t, New(declared), in, []int{1}); got != in || n != 0 {
			t.Errorf("%.20q changed", in)
		}
	}
}

// SCENARIOS 109, as far as the secret is declared.
func TestMultiLineSecretIsMaskedWholeCompactAndByLine(t *testing.T) {
	r := New(map[string]string{"S": declared["C"]})
	var compact bytes.Buffer
	json.Compact(&compact, []byte(declared["C"]))
	for _, in := range []string{declared["C"], compact.String(), `  "password": "plainword-long-9931"`, "pw=plainword-long-9931\n",
		strings.ReplaceAll(declared["C"], "\n", "\r\n"), "{\n"} {
		got := r.Text(in).String()
		if strings.Contains(got, "plainword-long-9931") {
			t.Errorf("%q became %q", in, got)
		}
		if in == "{\n" && got != in {
			t.Errorf("a lone brace became %q", got)
		}
	}
	for _, in := range []string{declared["C"], compact.String(), `  "password": "plainword-long-9931"`} { // also undeclared
		if got := New(nil).Text(in).String(); strings.Contains(got, "plainword-long-9931") {
			t.Errorf("undeclared %q became %q", in, got)
		}
	}
	if got := r.Text("<" + declared["C"] + ">"); got.String() != "<"+Mark+">" || got.Redactions() != 1 {
		t.Errorf("the whole secret became %q: want one mark", got)
	}
}

// SCENARIOS 110.
func TestEncodedFormsOfADeclaredSecret(t *testing.T) {
	s := "p@ss\"w\\nrd/+=12345678"
	r := New(map[string]string{"S": s})
	b64 := stdbase64.StdEncoding.EncodeToString
	dumps, _ := json.Marshal(s)
	twice, _ := json.Marshal(string(dumps))
	for name, in := range map[string]string{
		"itself": s, "base64": b64([]byte(s)), "base64 behind 1": b64([]byte("x" + s)), "base64 behind 2": b64([]byte("xx" + s + "\n")),
		"base64 URL": stdbase64.URLEncoding.EncodeToString([]byte("x" + s)), "query": url.QueryEscape(s), "path": url.PathEscape(s),
		"small percent": strings.ToLower(url.QueryEscape(s)), "JSON": string(dumps), "JSON twice": string(twice),
		"hex": hex.EncodeToString([]byte(s)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(s))),
	} {
		got := r.Text("v=" + in + ";").String()
		if left := len(got) - len(Mark) - len("v=;"); strings.Count(got, Mark) != 1 || left > 10 || !strings.HasPrefix(got, "v=") || !strings.HasSuffix(got, ";") {
			t.Errorf("%s: %q became %q", name, in, got)
		}
	}
}

// SCENARIOS 112.
func TestPrivateKeyInEveryForm(t *testing.T) {
	for _, width := range []int{64, 70, 76} {
		body := append(pemBody(6, width), pemBody(1, 22)[0]+"==")
		head, tail := "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
		lines := strings.Join(body, "\n")
		for name, in := range map[string]string{
			"lines":             head + "\n" + lines + "\n" + tail + "\n",
			"CRLF":              strings.ReplaceAll(head+"\n"+lines+"\n"+tail+"\n", "\n", "\r\n"),
			"one line":          head + " " + strings.Join(body, " ") + " " + tail,
			"no separators":     head + strings.Join(body, "") + tail,
			`literal \n`:        head + `\n` + strings.Join(body, `\n`) + `\n` + tail,
			`literal \\n`:       head + `\\n` + strings.Join(body, `\\n`) + `\\n` + tail,
			"without RSA":       strings.ReplaceAll(head+"\n"+lines+"\n"+tail+"\n", "RSA ", ""),
			"OpenSSH":           strings.ReplaceAll(head+"\n"+lines+"\n"+tail+"\n", "RSA ", "OPENSSH "),
			"PGP":               "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\nComment: https://example.org/\n\n" + lines + "\n=AbCd\n-----END PGP PRIVATE KEY BLOCK-----\n",
			"header field":      head + "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF0123456789ABCDEF\n\n" + lines + "\n" + tail + "\n",
			"truncated":         head + "\n" + lines,
			"truncated, text":   head + "\n" + lines + "\nexit status 1\n",
			"truncated early":   head + "\n" + body[0][:30],
			"indented":          "key: |\n  " + strings.ReplaceAll(head+"\n"+lines+"\n"+tail, "\n", "\n  ") + "\n",
			"quoted":            "> " + strings.ReplaceAll(head+"\n"+lines+"\n"+tail, "\n", "\n> ") + "\n",
			"diff":              "+" + strings.ReplaceAll(head+"\n"+lines+"\n"+tail, "\n", "\n+") + "\n",
			"numbered":          "1\t" + strings.ReplaceAll(head+"\n"+lines+"\n"+tail, "\n", "\n    12\t") + "\n",
			"time stamps":       "2024-11-30T18:05:12.123Z " + strings.ReplaceAll(head+"\n"+lines+"\n"+tail, "\n", "\n2024-11-30T18:05:12.123Z ") + "\n",
			"concatenated":      `"` + strings.ReplaceAll(head+"\n"+lines+"\n"+tail, "\n", "\\n\" +\n\t\"") + `"`,
			"two keys, one cut": head + "\n" + strings.Join(body[:3], "\n") + "\n" + head + "\n" + strings.Join(body[3:], "\n") + "\n" + tail + "\n",
		} {
			got := New(nil).Text(in)
			for _, line := range body {
				for i := 0; i+12 <= len(line); i++ {
					if strings.Contains(got.String(), line[i:i+12]) {
						t.Errorf("width %d, %s: %q is left in\n%s", width, name, line[i:i+12], got)
						break
					}
				}
			}
			want := 1
			if name == "two keys, one cut" {
				want = 2
			}
			if got.Redactions() != want {
				t.Errorf("width %d, %s: %d marks in\n%s", width, name, got.Redactions(), got)
			}
			if strings.Contains(in, "exit status 1") && !strings.HasSuffix(got.String(), Mark+"\nexit status 1\n") {
				t.Errorf("the text behind a truncated key changed:\n%s", got)
			}
			if cut, _ := streamed(t, New(nil), in, every(len(in), 13)); cut != got.String() {
				t.Errorf("width %d, %s, cut: %s", width, name, cut)
			}
		}
	}
}

func every(n, step int) (cuts []int) {
	for i := step; i < n; i += step {
		cuts = append(cuts, i)
	}
	return cuts
}

func TestShapes(t *testing.T) {
	a20, h36 := "abcdefghij0123456789", strings.Repeat("9aB", 12)
	for in, want := range map[string]string{
		// masked
		"OPENAI_API_KEY=sk-" + a20:                "OPENAI_API_KEY=" + Mark,
		"sk-proj-Ab1_-" + h36 + `"`:               Mark + `"`,
		"sk-ant-api03-" + h36 + "\n":              Mark + "\n",
		"k:sk-" + strings.Repeat("A", 48):         "k:" + Mark,
		`{"a":"x\nsk-` + a20 + `"}`:               `{"a":"x\n` + Mark + `"}`,
		"\x1b[31msk-" + a20 + "\x1b[0m":           "\x1b[31m" + Mark + "\x1b[0m",
		"?key%3Dsk-" + a20 + "&x":                 "?key%3D" + Mark + "&x",
		"Authorization: Bearer abcdefgh":          "Authorization: Bearer " + Mark,
		`"authorization": "bearer tok1"`:          `"authorization": "bearer ` + Mark + `"`,
		"curl -H 'X: BEARER eyJ0.a-b_c~d+e/f==' ": "curl -H 'X: BEARER " + Mark + "' ",
		"Bearer  \t0123456789":                    "Bearer  \t" + Mark,
		"bearer%20" + a20:                         "bearer%20" + Mark,
		"AKIA" + "IOSFODNN7EXAMPLE":               Mark,
		"id=ASIA" + "IOSFODNN7EXAMPLE/2024":       "id=" + Mark + "/2024",
		"ghp_" + h36 + " gho_" + h36:              Mark + " " + Mark,
		"xghu_" + h36 + "aaaa,":                   "x" + Mark + ",",
		"ghs_" + h36 + "ghr_" + h36:               Mark, // two matches that overlap
		"github_pat_11ABCDEFG0" + h36 + "_" + h36: Mark,
		"xoxb-" + "1234567890-abc xoxp-" + a20:    Mark + " " + Mark,
		// innocent
		"task-" + a20 + " risk-" + a20:                                                                "task-" + a20 + " risk-" + a20,
		"sk-learn sk-estimator-doc-link sk-SK sk-" + a20[1:]:                                          "sk-learn sk-estimator-doc-link sk-SK sk-" + a20[1:],
		"sk-ssh-ed25519-cert-v01@openssh.com sk-ecdsa-sha2-nistp256@openssh.com":                      "sk-ssh-ed25519-cert-v01@openssh.com sk-ecdsa-sha2-nistp256@openssh.com",
		"sk-learn-contrib-project-documentation":                                                      "sk-learn-contrib-project-documentation",
		"bearer of bad news, Bearer authentication.":                                                  "bearer of bad news, Bearer authentication.",
		`WWW-Authenticate: Bearer resource_metadata="x"`:                                              `WWW-Authenticate: Bearer resource_metadata="x"`,
		"Bearer <token> Bearer $TOKEN Bearer {token}":                                                 "Bearer <token> Bearer $TOKEN Bearer {token}",
		"XAKIA" + "IOSFODNN7EXAMPLE":                                                                  "XAKIA" + "IOSFODNN7EXAMPLE",
		"AKIA" + "IOSFODNN7EXAMPLEX":                                                                  "AKIA" + "IOSFODNN7EXAMPLEX",
		"ghp_short ghp_" + h36[1:] + " ":                                                              "ghp_short ghp_" + h36[1:] + " ",
		"xoxb-short xoxo-" + a20:                                                                      "xoxb-short xoxo-" + a20,
		"-----BEGIN PUBLIC KEY-----\n" + strings.Repeat("Ab1", 21) + "\n":                             "-----BEGIN PUBLIC KEY-----\n" + strings.Repeat("Ab1", 21) + "\n",
		"grep: a.go:1: -----BEGIN RSA PRIVATE KEY-----\n./src/crypto/tls/testdata/example-key.pem:1:": "grep: a.go:1: -----BEGIN RSA PRIVATE KEY-----\n./src/crypto/tls/testdata/example-key.pem:1:",
		"-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----":                                 "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
	} {
		got := New(nil).Text(in)
		if got.String() != want || got.Redactions() != strings.Count(want, Mark) {
			t.Errorf("%q became %q, %d marks; want %q", in, got, got.Redactions(), want)
		}
		if again := New(nil).Text(want); again.String() != want {
			t.Errorf("%q became %q the second time", want, again)
		}
		if off := New(nil).Shapes(false).Text(in); off.String() != in {
			t.Errorf("without shapes %q became %q", in, off)
		}
	}
}

func TestShapesOffStillMasksDeclaredSecrets(t *testing.T) {
	r := New(map[string]string{"T": "hunter2-hunter2\n"}).Shapes(false)
	if got := r.Text("a hunter2-hunter2 b").String(); got != "a "+Mark+" b" {
		t.Error(got)
	}
	if got := r.Shapes(true).Text("ghp_" + strings.Repeat("A", 36)).String(); got != Mark {
		t.Error(got)
	}
}

func TestOverlappingSecretsBecomeOneMark(t *testing.T) {
	r := New(map[string]string{"A": "first-and-second", "B": "second-and-third", "C": "first-and"})
	if got := r.Text("<first-and-second-and-third>"); got.String() != "<"+Mark+">" || got.Redactions() != 1 {
		t.Errorf("%q", got)
	}
	if got := r.Text("first-andfirst-and"); got.String() != Mark+Mark || got.Redactions() != 2 {
		t.Errorf("%q", got)
	}
}

func TestMarkDoesNotTellTheLength(t *testing.T) {
	for _, n := range []int{36, 37, 400} {
		if got := New(nil).Text("ghp_" + strings.Repeat("b", n)).String(); got != Mark {
			t.Errorf("%d: %q", n, got)
		}
	}
}

func TestInnocentIdentifiersStay(t *testing.T) {
	for _, in := range []string{
		"commit 9fceb02d0ae598e95dc970b74767f19372d61af8\n", "sha256:b2bc7d3f8b652d2ec96865b68ad8f80e22cca174abe1aed7889e242a747d590f",
		"123e4567-e89b-12d3-a456-426614174000", "github.com/spf13/cobra v1.10.2 h1:DMTTonx5m65Ic0GOoRY2c16WCbHxOOw6xxezuLaBpcU=\n",
		"data:image/png;base64," + strings.Join(pemBody(40, 76), ""), "integrity sha512-" + pemBody(1, 86)[0] + "==",
		"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA" + pemBody(1, 43)[0] + " me@host", "-----BEGIN CERTIFICATE-----\n" + strings.Join(pemBody(20, 64), "\n") + "\n-----END CERTIFICATE-----\n",
	} {
		if got := New(declared).Text(in); got.String() != in {
			t.Errorf("%q became %q", in, got)
		}
	}
}

func TestJSONKeepsItsShape(t *testing.T) {
	tok := "ghp_" + strings.Repeat("A", 36)
	r := New(map[string]string{"S": "p@ss\"w\\nrd/+=12345678", "N": "1234567890123"})
	for in, want := range map[string]string{
		`null`: `null`, ` [ 1.0, -0, 1e2 ,9007199254740993,18446744073709551616, true ] `: ` [ 1.0, -0, 1e2 ,9007199254740993,18446744073709551616, true ] `,
		`{"a\u0041\/":"\u00e9\ud83d\ude00<"}`:          `{"a\u0041\/":"\u00e9\ud83d\ude00<"}`,
		`"` + tok + `"`:                                `"` + Mark + `"`,
		`"\u0067hp_` + strings.Repeat("A", 36) + `\n"`: `"` + Mark + `\n"`,
		`{"x":"p@ss\"w\\nrd\/+=12345678"}`:             `{"x":"` + Mark + `"}`,
		`["p@ss\\\"w\\\\nrd/+=12345678"]`:              `["` + Mark + `"]`,
		`{"` + tok + `" :{"k":1}}`:                     `{"` + Mark + `" :{"k":1}}`,
		`{"` + tok + `":1,"` + tok + `2":2,"b":[]}`:    `{"` + Mark + `#1":1,"` + Mark + `#2":2,"b":[]}`,
		`{"` + tok + `":1,"` + Mark + `":2}`:           `{"` + Mark + `#1":1,"` + Mark + `":2}`,
		`{"pin":1234567890123,"n":123456789012}`:       `{"pin":"` + Mark + `","n":123456789012}`,
		`{"k":"-----BEGIN PRIVATE KEY-----\nMIIEvAb0123456789Ab0123456789\n-----END PRIVATE KEY-----\n"}`: `{"k":"-----BEGIN PRIVATE KEY-----\n` + Mark + `\n-----END PRIVATE KEY-----\n"}`,
	} {
		got, err := r.JSON([]byte(in))
		if err != nil || string(got.Raw()) != want || got.Redactions() != strings.Count(want, Mark)-strings.Count(in, Mark) {
			t.Errorf("%s became %s, %d marks, %v; want %s", in, got.Raw(), got.Redactions(), err, want)
		}
	}
	for _, in := range []string{``, `{`, `{"a":1,"a":2}`, `"\ud800"`, "\"\xff\"", `1 2`} {
		if _, err := r.JSON([]byte(in)); err == nil {
			t.Errorf("%s is valid", in)
		}
	}
}

func FuzzJSONStaysJSON(f *testing.F) {
	tok := "ghp_" + strings.Repeat("A", 36)
	f.Add([]byte(`{"` + tok + `":[1,2.50,"Bearer abcdefg1\u2028"],"\u0073k-` + tok + `":{"x":null}}`))
	f.Add([]byte(`"p@ss\"w\\nrd\/+=12345678"`))
	r := New(declared)
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := r.JSON(in)
		if err != nil {
			if jsontext.Value(in).IsValid() && !bytes.Contains(in, []byte("REDACTED")) {
				t.Fatalf("%q: %v", in, err)
			}
			return
		}
		if !jsontext.Value(got.Raw()).IsValid() {
			t.Fatalf("%q became %q", in, got.Raw())
		}
		a, b := shape(t, in), shape(t, got.Raw())
		if a != b {
			t.Fatalf("%q became %q: shape %s, was %s", in, got.Raw(), b, a)
		}
		if got.Redactions() == 0 && !bytes.Equal(in, got.Raw()) {
			t.Fatalf("%q became %q without a mark", in, got.Raw())
		}
	})
}

// shape is the kinds of the tokens of a JSON value.
func shape(t *testing.T, v []byte) string {
	var b strings.Builder
	d := jsontext.NewDecoder(bytes.NewReader(v))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return b.String()
		}
		b.WriteByte(byte(token.Kind()))
	}
}

func TestStringsAreRedactedOneByOne(t *testing.T) {
	r := New(nil)
	got := r.Strings([]string{"curl", "-H", "Authorization: Bearer s3cret-token", "a\xffb\u2028"})
	if want := "[\"curl\",\"-H\",\"Authorization: Bearer " + Mark + "\",\"a\uFFFDb\u2028\"]"; string(got.Raw()) != want || got.Redactions() != 1 {
		t.Errorf("%s", got.Raw())
	}
	if got := r.Strings(nil); string(got.Raw()) != "null" {
		t.Errorf("%s", got.Raw())
	}
	if got := r.Strings([]string{}); string(got.Raw()) != "[]" {
		t.Errorf("%s", got.Raw())
	}
}

func TestCanonicalRedactsBeforeItSorts(t *testing.T) {
	tok := "ghp_" + strings.Repeat("A", 36)
	sorted := func(b []byte) ([]byte, error) {
		v := jsontext.Value(b).Clone()
		err := v.Canonicalize()
		return v, err
	}
	got, err := New(nil).Canonical([]byte(`{"a":1, "`+tok+`":2, "Z":3}`), sorted)
	if want := `{"Z":3,"` + Mark + `":2,"a":1}`; err != nil || string(got.Raw()) != want || got.Redactions() != 1 {
		t.Errorf("%s, %d, %v", got.Raw(), got.Redactions(), err)
	}
}

func TestStoredValuesAreReadBack(t *testing.T) {
	type row struct {
		Text Text  `json:"text"`
		Null *Text `json:"null"`
		JSON JSON  `json:"json"`
		Zero JSON  `json:"zero"`
	}
	r := New(nil)
	value, err := r.JSON([]byte("{\"a\":[1.50,\"\u2028\u0085<\"]}"))
	if err != nil {
		t.Fatal(err)
	}
	in := row{Text: r.Text("a\"\u2029\u0085é\x00 ghp_" + strings.Repeat("A", 36)), JSON: value}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"\u0085", "\u2028", "\u2029", "\n"} {
		if bytes.Contains(b, []byte(line)) {
			t.Errorf("%q is not escaped in %s", line, b)
		}
	}
	if !bytes.Contains(b, []byte(`"zero":null`)) || !bytes.Contains(b, []byte("1.50")) {
		t.Errorf("%s", b)
	}
	var out row
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	if out.Text.String() != in.Text.String() || out.Null != nil || !out.Zero.IsNull() || shape(t, out.JSON.Raw()) != shape(t, value.Raw()) {
		t.Errorf("%+v", out)
	}
}

func TestEscapeLines(t *testing.T) {
	for in, want := range map[string]string{
		``: ``, `"a"`: `"a"`, "\"\u0085\"": `"\u0085"`, "\"\u2028\u2029\u0085\u2027\u202a\u00c2é€\"": "\"\\u2028\\u2029\\u0085\u2027\u202a\u00c2é€\"", "\"\u0085\u2028": `"\u0085\u2028`,
		"\xe2\x80": "\xe2\x80", "\u2027\u2027\u2028": "\u2027\u2027\\u2028",
	} {
		if got := string(EscapeLines([]byte(in))); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestSummaryCutsNeitherMarkNorCharacter(t *testing.T) {
	r := New(nil)
	for _, c := range []struct {
		in   string
		max  int
		want string
	}{
		{"  a \n\t b\u0085c\u2028 ", 300, "a b c"},
		{"abc", 3, "abc"}, {"abcd", 3, "abc..."}, {"ab c", 3, "ab..."}, {"abc  \n", 3, "abc"}, {"", 3, ""},
		{"éééé", 3, "ééé..."},
		{"x ghp_" + strings.Repeat("A", 36) + " y", 12, "x " + Mark + "..."},
		{"x ghp_" + strings.Repeat("A", 36) + " y", 11, "x..."},
		{"a\xffb", 9, "a\uFFFDb"},
	} {
		if got := Summary(r.Text(c.in), c.max).String(); got != c.want {
			t.Errorf("Summary(%q, %d) = %q, want %q", c.in, c.max, got, c.want)
		}
	}
}
