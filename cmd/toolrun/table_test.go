package main

import (
	"strings"
	"testing"
	"time"
)

func TestColumnsLineUpByWidthAndNotByBytes(t *testing.T) {
	tab := table{columns: []column{{title: "tool"}, {title: "took", right: true}, {title: "ending"}}}
	tab.text("日本", "5ms", "ok")
	tab.text("naïve\x1b[2J", "1.4s", "exit 1")
	var b strings.Builder
	if err := tab.print(&b, screen{}); err != nil {
		t.Fatal(err)
	}
	want := "tool          took  ending\n" +
		"日本           5ms  ok\n" +
		"naïve\\x1b[2J  1.4s  exit 1\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestOnlyATerminalGetsColourAndACut(t *testing.T) {
	tab := table{columns: []column{{title: "id"}, {title: "text", gives: true}}}
	tab.add(cell{"1", green}, cell{"a long text that a narrow terminal has no room for", plain})
	var pipe, terminal strings.Builder
	tab.print(&pipe, screen{})
	tab.print(&terminal, screen{terminal: true, colours: true, columns: 24})
	if strings.Contains(pipe.String(), "\x1b") || !strings.Contains(pipe.String(), "no room for") {
		t.Errorf("in a pipe: %q", pipe.String())
	}
	if want := "\x1b[32m1 \x1b[0m  a long text that a …\n"; !strings.HasSuffix(terminal.String(), want) {
		t.Errorf("on a terminal: %q, want the end %q", terminal.String(), want)
	}
}

func TestDurationsAndSizesAsPeopleWriteThem(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ms", 999 * time.Millisecond: "999ms", 1400 * time.Millisecond: "1.4s", 59999 * time.Millisecond: "59.9s",
		125 * time.Second: "2m05s", 3*time.Hour + 12*time.Minute: "3h12m",
	} {
		if got := duration(d); got != want {
			t.Errorf("duration(%v) = %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 588895: "575 KiB", 1 << 30: "1.0 GiB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
}
