// Package redact removes secrets from text, from JSON and from streams before they may rest on disk.
//
// Its types Text, JSON and Bytes can be made only here; ledger, trace and store take nothing else, so that "no secret
// at rest" is checked by the compiler. A match is replaced by Mark, whose length does not depend on the secret's.
//
// What is a secret is decided by Rules, from three sources:
//
//   - the values that the catalog declares: as they are, each line of them, the strings in them where they are JSON, and
//     all of that in base64 (at its three alignments), URL-escaped, JSON-escaped and in hex (forms.go), and as Python, git,
//     ls, shells and others print what holds quotes or is not ASCII (escapes.go);
//   - names that make their value a secret: password, token, api_key, client_secret, … with their variants. In JSON every
//     value of such a key, {"name": "DB_PASSWORD", "value": …}, and the strings behind --password (level.go, option.go).
//     In text KEY=value, key: value, "key": "value", --key value, <key>value</key>, Authorization and Cookie headers,
//     SCHEME://USER:PASSWORD@HOST, curl -u, .netrc, the data of a Kubernetes secret, signatures of URLs;
//   - shapes: the rules of gitleaks (gitleaks.go, made by oracle/gen from the version that oracle/go.mod names, and under
//     its MIT licence: LICENSE.gitleaks), some more tokens with a prefix (shapes.go, extra.go), JSON Web Tokens, and private
//     keys in PEM in whatever form, cut off or not (pem.go).
//
// False positives cost as much as leaks: an agent that is shown [REDACTED] for a git id cannot go on. So git ids, digests,
// UUIDs, base64, lock files and source code stay byte for byte, and where text and JSON differ, text is judged more
// strictly: a password there has to have more than letters unless it stands in a variable of the environment, an
// element or a JSON string; a token has to have letters and digits mixed as no name and no version has; and what could be
// an expression of a programming language, a placeholder or a path is none.
//
// How it is fast: each rule is known by literals, and one index looks for all of them in every second place of the input
// (index.go). What follows a literal is judged by code on a bounded window; of the rules of gitleaks by the lengths and
// bytes that its expression asks for, and only if those fit by the expression itself, which is compiled then.
//
// How it is right in a stream: a rule says what it found, or that it cannot tell yet and from where on it might mask; the
// scanner (scan.go) emits up to there and asks again. So the result depends only on the whole input, never on how it was
// cut into writes. What a Stream holds back is bounded: by the longest declared value, by 4 KiB behind "data:" in YAML, by
// 2 KiB in a long token, and otherwise by a few hundred bytes; a long token or private key is masked while it flows.
// Overlapping matches become one mark.
//
// Not found, by design:
//
//   - a secret that is split over two streams, two JSON strings or two arguments, or by line breaks that an encoder put
//     into it (base64 of a declared secret in lines of 76), and encodings that forms does not name;
//   - in text: passwords of letters only outside the places named above, passwords with white space, passwords that are a
//     word for one (changeme, P@ssw0rd) or the name of their user, values of under four bytes, and hashes of passwords;
//   - a name and its value on two lines (name: DB_PASSWORD, value: … in YAML), mysql -pPASSWORD, sshpass -p PASSWORD;
//   - of a token without a prefix (Azure, MaxMind, Terraform, Telegram) the part in front of what tells it: that stays;
//   - tokens that only a file's path or a word elsewhere in the file would tell, and what a rule's own allowlist excepts;
//   - more than 4 KiB of the data of one Kubernetes secret, unless its lines are secrets by themselves.
package redact

// Mark stands where a secret stood.
const Mark = "[REDACTED]"

// Text is a string without secrets.
type Text struct {
	s string
	n int
}

// Plain makes a Text of a string that toolrun itself made and that cannot hold a secret: a constant, a hash, a run id,
// a number. Whatever came from a client, a tool, a file or the environment goes through Rules.Text.
func Plain(s string) Text { return Text{s: s} }

// String returns the redacted text.
func (t Text) String() string { return t.s }

// Redactions is the number of marks that were put in.
func (t Text) Redactions() int { return t.n }

// Bytes returns the text as a piece of a stream.
func (t Text) Bytes() Bytes { return Bytes{b: []byte(t.s)} }

// AppendJSON appends the text as a JSON string fit for a line of JSONL.
func (t Text) AppendJSON(dst []byte) []byte { return AppendQuoted(dst, t.s) }

// MarshalJSON makes Text a JSON string.
func (t Text) MarshalJSON() ([]byte, error) { return AppendQuoted(nil, t.s), nil }

// UnmarshalJSON reads a stored value, which was redacted before it was stored.
func (t *Text) UnmarshalJSON(b []byte) error {
	s, err := unquote(b)
	if err != nil {
		return err
	}
	*t = Text{s: s}
	return nil
}

// JSON is a JSON value without secrets. It is still valid JSON and has the shape of the value it was made from. The
// zero value is null.
type JSON struct {
	b       []byte
	n       int
	learned []string // what its keys made secrets, for Rules.With
}

// Raw returns the JSON text; it must not be changed.
func (j JSON) Raw() []byte {
	if j.b == nil {
		return []byte("null")
	}
	return j.b
}

// String returns the JSON text.
func (j JSON) String() string { return string(j.Raw()) }

// Redactions is the number of marks that were put in.
func (j JSON) Redactions() int { return j.n }

// IsNull tells whether the value is null, as the zero value is.
func (j JSON) IsNull() bool { return string(j.Raw()) == "null" }

// Text returns the JSON text as a Text, for summaries.
func (j JSON) Text() Text { return Text{s: j.String(), n: j.n} }

// AppendJSON appends the value fit for a line of JSONL.
func (j JSON) AppendJSON(dst []byte) []byte { return append(dst, EscapeLines(j.Raw())...) }

// MarshalJSON returns the value itself.
func (j JSON) MarshalJSON() ([]byte, error) { return EscapeLines(j.Raw()), nil }

// UnmarshalJSON reads a stored value, which was redacted before it was stored.
func (j *JSON) UnmarshalJSON(b []byte) error {
	*j = JSON{b: append([]byte(nil), b...)}
	return nil
}

// Bytes is a piece of a stream without secrets.
type Bytes struct {
	b []byte
}

// Raw returns the redacted bytes, valid until the callback that received them returns; they must not be changed.
func (b Bytes) Raw() []byte { return b.b }

// Len is the number of bytes.
func (b Bytes) Len() int { return len(b.b) }

// Clone returns a copy that outlives the callback.
func (b Bytes) Clone() Bytes { return Bytes{b: append([]byte(nil), b.b...)} }

// Slice returns the bytes from i up to j.
func (b Bytes) Slice(i, j int) Bytes { return Bytes{b: b.b[i:j]} }

// Content is what may be stored: a Text, a JSON or Bytes, and nothing made elsewhere.
type Content interface {
	content() []byte
}

func (t Text) content() []byte  { return []byte(t.s) }
func (j JSON) content() []byte  { return j.Raw() }
func (b Bytes) content() []byte { return b.b }

// Raw returns the bytes of c; they must not be changed.
func Raw(c Content) []byte { return c.content() }
