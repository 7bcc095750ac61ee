package transcript

import (
	"encoding/json"
	"regexp"
	"strings"
)

// What clients put around the text of a server, and what they leave of a long one. Each was measured with the version that
// its reader names.

// claudeView: over 50,000 characters a result goes to a file, and its beginning is shown.
func claudeView(text string) View {
	if m := claudePersisted.FindStringSubmatch(text); m != nil {
		return View{Text: m[1], Cut: true}
	}
	if strings.HasPrefix(text, "Error: result (") && strings.Contains(text, "exceeds maximum allowed tokens") {
		return View{Cut: true, Text: ""}
	}
	return View{Text: text}
}

var claudePersisted = regexp.MustCompile(`(?s)^<persisted-output>\n.*?Preview \(first [^)]*\):\n(.*?)(?:\n\.\.\.)?\n</persisted-output>$`)

// codexView: "Wall time" stands before the text; over some 12,000 characters only its two ends are kept.
func codexView(text string) View {
	if rest := codexHead.FindStringIndex(text); rest != nil {
		text = text[rest[1]:]
	}
	if m := codexCut.FindStringSubmatchIndex(text); m != nil {
		head, tail := text[:m[0]], text[m[1]:]
		if line := codexTotal.FindStringIndex(head); line != nil {
			head = head[line[1]:]
		}
		return View{Text: head, Cut: true, Tail: tail}
	}
	return View{Text: text}
}

var (
	codexHead  = regexp.MustCompile(`^Wall time: [0-9.]+ seconds\nOutput:\n`)
	codexTotal = regexp.MustCompile(`^(Warning: truncated output \(original token count: \d+\)\n)?Total output lines: \d+\n\n`)
	codexCut   = regexp.MustCompile(`…\d+ (tokens|chars) truncated…`)
)

// geminiView: the text of a server is marked as untrusted; over 40,000 characters the middle is left out.
func geminiView(text string) View {
	if inner, ok := strings.CutPrefix(text, "<untrusted_context>\n"); ok {
		text = strings.TrimSuffix(inner, "\n</untrusted_context>")
	}
	if m := geminiCut.FindStringSubmatchIndex(text); m != nil {
		return View{Text: text[m[2]:m[3]], Cut: true, Tail: text[m[4]:m[5]]}
	}
	return View{Text: text}
}

var geminiCut = regexp.MustCompile(`(?s)^Output too large\. Showing first [\d,]+ and last [\d,]+ characters\. For full output see: [^\n]*\n(.*)\n\n\.\.\. \[[\d,]+ characters omitted\] \.\.\.\n\n(.*)$`)

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
	if m := qwenPersisted.FindStringSubmatch(text); m != nil {
		return m[1], true
	}
	return text, false
}

var qwenPersisted = regexp.MustCompile(`(?s)^<persisted-output>\n.*?Preview[^\n]*:\n(.*?)(?:\n\.\.\.)?\n</persisted-output>$`)

// openCodeView: over 50 KB a result goes to a file, and an end of it is shown.
func openCodeView(text string, truncated bool) View {
	if !truncated {
		return View{Text: text}
	}
	if i := strings.Index(text, "\n\n..."); i >= 0 {
		return View{Text: text[:i], Cut: true}
	}
	return View{Text: text, Cut: true}
}
