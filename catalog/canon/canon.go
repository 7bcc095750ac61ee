// Package canon writes JSON in the one form that toolrun hashes: RFC 8785, the JSON Canonicalization Scheme.
//
// It promises that two values that mean the same give the same bytes, and that no digit of a number is lost: see Number
// for the numbers that RFC 8785 alone would change. It accepts only what RFC 7493 (I-JSON) calls well formed: no
// duplicate name, no invalid UTF-8, no lone surrogate. It does not judge what the value means.
package canon

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonicalize returns the canonical form of the JSON value v, which it leaves as it is. The error says at which byte
// the value stops being JSON; it holds no part of the value.
func Canonicalize(v []byte) ([]byte, error) {
	sorted := jsontext.Value(append([]byte(nil), v...))
	err := sorted.Format(
		jsontext.AllowDuplicateNames(false),
		jsontext.AllowInvalidUTF8(false),
		jsontext.PreserveRawStrings(false),
		jsontext.CanonicalizeRawInts(false),
		jsontext.CanonicalizeRawFloats(false),
		jsontext.ReorderRawObjects(true),
		jsontext.EscapeForHTML(false),
		jsontext.EscapeForJS(false),
		jsontext.Multiline(false),
		jsontext.SpaceAfterColon(false),
		jsontext.SpaceAfterComma(false),
	)
	if err != nil {
		return nil, fmt.Errorf("not a JSON value: %w", bare(err))
	}
	return rewriteNumbers(sorted), nil
}

// Of returns the canonical form of a Go value as encoding/json writes it.
func Of(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode value: %w", err)
	}
	return Canonicalize(b)
}

// SHA256Hex returns the lower-case hex SHA-256 of v as it stands: canonicalize first.
func SHA256Hex(v []byte) string {
	sum := sha256.Sum256(v)
	return hex.EncodeToString(sum[:])
}

// rewriteNumbers puts every number of the compact JSON value v into its canonical form. Strings are stepped over, so
// each byte outside of one that is '-' or a digit begins a number.
func rewriteNumbers(v []byte) []byte {
	out := make([]byte, 0, len(v))
	for i := 0; i < len(v); {
		switch c := v[i]; {
		case c == '"':
			end := stringEnd(v, i)
			out = append(out, v[i:end]...)
			i = end
		case c == '-' || '0' <= c && c <= '9':
			end := i + 1
			for end < len(v) && isNumberByte(v[end]) {
				end++
			}
			out = appendNumber(out, v[i:end])
			i = end
		default:
			out = append(out, c)
			i++
		}
	}
	return out
}

// stringEnd returns the index after the string that begins at v[i].
func stringEnd(v []byte, i int) int {
	for i++; i < len(v); i++ {
		switch v[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(v)
}

func isNumberByte(c byte) bool {
	return '0' <= c && c <= '9' || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-'
}

// bare drops from a jsontext error what it quotes of the input: only the kind and the offset remain.
func bare(err error) error {
	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &syntactic) {
		return errors.New("malformed")
	}
	what := "malformed"
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		what = "duplicate name in an object"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		what = "it ends too early"
	}
	return fmt.Errorf("%s near byte %d", what, syntactic.ByteOffset)
}
