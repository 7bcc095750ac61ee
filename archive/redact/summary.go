package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Summary returns t on one line: white space folded, at most max characters and then "..." where something was left
// out. It cuts neither a character nor a mark; bytes that are not UTF-8 become U+FFFD.
func Summary(t Text, max int) Text {
	var b strings.Builder
	space := false
	for s, n := t.s, 0; s != ""; {
		r, size := utf8.DecodeRuneInString(s)
		if unicode.IsSpace(r) {
			space = b.Len() > 0
			s = s[size:]
			continue
		}
		piece, chars := string(r), 1
		if strings.HasPrefix(s, Mark) {
			piece, chars, size = Mark, len(Mark), len(Mark)
		}
		if space {
			chars++
		}
		if n+chars > max {
			b.WriteString("...")
			break
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteString(piece)
		n += chars
		s = s[size:]
	}
	return Text{s: b.String(), n: t.n}
}
