package terminal

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
)

func TestPlainShowsWhatAPersonWouldHaveSeen(t *testing.T) {
	var spinner strings.Builder
	for i := 1; i <= 43; i++ {
		fmt.Fprintf(&spinner, "p %d%%\r", i)
	}
	for _, c := range []struct{ name, raw, want string }{
		{"nothing", "", ""},
		{"blank lines only", "\r\n\r\n  \r\n", ""},
		{"lines", "a\r\nb\r\n", "a\nb\n"},
		{"a bare newline goes down, not back", "a\nb", "a\n b\n"},
		{"spinner", "\x1b[?25lLo\rLoading\r\n" + spinner.String() + "\n\x1b]0;t\x07\x1b[0mdone\r\n", "Loading\np 43%\ndone\n"},
		{"colours", "\x1b[31mred\x1b[0m \x1b[1;38;2;1;2;3mbold\x1b[m\r\n", "red bold\n"},
		{"cursor up", "one\r\ntwo\r\n\x1b[2AONE\r\n\r\nthree\r\n", "ONE\ntwo\nthree\n"},
		{"backspace", "abx\b \bc\r\n", "abc\n"},
		{"erase to the end of line", "long line\r\x1b[Kshort\r\n", "short\n"},
		{"wide characters", "日本語 €\r\n", "日本語 €\n"},
		{"a question to the terminal", "\x1b[c\x1b[6nstill here\r\n", "still here\n"},
		{"the other screen", "before\r\n\x1b[?1049hvim\x1b[?1049lafter\r\n", "before\nafter\n"},
		{"a line longer than the screen", strings.Repeat("x", 100) + "\r\n", strings.Repeat("x", 80) + "\n" + strings.Repeat("x", 20) + "\n"},
		{"not UTF-8", "a\xff\xfeb\r\n", "a\ufffdb\n"},
		{"cut in a character", "euro \xe2\x82", "euro \ufffd\n"},
		{"cut in a sequence", "text\x1b[3", "text\n"},
	} {
		if got := Plain([]byte(c.raw), 24, 80); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestTheShortWayShowsWhatTheEmulatorShows(t *testing.T) {
	for _, raw := range []string{"", "a", "a\r\nb\r\n", "\r\n\r\na  \r\n\r\n", "  x ", strings.Repeat("y", 80) + "\r\nz\r\n", strings.Repeat("line\r\n", 60)} {
		short, ok := unmoved([]byte(raw), 80)
		if long := Plain([]byte("\x1b[m"+raw), 24, 80); !ok || short != long {
			t.Errorf("%q: %q, the emulator %q", raw, short, long)
		}
	}
	for _, raw := range []string{"a\nb", "a\rb", "\x1b[m", "€", "\t", strings.Repeat("y", 81)} {
		if _, ok := unmoved([]byte(raw), 80); ok {
			t.Errorf("%q is taken as text", raw)
		}
	}
}

func TestPlainKeepsWhatScrolledAway(t *testing.T) {
	var raw, want strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&raw, "line %d\r\n", i)
		fmt.Fprintf(&want, "line %d\n", i)
	}
	if got := Plain([]byte(raw.String()), 24, 80); got != want.String() {
		t.Errorf("%d bytes, want %d; it begins %.60q", len(got), want.Len(), got)
	}
	if got := Plain([]byte(strings.Repeat("\n", 3*chunk)+"x"), 24, 80); got != strings.Repeat("\n", 3*chunk)+"x\n" {
		t.Errorf("blank lines: %d bytes", len(got))
	}
}

// FuzzPlain: no bytes make it panic, hang, or let a control character through.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{"\x1b[?25lLo\rLoading\r\n", "\x1b[9999999999C\x1b[99999;99999H", "\x1b[1000000L", "\x1bP+q\x1b\\", "\x1b[6n\x1b[c", "\x9b31mx", "\x1b[3;5r\x1bM\x1bD", "\u202e"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		done := make(chan string, 1)
		go func() { done <- Plain(raw, 24, 80) }()
		select {
		case s := <-done:
			for _, r := range s {
				if unicode.IsControl(r) && r != '\n' && r != '\t' {
					t.Fatalf("%q lets %q through", raw, r)
				}
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%q: no end", raw)
		}
	})
}
