package redact

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// escapes are the ways in which programs write a character that is not printable ASCII.
var escapes = []func(b *strings.Builder, r rune){
	func(b *strings.Builder, r rune) { b.WriteRune(r) },              // as it is: Python repr, PHP addslashes
	func(b *strings.Builder, r rune) { units(b, r, `\u%04x`) },       // JSON in ASCII: Python, PHP
	func(b *strings.Builder, r rune) { units(b, r, `\u%04X`) },       // the same: .NET, Java
	func(b *strings.Builder, r rune) { long(b, r, `\u%04x`) },        // Go %+q
	func(b *strings.Builder, r rune) { long(b, r, `\x%02x`) },        // Python ascii
	func(b *strings.Builder, r rune) { fmt.Fprintf(b, `\u{%x}`, r) }, // Rust, JavaScript
	func(b *strings.Builder, r rune) { octets(b, r, `\x%02x`) },      // C, Python bytes
	func(b *strings.Builder, r rune) { octets(b, r, `\x%02X`) },      // nginx
	func(b *strings.Builder, r rune) { octets(b, r, `\%03o`) },       // git, ls -b, bash %q
}

// escapeForms returns s in each of these ways, backslashes doubled, and with the quotes of one kind, of both or of none
// escaped; and as a shell quotes it.
func escapeForms(s string) []string {
	var list []string
	for _, escape := range escapes {
		for _, marks := range []string{`\`, `\"`, `\'`, `\'"`} {
			list = append(list, escapeWith(s, marks, escape))
		}
	}
	return append(list, shellForms(s)...)
}

// escapeWith puts a backslash in front of marks, writes the usual white space as C does and the rest that is not printable
// ASCII by escape.
func escapeWith(s, marks string, escape func(*strings.Builder, rune)) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case strings.ContainsRune(marks, r):
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case plainASCII(r):
			b.WriteRune(r)
		default:
			escape(&b, r)
		}
	}
	return b.String()
}

func plainASCII(r rune) bool { return r >= ' ' && r < 0x7f }

// units writes the UTF-16 code units of r.
func units(b *strings.Builder, r rune, format string) {
	for _, u := range utf16.AppendRune(nil, r) {
		fmt.Fprintf(b, format, u)
	}
}

// octets writes the bytes of r in UTF-8.
func octets(b *strings.Builder, r rune, format string) {
	for _, c := range utf8.AppendRune(nil, r) {
		fmt.Fprintf(b, format, c)
	}
}

// long writes r by short where it fits in two digits of \x or four of \u, else as \u or \U.
func long(b *strings.Builder, r rune, short string) {
	switch {
	case r > 0xffff:
		fmt.Fprintf(b, `\U%08x`, r)
	case r > 0xff:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, short, r)
	}
}

// shellForms returns s as it stands inside single quotes of a shell: bash -x and Python's shlex write an apostrophe in two
// ways, and ls on a terminal what is not printable ASCII as 'w'$'\303\266”rter'.
func shellForms(s string) []string {
	list := []string{strings.ReplaceAll(s, `'`, `'\''`), strings.ReplaceAll(s, `'`, `'"'"'`)}
	var b strings.Builder
	in := false
	for _, r := range list[0] {
		if out := !plainASCII(r); out != in {
			b.WriteString(map[bool]string{true: `'$'`, false: `''`}[out])
			in = out
		}
		if in {
			octets(&b, r, `\%03o`)
		} else {
			b.WriteRune(r)
		}
	}
	return append(list, b.String())
}
