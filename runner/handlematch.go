package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"time"
	"unicode/utf8"

	"toolrun/archive/redact"
	"toolrun/catalog"
	"toolrun/runner/terminal"
)

const (
	// maxPatternSteps bounds the instructions of a compiled pattern: each byte may cost as many steps, and counted
	// repetitions make many of few characters.
	maxPatternSteps = 2000

	// briefSteps is a search that is too short to be watched: some 50 ms at most.
	briefSteps = 4 << 20

	// matchGrace is how long a search that has begun may go on when the time of its read is over.
	matchGrace = time.Second
)

// matcher holds a pattern against what a program has printed. A search is linear in the text (RE2), and ends with ctx and at
// until; nil matches nothing.
type matcher struct {
	pattern *regexp.Regexp
	steps   int
	screen  *screen // nil: no terminal
	ctx     context.Context
	until   time.Time
}

func newMatcher(pattern string, size catalog.Terminal, rules *redact.Rules) (*matcher, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, errors.New("is not a regular expression of RE2")
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, errors.New("is not a regular expression of RE2")
	}
	m := &matcher{steps: len(program.Inst)}
	if m.steps > maxPatternSteps {
		return nil, fmt.Errorf("repeats too much: it has %d steps, at most %d are possible", m.steps, maxPatternSteps)
	}
	if m.pattern, err = regexp.Compile(pattern); err != nil {
		return nil, errors.New("is not a regular expression of RE2")
	}
	if size != (catalog.Terminal{}) {
		m.screen = &screen{rules: rules, size: size}
	}
	return m, nil
}

// matches tells whether what is unread matches: its bytes, or at a terminal its text, or what that draws.
func (m *matcher) matches(u *unread) bool {
	if m == nil || u == nil {
		return false
	}
	text := u.peek()
	if len(text) == 0 {
		return false
	}
	if m.found(text) {
		return true
	}
	if m.screen == nil {
		return false
	}
	return m.found(terminal.Text(text)) || m.found([]byte(m.screen.plain(text[max(0, len(text)-screenBytes):])))
}

func (m *matcher) found(text []byte) bool {
	if len(text)*m.steps <= briefSteps {
		return m.pattern.Match(text)
	}
	r := &haltingReader{text: text, halt: func() bool { return m.ctx.Err() != nil || time.Now().After(m.until) }}
	return m.pattern.MatchReader(r) && !r.halted
}

// haltingReader reads text until halt says so.
type haltingReader struct {
	text   []byte
	halt   func() bool
	n      int
	halted bool
}

// haltRunes is how many characters are read between two questions to halt.
const haltRunes = 256

// ReadRune implements io.RuneReader.
func (r *haltingReader) ReadRune() (c rune, size int, err error) {
	if r.n++; r.n%haltRunes == 0 && r.halt() {
		r.halted = true
	}
	if r.halted || len(r.text) == 0 {
		return 0, 0, io.EOF
	}
	c, size = utf8.DecodeRune(r.text)
	r.text = r.text[size:]
	return c, size, nil
}
