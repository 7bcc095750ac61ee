package main

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// width is the number of terminal columns of s, which holds printable characters only (escape).
func width(s string) int {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			n := i
			for _, r := range s[i:] {
				n += runeWidth(r)
			}
			return n
		}
	}
	return len(s)
}

// wide are the East Asian Wide and Fullwidth ranges of UAX #11, neighbours joined.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1}, {0x231a, 0x231b, 1}, {0x23e9, 0x23ec, 1}, {0x23f0, 0x23f0, 1}, {0x25fd, 0x25fe, 1},
		{0x2614, 0x2615, 1}, {0x2648, 0x2653, 1}, {0x26a1, 0x26a1, 1}, {0x26bd, 0x26be, 1}, {0x2705, 0x2705, 1},
		{0x274c, 0x274c, 1}, {0x2753, 0x2755, 1}, {0x2795, 0x2797, 1}, {0x2b50, 0x2b50, 1}, {0x2e80, 0x303e, 1},
		{0x3041, 0x33ff, 1}, {0x3400, 0x4dbf, 1}, {0x4e00, 0xa4cf, 1}, {0xa960, 0xa97c, 1}, {0xac00, 0xd7a3, 1},
		{0xf900, 0xfaff, 1}, {0xfe30, 0xfe6f, 1}, {0xff01, 0xff60, 1}, {0xffe0, 0xffe6, 1},
	},
	R32: []unicode.Range32{
		{0x16fe0, 0x18aff, 1}, {0x1aff0, 0x1b2fb, 1}, {0x1f004, 0x1f004, 1}, {0x1f0cf, 0x1f0cf, 1},
		{0x1f18e, 0x1f19a, 1}, {0x1f200, 0x1f265, 1}, {0x1f300, 0x1f64f, 1}, {0x1f680, 0x1f6ff, 1},
		{0x1f7e0, 0x1f7eb, 1}, {0x1f90c, 0x1f9ff, 1}, {0x1fa70, 0x1faff, 1}, {0x20000, 0x3fffd, 1},
	},
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.Is(wide, r):
		return 2
	default:
		return 1
	}
}

// cut shortens s to at most columns, with … in place of what was left out.
func cut(s string, columns int) string {
	if columns < 1 || width(s) <= columns {
		return s
	}
	n := 0
	for i, r := range s {
		if n+runeWidth(r) > columns-1 {
			return s[:i] + "…"
		}
		n += runeWidth(r)
	}
	return s
}

// pad fills s with spaces to columns, on the left for numbers.
func pad(s string, columns int, right bool) string {
	fill := strings.Repeat(" ", max(0, columns-width(s)))
	if right {
		return fill + s
	}
	return s + fill
}
