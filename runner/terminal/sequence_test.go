package terminal

import (
	"bytes"
	"strings"
	"testing"
)

func TestASequenceThatHasNotEndedIsNotShown(t *testing.T) {
	title := "\x1b]0;" + strings.Repeat("t", 200)
	for p, whole := range map[string]string{
		"text": "text", "a\x1b": "a", "a\x1b[": "a", "a\x1b[31": "a", "a\x1b[31m": "a\x1b[31m", "a\x1b[31mb\x1b[": "a\x1b[31mb",
		"a" + title: "a", "a" + title + "\a": "a" + title + "\a", "a" + title + "\x1b": "a", "a" + title + "\x1b\\b": "a" + title + "\x1b\\b",
		"a\x1b(": "a", "a\x1b(B": "a\x1b(B", "a\x1bMb": "a\x1bMb", "a\x1b\x1b[1": "a\x1b", "a\x1b[3\x1b[1mb": "a\x1b[3\x1b[1mb",
		"a\x1b]" + strings.Repeat("no end ", 1000): "a\x1b]" + strings.Repeat("no end ", 1000),
	} {
		if got := p[:Whole([]byte(p))]; got != whole {
			t.Errorf("%.40q: %.40q, want %.40q", p, got, whole)
		}
	}
}

func TestTextIsWhatWasWritten(t *testing.T) {
	for p, want := range map[string]string{
		"a\r\nb\r\n": "a\nb\n", "\x1b[1mready>\x1b[0m ": "ready> ", "re\x1b[31md": "red", "\x1b]0;title\aok": "ok", "p 1%\rp 2%": "p 1%\rp 2%", "cut\x1b[3": "cut",
	} {
		if got := string(Text([]byte(p))); got != want {
			t.Errorf("%q: %q, want %q", p, got, want)
		}
	}
}

// FuzzSequence: what is whole in parts is whole together, and no sequence is empty.
func FuzzSequence(f *testing.F) {
	for _, s := range []string{"a\x1b[31mb", "\x1b]0;t\x1b\\", "\x1b\x1b[", "\x1bP", "\x1b( B"} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, p []byte, cut int) {
		if cut < 0 || cut > len(p) {
			return
		}
		first := Whole(p[:cut])
		if got := append(Text(p[:first]), Text(p[first:])...); len(p) < maxSequence && !bytes.Contains(p, []byte("\r")) && !bytes.Equal(got, Text(p)) {
			t.Errorf("%q cut at %d: %q, want %q", p, first, got, Text(p))
		}
	})
}
