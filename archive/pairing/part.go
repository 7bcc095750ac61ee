package pairing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"toolrun/archive/internal/late"
	"toolrun/archive/ledger"
)

// A loop of one's own may keep the beginning of an answer, its end, or both with a mark of truncation between them: of the
// text, of the facts as JSON, or of a stream alone. What it kept is held against the answer as the row and the store make it,
// from the beginning on and from the end back; only a mark may remain between the two.

// enough is how many bytes of an answer, or of a stream, are evidence that it was cut from there.
const enough = 40

// part tells whether text is a cut of an answer.
func (e *expected) part(text string) bool {
	if e.missing != "" {
		return e.ends(text)
	}
	kept := []string{text}
	for _, part := range []*regexp.Regexp{processSection(), processFact()} {
		if of := part.FindStringSubmatchIndex(text); of != nil {
			kept = append(kept, text[:of[2]]+text[of[3]:])
		}
	}
	for _, k := range kept {
		for _, a := range e.answers(k) {
			if e.cutFrom(k, a) {
				return true
			}
		}
	}
	return false
}

// ends tells whether a text whose streams cannot be compared begins with the verdict, and ends with no other.
func (e *expected) ends(text string) bool {
	rest, ok := strings.CutPrefix(text, e.verdict()+"\n")
	last := rest[strings.LastIndexByte(rest, '\n')+1:]
	return ok && (!looksOurs(last) || last == e.verdict())
}

// How it stands with a program that stays open, which no row has, in a text and in the facts.
var (
	processSection = late.Regexp(`\n(--- program [^\n]* ---\n)[^\n]*$`)
	processFact    = late.Regexp(`(,\s*"process":\s*\{[^{}]*\}?)\s*\}?$`)
)

// cutFrom tells whether kept is a beginning of a, an end of it, or both with a mark of truncation between.
func (e *expected) cutFrom(kept string, a answerForm) bool {
	from, to := a.start(kept, a.pieces), len(kept)-a.end(kept, a.pieces)
	if from == len(kept) || to == 0 {
		return len(kept) >= enough || kept == e.verdict()
	}
	from = min(from, to) // where both reach over the mark, it is of what the answer has there too
	for from > 0 && !utf8.RuneStart(kept[from]) {
		from--
	}
	for to < len(kept) && !utf8.RuneStart(kept[to]) {
		to++
	}
	if between := kept[from:to]; between == "\uFFFD" && (from == 0 || to == len(kept)) { // the cut was in the middle of a character
		return len(kept) >= enough
	}
	for back := range 3 {
		for on := range 3 { // as may a letter or two of it be
			i, ok1 := lettersBack(kept, from, back)
			j, ok2 := lettersOn(kept, to, on)
			if !ok1 || !ok2 {
				continue
			}
			i = len(strings.TrimRight(kept[:i], markBytes))
			j = len(kept) - len(strings.TrimLeft(kept[j:], markBytes))
			head, tail := kept[:max(i, from-10)], kept[min(j, to+10):]
			if (len(head)+len(tail) >= enough || head == e.verdict() || tail == e.verdict()) && isMark(kept[len(head):len(kept)-len(tail)]) {
				return true
			}
		}
	}
	return false
}

func lettersBack(text string, at, n int) (int, bool) {
	return at - n, n <= at && onlyLetters(text[at-n:at])
}

func lettersOn(text string, at, n int) (int, bool) {
	return at + n, at+n <= len(text) && onlyLetters(text[at:at+n])
}

