package transcript

import (
	"encoding/json"
	"strings"

	"toolrun/archive/internal/late"
)

// What clients put around the text of a server, and what they leave of a long one. Each was measured with the version that
// its reader names.

// claudeView: over 50,000 characters a result goes to a file, and its beginning is shown.
func claudeView(text string) View {
	if m := claudePersisted().FindStringSubmatch(text); m != nil {
		return View{Text: m[1], Cut: true}
	}
	if strings.HasPrefix(text, "Error: result (") && strings.Contains(text, "exceeds maximum allowed tokens") {
		return View{Cut: true, Text: ""}
	}
	return View{Text: text}
}

var claudePersisted = late.Regexp(`(?s)^<persisted-output>\n.*?Preview \(first [^)]*\):\n(.*?)(?:\n\.\.\.)?\n</persisted-output>$`)

// codexView: "Wall time" stands before the text; over some 12,000 characters only its two ends are kept.
func codexView(text string) View {
	if rest := codexHead().FindStringIndex(text); rest != nil {
		text = text[rest[1]:]
	}
	if m := codexCut().FindStringSubmatchIndex(text); m != nil {
		head, tail := text[:m[0]], text[m[1]:]
		if line := codexTotal().FindStringIndex(head); line != nil {
			head = head[line[1]:]
		}
		return View{Text: head, Cut: true, Tail: tail}
	}
	return View{Text: text}
}

var (
	codexHead  = late.Regexp(`^Wall time: [0-9.]+ seconds\nOutput:\n`)
	codexTotal = late.Regexp(`^(Warning: truncated output \(original token count: \d+\)\n)?Total output lines: \d+\n\n`)
	codexCut   = late.Regexp(`…\d+ (tokens|chars) truncated…`)
)

// geminiView: the text of a server is marked as untrusted; over 40,000 characters the middle is left out.
func geminiView(text string) View {
	large := false
	if m := geminiLarge().FindStringIndex(text); m != nil {
		text, large = text[m[1]:], true
	}
	if inner, ok := strings.CutPrefix(text, "<untrusted_context>\n"); ok {
		text = strings.TrimSuffix(inner, "\n</untrusted_context>")
	}
	if m := geminiCut().FindStringIndex(text); m != nil && large {
		return View{Text: text[:m[0]], Cut: true, Tail: text[m[1]:]}
	}
	return View{Text: text}
}

var (
	geminiLarge = late.Regexp(`^Output too large\. Showing first [\d,]+ and last [\d,]+ characters\. For full output see: [^\n]*\n`)
	geminiCut   = late.Regexp(`\n\n\.\.\. \[[\d,]+ characters omitted\] \.\.\.\n\n`)
)

// qwenViews: structuredContent on a line of its own, and then the text.
func qwenViews(text string) []View {
	text, cut := qwenCut(text)
	dec := json.NewDecoder(strings.NewReader(text))
	var facts json.RawMessage
	if strings.HasPrefix(text, "{") && dec.Decode(&facts) == nil {
		rest := text[dec.InputOffset():]
		if rest == "" {
			return []View{{Text: text, Cut: cut}}
		}
		if after, ok := strings.CutPrefix(rest, "\n"); ok {
			return []View{{Text: string(facts)}, {Text: after, Cut: cut}}
		}
	}
	return []View{{Text: text, Cut: cut}}
}

// qwenCut: over 30,000 characters a result goes to a file, and its beginning is shown.
func qwenCut(text string) (string, bool) {
	if m := qwenPersisted().FindStringSubmatch(text); m != nil {
		return m[1], true
	}
	return text, false
}

var qwenPersisted = late.Regexp(`(?s)^<persisted-output>\n.*?Preview[^\n]*:\n(.*?)(?:\n\.\.\.)?\n</persisted-output>$`)

// openCodeView: over 50 KB a result goes to a file, and its beginning is shown.
func openCodeView(text string, truncated bool) View {
	if m := openCodeCut().FindStringIndex(text); m != nil && truncated {
		return View{Text: text[:m[0]], Cut: true}
	}
	return View{Text: text}
}

var openCodeCut = late.Regexp(`\n\n\.\.\.\d+ (bytes|lines) truncated\.\.\.\n\n`)

// recordView: of a long result Codex keeps, as the text of a record, the two ends of the whole result as JSON.
func recordView(text string) View {
	inner, ok := strings.CutPrefix(text, recordHead)
	m := codexCut().FindStringIndex(inner)
	if !ok || m == nil {
		return View{Text: text}
	}
	for cut := 0; cut < 12 && cut <= m[0]; cut++ { // an escape may be cut
		var head string
		if json.Unmarshal([]byte(`"`+inner[:m[0]-cut]+`"`), &head) == nil {
			return View{Text: head, Cut: true}
		}
	}
	return View{Text: "", Cut: true}
}

const recordHead = `{"content":[{"type":"text","text":"`
