package pairing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"toolrun/archive/transcript"
)

// cutView compares a view of which the client left out a part: with a whole view, where it kept one too; else with what the
// row and the store make.
func (e *expected) cutView(v transcript.View, all []transcript.View) string {
	for _, whole := range all {
		if !whole.Cut && strings.HasPrefix(whole.Text, v.Text) && strings.HasSuffix(whole.Text, v.Tail) {
			return ""
		}
	}
	if strings.HasPrefix(v.Text, "{") {
		return e.cutFacts(v.Text)
	}
	first, rest, more := strings.Cut(v.Text, "\n")
	verdict := e.verdict()
	switch {
	case strings.HasPrefix(v.Text, "REFUSED: ") || strings.HasPrefix(v.Text, "ERROR: "):
		return e.text(v.Text)
	case !more && !strings.HasPrefix(verdict, first) || more && first != verdict:
		return fmt.Sprintf("the verdict is %q in the transcript and %q by the row", first, verdict)
	case v.Tail != "" && !strings.HasSuffix(v.Tail, verdict):
		return "the result does not end with its verdict"
	}
	name, hash, written := "stdout", e.row.OutputHash, e.row.OutputBytes
	if written == 0 {
		name, hash, written = "stderr", e.row.StderrHash, e.row.StderrBytes
	}
	body, ok := strings.CutPrefix(rest, fmt.Sprintf("--- %s, %d bytes", name, written))
	if !ok {
		if len(rest) > 64 {
			return name + " is missing, or its length is another"
		}
		return ""
	}
	if _, body, ok = strings.Cut(body, " ---\n"); !ok {
		return ""
	}
	if content, ok := e.stored(hash); ok && !begins(body, content) {
		return name + " is not what is stored"
	}
	return ""
}

// begins tells whether a cut body is the beginning of what is shown of content.
func begins(body string, content []byte) bool {
	body, _, _ = strings.Cut(body, leftOutBefore)
	body = strings.TrimSuffix(body, "\n")
	return strings.HasPrefix(string(bytes.ToValidUTF8(content, []byte("\uFFFD"))), body)
}

// cutFacts compares the facts that stand in front of the cut: those before stdout, and the beginning of it.
func (e *expected) cutFacts(text string) string {
	head, body, ok := strings.Cut(text, `"stdout":"`)
	var f facts
	if json.Unmarshal([]byte(strings.TrimSuffix(head, ",")+"}"), &f) != nil {
		e.missing = "the client kept too little of the result to compare"
		return ""
	}
	if f.Status != e.row.Status || f.Outcome != e.row.Outcome || number(f.ExitCode) != number(e.row.ExitCode) || f.Signal != e.row.Signal {
		return "status, outcome or exit code are not those of the row"
	}
	content, have := e.stored(e.row.OutputHash)
	if !ok || !have {
		return ""
	}
	for cut := 0; cut < 12 && cut <= len(body); cut++ { // an escape may be cut
		var shown string
		if json.Unmarshal([]byte(`"`+body[:len(body)-cut]+`"`), &shown) == nil {
			if !begins(shown, content) {
				return "stdout is not what is stored"
			}
			return ""
		}
	}
	e.missing = "the client kept too little of the result to compare"
	return ""
}
