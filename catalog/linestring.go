package catalog

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// str steps over one of the four kinds of string and returns what it means, which matters for keys only.
func (s *lineScanner) str() string {
	quote := s.src[s.pos : s.pos+1]
	end, multi := quote, s.take(strings.Repeat(quote, 3))
	if multi {
		end = strings.Repeat(quote, 3)
	} else {
		s.pos++
	}
	start := s.pos
	for s.pos < len(s.src) && !strings.HasPrefix(s.src[s.pos:], end) {
		switch c := s.src[s.pos]; {
		case c == '\\' && quote == `"` && s.pos+1 < len(s.src) && s.src[s.pos+1] != '\n':
			s.pos++
		case c == '\n' && !multi:
			return s.src[start:s.pos] // not TOML
		case c == '\n':
			s.line++
		}
		s.pos++
	}
	s.pos = min(s.pos, len(s.src))
	body := s.src[start:s.pos]
	s.take(end)
	for multi && s.take(quote) { // up to two quotes may stand before the closing three
	}
	if quote == `"` {
		return unescape(body)
	}
	return body
}

// unescape resolves the escapes of a basic string; what is no escape stays as it is.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[i]]
		if digits > 0 && i+digits < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+1+digits], 16, 32); err == nil && n <= utf8.MaxRune {
				b.WriteRune(rune(n))
				i += digits
				continue
			}
		}
		if at := strings.IndexByte("btnfre", s[i]); at >= 0 {
			b.WriteByte("\b\t\n\f\r\x1b"[at])
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
