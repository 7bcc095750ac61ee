package pairing

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"toolrun/archive/internal/late"
	"toolrun/archive/ledger"
	"toolrun/archive/transcript"
)

type agreementKind int

const (
	agrees       agreementKind = iota
	agreesInPart               // a part of the answer, which can be told to be of it
	inPart                     // what there is agrees
	differs
)

type agreement struct {
	kind agreementKind
	why  string
}

// held tells whether the result is known to be of the row's answer.
func (a agreement) held() bool { return a.kind == agrees || a.kind == agreesInPart }

// facts are those that a result carries as data (structuredContent).
type facts struct {
	Status        string        `json:"status"`
	Outcome       string        `json:"outcome"`
	ExitCode      *int          `json:"exit_code"`
	Signal        ledger.OrNull `json:"signal"`
	Message       string        `json:"message"`
	Stdout        string        `json:"stdout"`
	Stderr        string        `json:"stderr"`
	StdoutBytes   int64         `json:"stdout_bytes"`
	StderrBytes   int64         `json:"stderr_bytes"`
	DurationMS    int64         `json:"duration_ms"`
	OutputHash    ledger.OrNull `json:"output_hash"`
	StderrHash    ledger.OrNull `json:"stderr_hash"`
	ToolCallID    ledger.OrNull `json:"tool_call_id"`
	RunID         ledger.OrNull `json:"run_id"`
	Seq           *int64        `json:"seq"`
	CatalogSHA256 ledger.OrNull `json:"catalog_sha256"`

	StdoutLossy any `json:"stdout_lossy"`
	StderrLossy any `json:"stderr_lossy"`
	Truncated   any `json:"truncated"`
	Process     any `json:"process"`

	alien bool // there are other keys
}

// factsOf reads facts; nil where the text is something else.
func factsOf(text string) *facts {
	if !strings.HasPrefix(text, "{") || !strings.Contains(text, `"output_hash"`) || !strings.Contains(text, `"outcome"`) {
		return nil
	}
	f := &facts{}
	if json.Unmarshal([]byte(text), f) != nil {
		return nil
	}
	strict := json.NewDecoder(strings.NewReader(text))
	strict.DisallowUnknownFields()
	f.alien = strict.Decode(&facts{}) != nil
	return f
}

// looksOurs tells whether toolrun may have answered so.
func looksOurs(text string) bool {
	for _, verdict := range []string{"OK: ", "FAILED: ", "REFUSED: ", "ERROR: ", `{"status":"`} {
		if strings.HasPrefix(text, verdict) {
			return true
		}
	}
	return factsOf(text) != nil
}

// agree holds a result against a row. wrapped: the client shows the model what the server said; else a loop of one's own
// may have taken only a part.
func agree(r *transcript.Result, row *ledger.Row, content func(string) ([]byte, error), wrapped bool) agreement {
	if r == nil {
		return agreement{inPart, "no result in the transcript"}
	}
	e := &expected{row: row, content: content}
	ours, alien, cut, part := 0, 0, false, false
	for _, v := range r.Views {
		cut = cut || v.Cut
		known := looksOurs(v.Text) || v.Text == "" && v.Cut
		why := ""
		if known {
			why = e.view(v, r.Views)
		}
		switch {
		case known && why == "", !known && !wrapped && e.plain(v.Text):
			ours++
		case !wrapped && !v.Cut && e.either(func(e *expected) bool { return e.part(v.Text) }):
			ours++
			part = true
		case known:
			return agreement{differs, why}
		default:
			alien++
		}
	}
	switch {
	case alien > 0 && (ours > 0 || !byItself(r)):
		return agreement{differs, "the result is not what toolrun answered"}
	case alien > 0:
		return agreement{inPart, "the client answered by itself, whatever became of the call"}
	case e.missing != "":
		return agreement{inPart, e.missing}
	case part:
		return agreement{agreesInPart, "the agent kept a part of the result, which agrees"}
	case cut:
		return agreement{inPart, "the client kept a part of the result, which agrees"}
	case ours == 0:
		return agreement{inPart, "no result text in the transcript"}
	}
	return agreement{}
}

// expected is what a row and the store make.
type expected struct {
	row     *ledger.Row
	content func(string) ([]byte, error)
	missing string // why something could not be compared
	bare    bool   // the text without escape codes, as a terminal shows it
}

