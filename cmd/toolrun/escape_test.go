package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNothingThatMovesACursorIsPrinted(t *testing.T) {
	for in, want := range map[string]string{
		"plain text, naïve, 日本":  "plain text, naïve, 日本",
		"\x1b]0;x\a\x1b[2J":      `\x1b]0;x\x07\x1b[2J`,
		"a\rb\nc\td":             `a\rb\nc\td`,
		"\x7f":                   `\x7f`,
		"\u0085\u009b31m":        `\u0085\u009b31m`,
		"abc\u202etxt.exe":       `abc\u202etxt.exe`,
		"a\u2028b\u2029c\u200bd": `a\u2028b\u2029c\u200bd`,
		"\xff\xfe":               `\xff\xfe`,
		"\U000e0041":             `\U000e0041`,
		"\ufffd":                 "\ufffd",
		`back\slash`:             `back\slash`,
	} {
		if got := escape(in); got != want {
			t.Errorf("escape(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestABlockKeepsItsLinesAndNothingElse(t *testing.T) {
	got := escapeBlock("a\tb\n\x1b[2Jabcdefgh\tc\r\n\n日\tx")
	want := "a       b\n\\x1b[2Jabcdefgh c\\r\n\n日      x"
	if got != want {
		t.Errorf("escapeBlock = %q, want %q", got, want)
	}
}

func TestEscapedJSONIsTheSameValue(t *testing.T) {
	in := "esc \x1b del \x7f c1 \u009b bidi \u202e tag \U000e0041 日 \u2028 \u200d"
	line, _ := json.Marshal(map[string]string{"s": in})
	out := escapeJSON(line)
	var back map[string]string
	if err := json.Unmarshal(out, &back); err != nil || back["s"] != in {
		t.Fatalf("escapeJSON(%s) = %s: reads as %q (%v)", line, out, back["s"], err)
	}
	if !printable(string(out)) {
		t.Errorf("escapeJSON left something unprintable in %q", out)
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a\x1b\u202e\xff\n")
	f.Fuzz(func(t *testing.T, s string) {
		for what, out := range map[string]string{"escape": escape(s), "escapeBlock": strings.ReplaceAll(escapeBlock(s), "\n", "")} {
			if !utf8.ValidString(out) {
				t.Errorf("%s(%q) is not UTF-8: %q", what, s, out)
			}
			for _, r := range out {
				if r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2060 && r <= 0x206f {
					t.Errorf("%s(%q) holds %U", what, s, r)
				}
			}
		}
	})
}
