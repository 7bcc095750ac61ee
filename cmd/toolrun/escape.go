package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// escape makes s safe to print in one line: what is not a printable character (control bytes, DEL, C1, bidi controls,
// zero-width characters, line and paragraph separators) is shown as an escape and never sent to a terminal.
func escape(s string) string {
	if printable(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			b.WriteString(s[i : i+n])
		default:
			b.WriteString(escapeRune(r))
		}
		i += n
	}
	return b.String()
}

// escapeBlock is escape for text of several lines: newlines stay, a tab becomes spaces up to the next eighth column.
func escapeBlock(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		line, newline := strings.CutSuffix(line, "\n")
		for i, cell := range strings.Split(line, "\t") {
			if i > 0 {
				b.WriteString(strings.Repeat(" ", 8-width(lastLine(b.String()))%8))
			}
			b.WriteString(escape(cell))
		}
		if newline {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func lastLine(s string) string { return s[strings.LastIndexByte(s, '\n')+1:] }

// escapeJSON writes the characters of a JSON text that escape would escape as \uXXXX. The text stays the same value:
// outside strings JSON is printable ASCII and white space.
func escapeJSON(line []byte) []byte {
	s := string(line)
	if printable(s) {
		return line
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case unicode.IsPrint(r) || r == '\n':
			b.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return []byte(b.String())
}

func printable(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] >= 0x7f {
			for _, r := range s {
				if !unicode.IsPrint(r) || r == utf8.RuneError {
					return false
				}
			}
			return true
		}
	}
	return true
}

func escapeRune(r rune) string {
	switch r {
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	switch {
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04x`, r)
	default:
		return fmt.Sprintf(`\U%08x`, r)
	}
}