func onlyLetters(text string) bool {
	return strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// markBytes may stand around the words of a mark of truncation.
const markBytes = " \n\t.[](){}<>*-=~"

var (
	mark    = late.Regexp(`(?i)^[\s\x{FFFD}.…\[\](){}<>*=~-]*(?:(?:\d[\d,]*|truncated|truncation|omitted|cut|clipped|elided|snip|snipped|left|out|off|output|text|content|result|response|characters?|chars?|bytes?|lines?|tokens?|more|of|at|to|for|total|length|limit|here|was|were|the|due)\b[\s\x{FFFD}.…,:\[\](){}<>*=~-]*)*$`)
	says    = late.Regexp(`(?i)\.\.\.|…|\b(?:truncated|truncation|omitted|elided)\b|[\[(<{].*\b(?:cut|clipped|snip|snipped|left out|more)\b`)
	hasWord = late.Regexp(`(?i)[a-z]`)
	hasSum  = late.Regexp(`\d`)
)

// isMark tells whether text says that something was left out, and nothing else.
func isMark(text string) bool {
	return len(text) <= 100 && mark().MatchString(text) && says().MatchString(text) && (hasWord().MatchString(text) || !hasSum().MatchString(text))
}

// answerForm is an answer in one spelling.
type answerForm struct {
	pieces  []piece
	quote   func(string) string
	unquote func(string) (string, bool)
}

// piece is a literal, or what is shown of a stream.
type piece struct {
	literal string
	stream  *preview
}

// preview is how much is shown of a stream.
type preview struct {
	text  string
	left  int64 // bytes left out; unknown where the text tells no number
	lossy bool
	exact bool // the bytes shown and those left out are those of text
}

const unknownLeft = -1

// spelled is what may stand for a piece; nothing is known of what follows it where it is open.
type spelled struct {
	text string
	open bool
}

// start is how much of kept is a beginning of the pieces.
func (a answerForm) start(kept string, pieces []piece) (best int) {
	if kept == "" || len(pieces) == 0 {
		return 0
	}
	for _, s := range a.fromStart(kept, pieces[0]) {
		n := commonStart(kept, s.text)
		if n == len(s.text) && !s.open {
			n += a.start(kept[n:], pieces[1:])
		}
		best = max(best, n)
	}
	return best
}

// end is how much of kept is an end of the pieces.
func (a answerForm) end(kept string, pieces []piece) (best int) {
	if kept == "" || len(pieces) == 0 {
		return 0
	}
	last := len(pieces) - 1
	for _, s := range a.fromEnd(kept, pieces[last]) {
		n := commonEnd(kept, s.text)
		if n == len(s.text) && !s.open {
			n += a.end(kept[:len(kept)-n], pieces[:last])
		}
		best = max(best, n)
	}
	return best
}

func (a answerForm) fromStart(kept string, p piece) []spelled {
	s := p.stream
	switch {
	case s == nil:
		return []spelled{{text: p.literal}}
	case s.left == 0 && len(s.text) <= len(kept):
		return []spelled{{text: a.quote(s.text)}}
	}
	shown := a.quote(s.text[:min(len(kept), len(s.text)-max(0, int(s.left)))])
	list := []spelled{{shown, true}}
	if s.left == 0 {
		return list
	}
	left := a.quote(leftOut(s.left))
	at := strings.Index(kept, left)
	if s.left == unknownLeft || at < 0 { // the cut may be in the middle of the line that says what was left out
		n, line := commonStart(kept, shown), a.quote("\n")
		begun := strings.TrimSuffix(kept[:n], line)
		for _, before := range []string{kept[:n], begun, kept[:n] + line} {
			list = append(list, spelled{before + left, true})
		}
		return list
	}
	head, ok := a.unquote(kept[:at])
	if !ok {
		return list
	}
	if line := strings.TrimSuffix(head, "\n"); !strings.HasPrefix(s.text, head) {
		head = line
	}
	return append(list, a.around(s, len(head), len(s.text)-len(head)-int(s.left), true)...)
}

func (a answerForm) fromEnd(kept string, p piece) []spelled {
	s := p.stream
	switch {
	case s == nil:
		return []spelled{{text: p.literal}}
	case s.left == 0 && len(s.text) <= len(kept):
		return []spelled{{text: a.quote(s.text)}}
	}
	shown := a.quote(s.text[len(s.text)-min(len(kept), len(s.text)-max(0, int(s.left))):])
	list := []spelled{{shown, true}}
	if s.left == 0 {
		return list
	}
	left := a.quote(leftOut(s.left))
	at := strings.LastIndex(kept, left)
	if s.left == unknownLeft || at < 0 { // the cut may be in the middle of the line that says what was left out
		n := commonEnd(kept, shown)
		tail := kept[len(kept)-n:]
		if s.left == unknownLeft {
			left = a.quote(leftOutBehind)
		}
		for _, behind := range []string{tail, strings.TrimPrefix(tail, a.quote("\n"))} {
			list = append(list, spelled{left + behind, true})
		}
		return list
	}
	tail, ok := a.unquote(kept[at+len(left):])
	if !ok {
		return list
	}
	return append(list, a.around(s, len(s.text)-len(tail)-int(s.left), len(tail), false)...)
}

// around spells a preview of this much of the head and of the tail; where the bytes left out are those of other bytes than the
// text has, it is only that side of the mark from which it is read.
func (a answerForm) around(s *preview, head, tail int, fromStart bool) []spelled {
	if !s.exact && fromStart {
		tail = 0
	} else if !s.exact {
		head = 0
	}
	if head < 0 || tail < 0 || head > len(s.text) || tail > len(s.text) {
		return nil
	}
	text := s.text[:head]
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return []spelled{{a.quote(text + leftOut(s.left) + s.text[len(s.text)-tail:]), !s.exact}}
}

// leftOut is the line that says how many bytes were left out, as far as it is known.
func leftOut(n int64) string {
	if n == unknownLeft {
		return leftOutBefore
	}
	return leftOutBefore + strconv.FormatInt(n, 10) + leftOutBehind
}

// commonStart is how many bytes two texts have in common at their beginning.
func commonStart(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// commonEnd is how many they have in common at their end.
func commonEnd(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// answers are the forms of which kept may be a cut.
func (e *expected) answers(kept string) (list []answerForm) {
	same := func(s string) string { return s }
	as := func(s string) (string, bool) { return s, true }
	if e.row.Status == ledger.StatusBlocked {
		return []answerForm{{[]piece{{literal: "REFUSED: " + textOf(e.row.ErrorMessage)}}, same, as}}
	}
	stdout, stderr := e.previews(e.row.OutputHash, kept), e.previews(e.row.StderrHash, kept)
	for _, stream := range [][]*preview{stdout, stderr} {
		for _, s := range stream {
			trimmed := *s
			trimmed.text = strings.TrimSpace(s.text)
			for _, one := range []*preview{s, &trimmed} {
				if one.text != "" {
					list = append(list, answerForm{[]piece{{stream: one}}, same, as})
				}
			}
		}
	}
	for _, o := range stdout {
		for _, r := range stderr {
			list = append(list, answerForm{e.textPieces(o, r), same, as})
			for _, s := range spellings {
				list = append(list, answerForm{e.factPieces(o, r, s), s.quote, unquote})
			}
		}
	}
	return list
}

var tellsLeftOut = late.Regexp(`(\d{1,15}) of them left out below|(\d{1,15}) bytes left out|\[toolrun: (\d{1,15})`)

// previews are how a stream may have been shown: whole, or with as many bytes left out as kept says.
func (e *expected) previews(hash ledger.OrNull, kept string) (list []*preview) {
	content, ok := e.stored(hash)
	if !ok {
		return nil
	}
	lossy := !utf8.Valid(content)
	whole := &preview{text: string(bytes.ToValidUTF8(content, []byte("\uFFFD"))), lossy: lossy, exact: !lossy && !e.bare && !e.row.Truncated}
	list = append(list, whole)
	var lefts []int64
	if !strings.Contains(kept, " bytes left out]") {
		lefts = append(lefts, unknownLeft)
	}
	for _, m := range tellsLeftOut().FindAllStringSubmatch(kept, 8) {
		if n, err := strconv.ParseInt(m[1]+m[2]+m[3], 10, 64); err == nil && !slices.Contains(lefts, n) && n > 0 && (!whole.exact || n <= int64(len(content))) {
			lefts = append(lefts, n)
		}
	}
	for _, n := range lefts {
		for _, l := range slices.Compact([]bool{lossy, false}) {
			one := *whole
			one.left, one.lossy = n, l
			if int64(len(one.text)) > n && len(one.text) > 0 {
				list = append(list, &one)
			}
		}
	}
	return list
}

// textPieces is an answer as a model reads it.
func (e *expected) textPieces(stdout, stderr *preview) []piece {
	list := []piece{{literal: e.verdict() + "\n"}}
	section := func(name string, s *preview, written int64, hashName string, hash ledger.OrNull) {
		if written == 0 && s.text == "" {
			return
		}
		head := fmt.Sprintf("--- %s, %d bytes", name, written)
		if s.left > 0 {
			head += fmt.Sprintf(", %d of them left out below; %s %s", s.left, hashName, string(hash))
		}
		if s.lossy {
			head += ", not all of it UTF-8"
		}
		list = append(list, piece{literal: head + " ---\n"}, piece{stream: s})
		if !strings.HasSuffix(s.text, "\n") {
			list = append(list, piece{literal: "\n"})
		}
	}
	section("stdout", stdout, e.row.OutputBytes, "output_hash", e.row.OutputHash)
	section("stderr", stderr, e.row.StderrBytes, "stderr_hash", e.row.StderrHash)
	if e.row.OutputBytes+e.row.StderrBytes == 0 {
		list = append(list, piece{literal: "(no output)\n"})
	}
	return append(list, piece{literal: e.verdict()})
}

// factPieces is an answer as data.
func (e *expected) factPieces(stdout, stderr *preview, s spelling) []piece {
	row := e.row
	text := func(v string) string { return `"` + s.quote(v) + `"` }
	orNull := func(v ledger.OrNull) string {
		if v == "" {
			return "null"
		}
		return text(string(v))
	}
	var list []piece
	b := strings.Builder{}
	b.WriteString(s.open)
	key := func(name, value string) {
		if name != "status" {
			b.WriteString(s.comma)
		}
		b.WriteString(`"` + name + `"` + s.colon + value)
	}
	stream := func(name string, p *preview) {
		key(name, `"`)
		list = append(list, piece{literal: b.String()}, piece{stream: p})
		b.Reset()
		b.WriteString(`"`)
	}
	key("status", text(row.Status))
	key("outcome", text(row.Outcome))
	key("exit_code", number(row.ExitCode))
	key("signal", orNull(row.Signal))
	stream("stdout", stdout)
	stream("stderr", stderr)
	key("stdout_bytes", fmt.Sprint(row.OutputBytes))
	key("stderr_bytes", fmt.Sprint(row.StderrBytes))
	if stdout.lossy {
		key("stdout_lossy", "true")
	}
	if stderr.lossy {
		key("stderr_lossy", "true")
	}
	key("truncated", fmt.Sprint(row.Truncated || stdout.left != 0 || stderr.left != 0))
	key("duration_ms", fmt.Sprint(row.DurationMS))
	key("output_hash", orNull(row.OutputHash))
	key("stderr_hash", orNull(row.StderrHash))
	key("tool_call_id", text(row.ToolCallID.String()))
	key("run_id", text(row.RunID))
	key("seq", fmt.Sprint(row.Seq))
	key("catalog_sha256", text(row.CatalogSHA256))
	b.WriteString(s.close)
	return append(list, piece{literal: b.String()})
}

// spelling is how a program writes JSON.
type spelling struct {
	open, comma, colon, close string
	ascii                     bool
}

// spellings are those of toolrun and JavaScript, and of Python, which by default writes what is not ASCII as escapes.
var spellings = []spelling{
	{"{", ",", ":", "}", false},
	{"{", ", ", ": ", "}", true},
	{"{", ", ", ": ", "}", false},
	{"{", ",", ":", "}", true},
	{"{\n  ", ",\n  ", ": ", "\n}", false},
	{"{\n  ", ",\n  ", ": ", "\n}", true},
}

var escapes = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

// quote writes what stands between the quotes.
func (s spelling) quote(text string) string {
	var b strings.Builder
	for _, r := range text {
		short, ok := escapes[r]
		switch {
		case ok:
			b.WriteString(short)
		case r < ' ' || s.ascii && r > '~' && r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		case s.ascii && r > '~':
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unquote(text string) (s string, ok bool) {
	return s, json.Unmarshal([]byte(`"`+text+`"`), &s) == nil
}
