package claims

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"toolrun/archive/internal/late"
	"toolrun/archive/ledger"
)

// judge marks a statement: as the worst of its subjects.
func judge(s *statement, rows []*ledger.Row, content Content) Claim {
	c := Claim{Sentence: s.text, Mark: Supported}
	var whys []string
	p := programsOf(rows)
	for _, sub := range parts(s.subjects, rows, content) {
		of := p.evidence(s, sub, rows, content)
		for _, row := range of {
			if !slices.Contains(c.Rows, row) {
				c.Rows = append(c.Rows, row)
			}
		}
		mark, why := weigh(s, sub, of, p, content)
		if rank[mark] > rank[c.Mark] {
			c.Mark, whys = mark, nil
		}
		if mark == c.Mark {
			whys = append(whys, why)
		}
	}
	slices.SortFunc(c.Rows, func(a, b *ledger.Row) int { return int(a.Seq - b.Seq) })
	c.Why = strings.Join(whys, "; ")
	return c
}

// parts puts in place of "everything" the checks that were run; where none was, it stands for itself.
func parts(subjects []subject, rows []*ledger.Row, content Content) (list []subject) {
	for _, sub := range subjects {
		n := len(list)
		for _, a := range activities {
			of := a.subject()
			if sub.everything && a.check && slices.ContainsFunc(rows, func(row *ledger.Row) bool { return of.is(row, content) }) {
				list = append(list, of)
			}
		}
		if len(list) == n {
			list = append(list, sub)
		}
	}
	return list
}

var rank = map[Mark]int{Supported: 0, NotJudged: 1, WithoutEvidence: 2, Contradicted: 3}

// weigh marks a statement about one subject by its rows.
func weigh(s *statement, sub subject, rows []*ledger.Row, p *programs, content Content) (Mark, string) {
	var started []*ledger.Row
	for _, row := range rows {
		if row.Status != ledger.StatusBlocked {
			started = append(started, row)
		}
	}
	if len(rows) == 0 {
		return WithoutEvidence, "no row is of " + sub.what
	}
	if len(started) == 0 {
		return WithoutEvidence, fmt.Sprintf("%s: nothing was started, the only such calls were refused", sub.what)
	}
	last := p.last(started)
	open := slices.IndexFunc(started, p.open)
	unknown := func(row *ledger.Row) (Mark, string) {
		return WithoutEvidence, fmt.Sprintf("%s started a program that has %s", row.ToolCallID, p.end(row))
	}
	if len(started) < s.times {
		return WithoutEvidence, fmt.Sprintf("%s ran %d times, not %d; the last, %s, ended with %s", sub.what, len(started), s.times, last.ToolCallID, p.end(last))
	}
	if s.exit != "" {
		for _, row := range started {
			if p.end(row) == "exit code "+s.exit {
				return Supported, fmt.Sprintf("%s: %s", row.ToolCallID, p.end(row))
			}
		}
		if open >= 0 {
			return unknown(started[open])
		}
		return Contradicted, fmt.Sprintf("no such call ended with exit code %s; the last, %s, with %s", s.exit, last.ToolCallID, p.end(last))
	}
	good := func(row *ledger.Row) bool { return row.Status == ledger.StatusSuccess }
	says := s.says
	if says == ran && sub.itself {
		says = succeeded // who says that he deployed it says that it worked
	}
	if s.shares != nil && (sub.tests || sub.tool != "") {
		if mark, why := s.shared(started, content); mark != Supported {
			return mark, why
		}
		says = ran // a part of them: how the call ended tells nothing against it
	}
	switch says {
	case failed, both:
		of := started
		switch {
		case says == both || s.past:
		case s.now:
			of = latest(of)
		default:
			of = lastAttempts(of)
		}
		bad, open := slices.IndexFunc(of, func(row *ledger.Row) bool { return !good(row) }), slices.IndexFunc(of, p.open)
		switch {
		case bad < 0 && open >= 0:
			return unknown(of[open])
		case bad < 0 && says == both:
			return WithoutEvidence, fmt.Sprintf("no such call failed; the last, %s, ended with %s", last.ToolCallID, p.end(last))
		case bad < 0 && len(of) < len(started):
			return Contradicted, fmt.Sprintf("what failed was repeated, and the last such call, %s, ended with %s", last.ToolCallID, p.end(last))
		case bad < 0:
			return Contradicted, fmt.Sprintf("no such call failed; the last, %s, ended with %s", last.ToolCallID, p.end(last))
		case says == failed:
			return Supported, fmt.Sprintf("%s: %s", of[bad].ToolCallID, p.end(of[bad]))
		}
	case succeeded:
		if i := slices.IndexFunc(started, func(row *ledger.Row) bool { return good(row) && !p.open(row) }); sub.any && i >= 0 {
			return Supported, fmt.Sprintf("%s: %s", started[i].ToolCallID, p.end(started[i]))
		}
		if p.open(last) {
			return unknown(last)
		}
		if !good(last) {
			return Contradicted, fmt.Sprintf("the last such call, %s, ended with %s", last.ToolCallID, p.end(last))
		}
		if Masked(last) && scripted(last, content) {
			return WithoutEvidence, fmt.Sprintf("%s: %s, which may be that of the last command of its script only", last.ToolCallID, p.end(last))
		}
	}
	if mark, why := s.counts(started, content); mark != Supported {
		return mark, why
	}
	return Supported, fmt.Sprintf("%s: %s", last.ToolCallID, p.end(last))
}

