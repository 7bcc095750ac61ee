package jsonl

import (
	"strings"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// plain are the bytes that stand in a JSON string as they are, whatever comes before and after.
var plain = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// AppendString appends s as a JSON string that no reader can take for more than one line: besides what RFC 8259
// section 7 demands, U+0085, U+2028 and U+2029 are escaped, which Python's splitlines() and JavaScript before 2019 split
// at. A byte that is not UTF-8 becomes U+FFFD, written as the escape \ufffd.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = append(dst, s[start:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		escape := ""
		switch {
		case r == utf8.RuneError && n == 1:
			escape = `\ufffd`
		case r == '\u0085':
			escape = `\u0085`
		case r == '\u2028':
			escape = `\u2028`
		case r == '\u2029':
			escape = `\u2029`
		}
		if escape != "" {
			dst = append(append(dst, s[start:i]...), escape...)
			start = i + n
		}
		i += n
	}
	return append(append(dst, s[start:]...), '"')
}

var lineBreaks = strings.NewReplacer(
	"\u0085", `\u0085`, "\u2028", `\u2028`, "\u2029", `\u2029`,
	"\n", " ", "\r", " ", // in valid JSON these stand between tokens only
)

// AppendJSON appends a valid JSON value so that it stays on its line. Nothing at all becomes null.
func AppendJSON(dst, value []byte) []byte {
	if len(value) == 0 {
		return append(dst, "null"...)
	}
	for _, c := range value {
		if c == '\n' || c == '\r' || c == 0xc2 || c == 0xe2 {
			return append(dst, lineBreaks.Replace(string(value))...)
		}
	}
	return append(dst, value...)
}

// AppendStrings appends a JSON array of strings; nil is the empty array.
func AppendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, s)
	}
	return append(dst, ']')
}