// escapeCodes are those of a terminal (ECMA-48), and what it makes of the end of a line.
var escapeCodes = late.Regexp(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-OQ-WYZ\\` + "`" + `-~]|\r\n`)

// withoutCodes gives what to compare of a text of the record.
func (e *expected) withoutCodes(text string) string {
	if !e.bare {
		return text
	}
	return escapeCodes().ReplaceAllStringFunc(text, func(code string) string {
		if code[0] == '\r' {
			return "\n"
		}
		return ""
	})
}

func (e *expected) verdict() string { return e.withoutCodes(e.row.Verdict()) }

// either asks for the text as it is, then without escape codes.
func (e *expected) either(agrees func(*expected) bool) bool {
	bare := *e
	bare.bare = true
	ok := agrees(e)
	if !ok && agrees(&bare) {
		e.missing = bare.missing
		return true
	}
	return ok
}

// stored gives the content of a stream; ok is false where it cannot be had.
func (e *expected) stored(hash ledger.OrNull) (b []byte, ok bool) {
	if hash == "" {
		return nil, true
	}
	if e.row.Payloads != "" {
		e.missing = "the run kept hashes only: the output was not compared"
		return nil, false
	}
	b, err := e.content(string(hash))
	if errors.Is(err, ErrNotDrawn) {
		e.missing = err.Error()
		return nil, false
	}
	if err != nil {
		e.missing = "the stored output cannot be read: it was not compared"
		return nil, false
	}
	return []byte(e.withoutCodes(string(b))), true
}

// view says in which way a view is not what the row makes; "" where it is.
func (e *expected) view(v transcript.View, all []transcript.View) (why string) {
	e.either(func(e *expected) bool {
		said := e.asKept(v, all)
		if why == "" || said == "" {
			why = said
		}
		return said == ""
	})
	return why
}

func (e *expected) asKept(v transcript.View, all []transcript.View) string {
	if f := factsOf(v.Text); f != nil {
		return e.facts(f)
	}
	if v.Cut {
		return e.cutView(v, all)
	}
	return e.text(v.Text)
}

// facts compares each fact.
func (e *expected) facts(f *facts) string {
	row := e.row
	if f.alien {
		return "the facts have a key that toolrun does not write"
	}
	for _, c := range []struct {
		name       string
		told, want any
	}{
		{"status", f.Status, row.Status}, {"outcome", f.Outcome, row.Outcome},
		{"exit_code", number(f.ExitCode), number(row.ExitCode)}, {"signal", f.Signal, row.Signal},
		{"stdout_bytes", f.StdoutBytes, row.OutputBytes}, {"stderr_bytes", f.StderrBytes, row.StderrBytes},
		{"duration_ms", f.DurationMS, row.DurationMS}, {"output_hash", f.OutputHash, row.OutputHash}, {"stderr_hash", f.StderrHash, row.StderrHash},
		{"tool_call_id", string(f.ToolCallID), row.ToolCallID.String()}, {"run_id", string(f.RunID), row.RunID},
		{"catalog_sha256", string(f.CatalogSHA256), row.CatalogSHA256},
	} {
		if c.told != c.want {
			return fmt.Sprintf("%s is %v in the transcript and %v in the row", c.name, c.told, c.want)
		}
	}
	for _, s := range []struct {
		name, shown string
		hash        ledger.OrNull
	}{{"stdout", f.Stdout, row.OutputHash}, {"stderr", f.Stderr, row.StderrHash}} {
		if content, ok := e.stored(s.hash); ok && !e.shows(s.shown, content) {
			return s.name + " is not what is stored"
		}
	}
	if row.Status == ledger.StatusBlocked && !e.explains(f.Message) {
		return "the message of the refusal is another"
	}
	return ""
}

func number(n *int) string {
	if n == nil {
		return "null"
	}
	return strconv.Itoa(*n)
}

// explains tells whether a refusal's message is that of the row, which has it on one line and perhaps cut.
func (e *expected) explains(message string) bool {
	said := strings.TrimSuffix(strings.Join(strings.Fields(textOf(e.row.ErrorMessage)), " "), "...")
	return said == "" || strings.HasPrefix(strings.Join(strings.Fields(message), " "), said)
}

// shows tells whether a preview is of this content: all of it, or its head, the mark and its tail.
func (e *expected) shows(shown string, content []byte) bool {
	whole := string(bytes.ToValidUTF8(content, []byte("\uFFFD")))
	if shown == whole {
		return true
	}
	for at := 0; ; {
		i := strings.Index(shown[at:], leftOutBefore)
		if i < 0 {
			return false
		}
		at += i
		rest := shown[at+len(leftOutBefore):]
		n, tail, ok := strings.Cut(rest, leftOutBehind)
		left, err := strconv.ParseInt(n, 10, 64)
		if ok && err == nil {
			for _, head := range []string{shown[:at], strings.TrimSuffix(shown[:at], "\n")} {
				fits := strings.HasPrefix(whole, head) && strings.HasSuffix(whole, tail)
				lossy := len(whole) != len(content) || !utf8.Valid(content) || e.bare
				if fits && (lossy || e.row.Truncated || int64(len(head)+len(tail))+left == int64(len(content))) {
					return true
				}
			}
		}
		at += len(leftOutBefore)
	}
}

// The line that stands where bytes were left out of a preview.
const (
	leftOutBefore = "[toolrun: "
	leftOutBehind = " bytes left out]\n"
)

// text compares an answer as a model reads it: the verdict, the streams, the verdict.
func (e *expected) text(text string) string {
	first, rest, _ := strings.Cut(text, "\n")
	if message, ok := strings.CutPrefix(text, "REFUSED: "); ok {
		if e.row.Status != ledger.StatusBlocked {
			return "the transcript has a refusal, and the row " + e.row.Status
		}
		if !e.explains(message) {
			return "the message of the refusal is another"
		}
		return ""
	}
	if strings.HasPrefix(text, "ERROR: ") {
		e.missing = "toolrun answered with an error of its own: the output was not compared"
		return ""
	}
	verdict := e.verdict()
	if first != verdict {
		return fmt.Sprintf("the verdict is %q in the transcript and %q by the row", first, verdict)
	}
	rest, ok := strings.CutSuffix(rest, verdict)
	if !ok {
		return "the result does not end with its verdict"
	}
	why := e.body(rest)
	if m := processLine().FindStringIndex(rest); m != nil && why != "" {
		return e.body(rest[:m[0]])
	}
	return why
}

// processLine is how it stands with a program that stays open, which no row has.
var processLine = late.Regexp(`--- program [^\n]* ---\n$`)

// body compares what stands between the verdicts.
func (e *expected) body(text string) string {
	if e.row.OutputBytes+e.row.StderrBytes == 0 && text == "(no output)\n" {
		return ""
	}
	return e.sections(text)
}

// headingRest is what may follow the length in the heading of a stream.
var headingRest = late.Regexp(`^(?:, \d+ of them left out below(?:; (?:output|stderr)_hash [0-9a-f]{64})?)?(?:, not all of it UTF-8)?$`)

// sections compares "--- stdout, N bytes … ---" and what follows.
func (e *expected) sections(rest string) string {
	row := e.row
	streams := []struct {
		name    string
		written int64
		hash    ledger.OrNull
	}{{"stdout", row.OutputBytes, row.OutputHash}, {"stderr", row.StderrBytes, row.StderrHash}}
	for i, s := range streams {
		head := fmt.Sprintf("--- %s, %d bytes", s.name, s.written)
		if !strings.HasPrefix(rest, head) {
			if s.written == 0 {
				continue
			}
			return s.name + " is missing, or its length is another"
		}
		line, body, _ := strings.Cut(rest[len(head):], " ---\n")
		if !headingRest().MatchString(line) {
			return s.name + " has no heading"
		}
		rest = ""
		if next := fmt.Sprintf("\n--- stderr, %d bytes", row.StderrBytes); i == 0 && row.StderrBytes > 0 {
			at := strings.LastIndex(body, next)
			if at < 0 {
				return "stderr is missing, or its length is another"
			}
			body, rest = body[:at+1], body[at+1:]
		}
		content, ok := e.stored(s.hash)
		if ok && !e.shows(body, content) && !e.shows(strings.TrimSuffix(body, "\n"), content) {
			return s.name + " is not what is stored"
		}
	}
	if rest != "" {
		return "the result has more than toolrun answered"
	}
	return ""
}

// plain tells whether a loop of one's own kept a stream, or a value of the facts, and nothing around it.
func (e *expected) plain(text string) bool {
	return e.either(func(e *expected) bool { return e.alone(text) })
}

func (e *expected) alone(text string) bool {
	text = strings.TrimRight(text, "\n")
	for _, hash := range []ledger.OrNull{e.row.OutputHash, e.row.StderrHash} {
		content, ok := e.stored(hash)
		if !ok || text == strings.TrimRight(string(bytes.ToValidUTF8(content, []byte("\uFFFD"))), "\n") || e.shows(text, content) || e.shows(text+"\n", content) {
			return true
		}
	}
	message := textOf(e.row.ErrorMessage)
	return message != "" && (text == message || e.row.Status == ledger.StatusBlocked && strings.HasPrefix(text, message))
}