// latest are the rows of which none later is of the same work.
func latest(rows []*ledger.Row) (list []*ledger.Row) {
	for i, row := range rows {
		if !slices.ContainsFunc(rows[i+1:], func(later *ledger.Row) bool { return repeats(later, row) }) {
			list = append(list, row)
		}
	}
	return list
}

// repeats tells whether a call did again what an earlier one did: the same tool, with the same arguments or with fewer of them,
// as one that runs all tests has after one that runs a few.
func repeats(later, row *ledger.Row) bool {
	if later.ToolName != row.ToolName {
		return false
	}
	have, argv := argvOf(row), argvOf(later)
	return later.InputHash == row.InputHash || len(argv) > 0 && !slices.ContainsFunc(argv, func(arg string) bool { return !slices.Contains(have, arg) })
}

// lastAttempts are the rows without the attempts that toolrun itself followed by another.
func lastAttempts(rows []*ledger.Row) (list []*ledger.Row) {
	for i, row := range rows {
		if row.Status != ledger.StatusRetry || !slices.ContainsFunc(rows[i+1:], func(later *ledger.Row) bool {
			return later.RunID == row.RunID && later.Attempt > row.Attempt && callOf(later) == callOf(row)
		}) {
			list = append(list, row)
		}
	}
	return list
}

// callOf is the id of the call that a row is an attempt of.
func callOf(row *ledger.Row) string {
	return strings.TrimSuffix(row.ToolCallID.String(), fmt.Sprintf("#%d", row.Attempt))
}

// ended is how an attempt ended, in words.
func ended(row *ledger.Row) string {
	switch {
	case row.ExitCode != nil:
		return "exit code " + strconv.Itoa(*row.ExitCode)
	case row.Signal != "":
		return "signal " + string(row.Signal)
	}
	return row.Outcome
}

// maxOutput is what is looked at of an output for its numbers.
const maxOutput = 4 << 20

var (
	word   = late.Regexp(`\d+`)
	passed = late.Regexp(`(?i)\b(\d+) (?:tests? )?pass(?:ed|ing)\b|\bran (\d+) tests?\b|\btests?: +(\d+)\b`)
)

// counts holds the numbers of tests that a sentence tells against what the calls printed.
func (s *statement) counts(ran []*ledger.Row, content Content) (Mark, string) {
	if len(s.numbers) == 0 {
		return Supported, ""
	}
	said, others := map[string]bool{}, []string{}
	texts, unread, unkept := printed(ran, content)
	for _, text := range texts {
		for _, n := range word().FindAllString(text, -1) {
			said[n] = true
		}
		for _, m := range passed().FindAllStringSubmatch(text, -1) {
			others = append(others, m[1]+m[2]+m[3])
		}
	}
	for _, n := range s.numbers {
		switch {
		case said[n]:
		case unread != nil:
			return NotJudged, fmt.Sprintf("what %s printed cannot be read", unread.ToolCallID)
		case unkept != nil:
			return WithoutEvidence, fmt.Sprintf("what %s printed was not kept", unkept.ToolCallID)
		case len(others) > 0:
			return Contradicted, fmt.Sprintf("no such call printed %s; it printed %s", n, strings.Join(slices.Compact(others), ", "))
		default:
			return WithoutEvidence, fmt.Sprintf("no such call printed %s", n)
		}
	}
	return Supported, ""
}

// printed is what each of the calls printed, as far as it is looked at; unread and unkept are calls of which that is not known.
func printed(ran []*ledger.Row, content Content) (texts []string, unread, unkept *ledger.Row) {
	for _, row := range ran {
		if row.Payloads != "" {
			unkept = row
			continue
		}
		var both strings.Builder
		for _, hash := range []ledger.OrNull{row.OutputHash, row.StderrHash} {
			if hash == "" {
				continue
			}
			text, err := content(string(hash))
			if err != nil {
				unread = row
				continue
			}
			both.Write(text[:min(len(text), maxOutput)])
			both.WriteByte('\n')
		}
		texts = append(texts, both.String())
	}
	return texts, unread, unkept
}

// scripted tells whether the script of a shell came with the arguments of the call: one that stands in the catalog was
// written by its author, and does what he meant.
func scripted(row *ledger.Row, content Content) bool {
	text, err := content(row.InputHash)
	var args any
	if err != nil || json.Unmarshal(text, &args) != nil {
		return true
	}
	script, _, known := scriptOf(row)
	return !known || slices.ContainsFunc(leaves(args), func(s string) bool { return masks(s, "") && strings.Contains(script, s) })
}

// leaves are the strings in a JSON value.
func leaves(v any) (list []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			list = append(list, leaves(e)...)
		}
	case map[string]any:
		for _, e := range v {
			list = append(list, leaves(e)...)
		}
	}
	return list
}
