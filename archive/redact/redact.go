// Package redact removes secrets from text, from JSON and from streams before they may rest on disk.
//
// Its types Text, JSON and Bytes can be made only here; ledger, trace and store take nothing else, so that "no secret
// at rest" is checked by the compiler. A match is replaced by Mark, whose length does not depend on the secret's.
package redact

// Mark stands where a secret stood.
const Mark = "[REDACTED]"

// Text is a string without secrets.
type Text struct {
	s string
	n int
}

// String returns the redacted text.
func (t Text) String() string { return t.s }

// Redactions is the number of marks that were put in.
func (t Text) Redactions() int { return t.n }

// MarshalJSON and UnmarshalJSON make Text a JSON string.

// JSON is a JSON value without secrets. It is still valid JSON and has the shape of the value it was made from.
type JSON struct {
	b []byte
	n int
}

// Bytes is a piece of a stream without secrets; it is made by a Stream only.
type Bytes struct {
	b []byte
}

// Raw returns the redacted bytes, valid until the callback that received them returns.
func (b Bytes) Raw() []byte { return b.b }
