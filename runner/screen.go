package runner

import (
	"slices"
	"strings"
	"unicode/utf8"

	"toolrun/archive/redact"
	"toolrun/catalog"
	"toolrun/runner/terminal"
)

// screenBytes is kept of either end of what a program writes to a terminal: many bytes may draw little text.
const screenBytes = 32 << 10

// lineTooLong is what is wrong with input for a terminal whose line discipline would cut it (termios(3)).
const lineTooLong = "holds a line of more than 4095 bytes, which a terminal would cut: break it into lines, or let the tool read a file"

// screen shows a stream as a person at its terminal would have read it. Nil is no terminal.
type screen struct {
	rules *redact.Rules
	size  catalog.Terminal

	drawn, text string // the last that was asked for: a reply and a summary are mostly of the same
}

// plain is the text that raw draws. It is redacted again: sequences that stood in the middle of a secret are gone.
func (s *screen) plain(raw []byte) string {
	if s.drawn != string(raw) {
		s.text = s.rules.Text(terminal.Plain(raw, s.size.Rows, s.size.Cols)).String()
		s.drawn = string(raw)
	}
	return s.text
}

// line is what a line of the stream shows.
func (s *screen) line(raw string) string {
	if s == nil {
		return raw
	}
	return strings.TrimSpace(strings.ReplaceAll(s.plain([]byte(raw)), "\n", " "))
}

// render gives at most about budget bytes of the text that e draws: all of it, or its head, a mark, and its tail. The mark
// counts the bytes of the stream that e has not kept and those of the text that do not fit.
func (s *screen) render(e *excerpt, budget int) Preview {
	older, newer := e.tail.parts()
	first, last := e.head, slices.Concat(older, newer)
	var head, tail string
	var leftOut int64
	lossy := false
	if e.n == int64(len(first)+len(last)) {
		whole := slices.Concat(first, last)
		text := s.plain(whole)
		lossy = !utf8.Valid(whole)
		if len(text) <= budget {
			return Preview{Text: text, Lossy: lossy}
		}
		half := budget / 2
		head, tail = text[:half], text[len(text)-(budget-half):]
		leftOut = int64(len(text) - budget)
	} else {
		first, last = endAtBoundary(first), startAtBoundary(last)
		lossy = !utf8.Valid(first) || !utf8.Valid(last)
		leftOut = e.n - int64(len(first)+len(last))
		head, tail = s.plain(first), s.plain(last)
		if over := len(head) - budget/2; over > 0 {
			leftOut += int64(over)
			head = head[:budget/2]
		}
		if over := len(tail) - (budget - budget/2); over > 0 {
			leftOut += int64(over)
			tail = tail[over:]
		}
	}
	from, to := endAtBoundary([]byte(head)), startAtBoundary([]byte(tail))
	p := preview(from, leftOut+int64(len(head)-len(from)+len(tail)-len(to)), to)
	p.Lossy = lossy
	return p
}
