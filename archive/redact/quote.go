package redact

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// AppendQuoted appends s as a JSON string that holds no line end in the sense of any reader: besides what RFC 8785
// escapes, U+0085, U+2028 and U+2029. Bytes that are not UTF-8 become U+FFFD.
func AppendQuoted(dst []byte, s string) []byte {
	n := len(dst)
	dst = appendQuote(dst, s)
	if escaped := EscapeLines(dst[n:]); len(escaped) != len(dst)-n {
		dst = append(dst[:n], escaped...)
	}
	return dst
}

// appendQuote appends s as RFC 8785 writes a string.
func appendQuote(dst []byte, s string) []byte {
	// The error tells of invalid UTF-8 only, and what was appended then holds U+FFFD.
	out, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		out, _ = jsontext.AppendQuote(dst, strings.ToValidUTF8(s, "\uFFFD"))
	}
	return out
}

// unquote returns the string that the JSON string b stands for; null is the empty string.
func unquote(b []byte) (string, error) {
	b = bytes.TrimSpace(b)
	if string(b) == "null" {
		return "", nil
	}
	s, err := jsontext.AppendUnquote(nil, b)
	if err != nil {
		return "", fmt.Errorf("read redacted text: %w", err)
	}
	return string(s), nil
}

// EscapeLines rewrites U+0085, U+2028 and U+2029 inside a JSON text as \u escapes, so that a reader that takes them for
// line ends (Python's splitlines does) sees one line. It returns text itself where there is nothing to do.
func EscapeLines(text []byte) []byte {
	i := nextLineEnd(text, 0)
	if i < 0 {
		return text
	}
	out := make([]byte, 0, len(text)+16)
	from := 0
	for ; i >= 0; i = nextLineEnd(text, from) {
		out = append(out, text[from:i]...)
		switch {
		case text[i] == 0xC2:
			out = append(out, `\u0085`...)
			from = i + 2
		case text[i+2] == 0xA8:
			out = append(out, `\u2028`...)
			from = i + 3
		default:
			out = append(out, `\u2029`...)
			from = i + 3
		}
	}
	return append(out, text[from:]...)
}

var (
	nextLine   = []byte("\u0085")
	separators = []byte("\u2028")[:2]
)

// nextLineEnd returns where the first of the three code points from i on begins, or -1.
func nextLineEnd(text []byte, i int) int {
	nel := bytes.Index(text[i:], nextLine)
	sep := -1
	for j := i; ; {
		k := bytes.Index(text[j:], separators)
		if k < 0 || j+k+2 >= len(text) || nel >= 0 && j+k > i+nel {
			break
		}
		if c := text[j+k+2]; c == 0xA8 || c == 0xA9 {
			sep = j + k
			break
		}
		j += k + 2
	}
	switch {
	case sep >= 0:
		return sep
	case nel >= 0:
		return i + nel
	}
	return -1
}
