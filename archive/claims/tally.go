package claims

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"toolrun/archive/internal/late"
	"toolrun/archive/ledger"
)

// share is a claim that of so many tests a part passed: "2 of 3 tests pass".
type share struct {
	passed, total int
	now           bool // "pass", not "passed"
}

const number = `(\d+|one|two|three|four|five|six|seven|eight|nine|ten)`

var shareOf = late.Regexp(`(?i)\b` + number + `(?: (?:out )?of (?:the |all )?|/)` + number + ` (?:(?:\w+ )?(?:tests?|specs?) )?(?:(?:has|have|had|is|are|was|were|now|still|currently|do|does) )*(?:(pass|succeed|green|ok)|fail|broken)(ed|e?s|ing)?\b`)

// sharesOf reads them, and gives the sentence without them.
func sharesOf(text string) (list []share, rest string) {
	for _, m := range shareOf().FindAllStringSubmatch(text, -1) {
		s := share{passed: numberOf(m[1]), total: numberOf(m[2]), now: m[4] != "ed"}
		if m[3] == "" {
			s.passed = s.total - s.passed
		}
		list = append(list, s)
	}
	if !slices.ContainsFunc(list, func(s share) bool { return s.passed < s.total }) {
		return nil, text // all of them: a claim like any other
	}
	return list, shareOf().ReplaceAllString(text, " ")
}

// numberOf is a number in digits or in words, which number has.
func numberOf(word string) int {
	n, err := strconv.Atoi(word)
	if err != nil {
		return 1 + slices.Index(strings.Split(strings.Trim(number, "()"), "|")[1:], strings.ToLower(word))
	}
	return n
}

// tally is what a test runner counted.
type tally struct{ passed, others, total []int }

var (
	tallied = late.Regexp(`(?i)\b(\d+) (?:tests? )?(?:(pass(?:e[sd]|ing)?|succeeded)|(fail(?:ed|ures?|ing)?|errors?|skipped|ignored|pending|xfailed|xpassed|todo)|(total|tests?|examples?|specs?))\b` +
		`|\b(?:(pass(?:ed)?)|(fail(?:ed|ures?)?|errors?|skipped)|(total|tests(?: run)?))[:=]? *(\d+)(?:[,;)]|\s*$)|\bout of (\d+)\b`)
	verdict = late.Regexp(`(?m)^--- (?:(PASS)|FAIL|SKIP):`)
)

// tallyOf reads the output of a test runner.
func tallyOf(text string) (t tally) {
	for line := range strings.Lines(text) {
		for _, m := range tallied().FindAllStringSubmatch(line, -1) {
			n, _ := strconv.Atoi(m[1] + m[8] + m[9])
			switch {
			case m[2]+m[5] != "":
				t.passed = append(t.passed, n)
			case m[3]+m[6] != "":
				t.others = append(t.others, n)
			default:
				t.total = append(t.total, n)
			}
		}
	}
	good, bad := 0, 0
	for _, m := range verdict().FindAllStringSubmatch(text, -1) {
		if m[1] != "" {
			good++
		} else {
			bad++
		}
	}
	if good > 0 {
		t.passed, t.others = append(t.passed, good), append(t.others, bad)
	}
	return t
}

// holds tells whether the runner counted what the sentence says, and knows whether it counted enough to tell.
func (t tally) holds(s share) (yes, knows bool) {
	rest := 0
	for _, n := range t.others {
		rest += n
	}
	missing := s.total - s.passed
	counted, whole := slices.Contains(t.passed, s.passed), slices.Contains(t.total, s.total)
	switch {
	case counted && (whole || rest == missing || slices.Contains(t.others, missing)):
		return true, true
	case whole && len(t.passed) == 0 && slices.Contains(t.others, missing):
		return true, true
	}
	return false, len(t.passed) > 0 || len(t.total) > 0 && (len(t.others) > 0 || !whole)
}

// shared holds the shares that a sentence tells against what the calls counted.
func (s *statement) shared(ran []*ledger.Row, content Content) (Mark, string) {
	for _, of := range s.shares {
		rows := ran
		if of.now && !s.past {
			rows = latest(rows)
		}
		texts, unread, unkept := printed(rows, content)
		yes, known := false, false
		for _, text := range texts {
			holds, knows := tallyOf(text).holds(of)
			yes, known = yes || holds, known || knows
		}
		what := fmt.Sprintf("that %d of %d tests passed", of.passed, of.total)
		switch {
		case yes:
		case unread != nil:
			return NotJudged, fmt.Sprintf("what %s printed cannot be read", unread.ToolCallID)
		case unkept != nil:
			return WithoutEvidence, fmt.Sprintf("what %s printed was not kept", unkept.ToolCallID)
		case known:
			return Contradicted, fmt.Sprintf("no such call printed %s; it printed other numbers", what)
		default:
			return WithoutEvidence, fmt.Sprintf("no such call printed %s", what)
		}
	}
	return Supported, ""
}
