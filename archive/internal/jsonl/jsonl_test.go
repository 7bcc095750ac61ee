package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// splitlines is Python's str.splitlines, which breaks at more than "\n".
func splitlines(s string) []string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	lines := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029", r) })
	return lines
}

func TestNoReaderTakesOneStringForTwoLines(t *testing.T) {
	all := ""
	for r := rune(0); r < 0x3000; r++ {
		all += string(r)
	}
	line := AppendString(nil, all)
	if n := len(splitlines(string(line))); n != 1 {
		t.Errorf("%d lines", n)
	}
	var back string
	if err := json.Unmarshal(line, &back); err != nil || back != all {
		t.Errorf("came back changed: %v", err)
	}
}

func TestValueFromElsewhereStaysOnItsLine(t *testing.T) {
	value := []byte("{\"a\":\r\n [1, \"x\u0085y\u2028z\u2029\u00e9\u20ac\"]}")
	line := AppendJSON(nil, value)
	if n := len(splitlines(string(line))); n != 1 {
		t.Errorf("%d lines: %s", n, line)
	}
	var a, b any
	if json.Unmarshal(value, &a) != nil || json.Unmarshal(line, &b) != nil || fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("another value: %s", line)
	}
	if got := AppendJSON(nil, nil); string(got) != "null" {
		t.Errorf("nothing became %s", got)
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "a", "\"\\\n\x00\x7f", "\xff\xfe", "\u0085\u2028\u2029", "\xe2\x80", "\xed\xa0\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		line := AppendString(nil, s)
		var back string
		if err := json.Unmarshal(line, &back); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if utf8.ValidString(s) && back != s {
			t.Errorf("%q came back as %q", s, back)
		}
		if !utf8.Valid(line) || len(splitlines(string(line))) != 1 {
			t.Errorf("%q is not one line of UTF-8", line)
		}
	})
}

func lines(t *testing.T, content string) (list []Line) {
	t.Helper()
	for line, err := range Lines(strings.NewReader(content)) {
		if err != nil {
			t.Fatal(err)
		}
		l := *line
		l.Text = bytes.Clone(line.Text)
		list = append(list, l)
	}
	return list
}

func TestLinesAreReadWithTheirPlaces(t *testing.T) {
	big := strings.Repeat("b", 300<<10)
	content := "one\n\ntwo\r\n" + big + "\n\x00\x00\ntorn"
	want := []Line{
		{No: 1, Offset: 0, Length: 4, Text: []byte("one")},
		{No: 2, Offset: 4, Length: 1},
		{No: 3, Offset: 5, Length: 5, Text: []byte("two")},
		{No: 4, Offset: 10, Length: int64(len(big)) + 1, Text: []byte(big)},
		{No: 5, Offset: int64(len(big)) + 11, Length: 3, Text: []byte("\x00\x00")},
		{No: 6, Offset: int64(len(big)) + 14, Length: 4, Text: []byte("torn"), Torn: true},
	}
	got := lines(t, content)
	if len(got) != len(want) {
		t.Fatalf("%d lines", len(got))
	}
	for i, g := range got {
		w := want[i]
		if g.No != w.No || g.Offset != w.Offset || g.Length != w.Length || !bytes.Equal(g.Text, w.Text) || g.Torn != w.Torn || g.Long {
			t.Errorf("line %d: %d %d %d %.20q %v", i, g.No, g.Offset, g.Length, g.Text, g.Torn)
		}
	}
	if got[1].Damaged() != errEmpty || got[4].Damaged() != errNUL || got[0].Damaged() != nil {
		t.Error("empty and NUL lines are damage")
	}
}

// endless is a file of one byte, over and over.
type endless struct{ c byte }

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.c
	}
	return len(p), nil
}

func TestLineOverTheBoundIsNotHeldInMemory(t *testing.T) {
	const size = 1 << 30
	allocated := testing.AllocsPerRun(1, func() {
		n := 0
		for line, err := range Lines(io.LimitReader(endless{'x'}, size)) {
			if n++; err != nil || !line.Long || len(line.Text) != 0 || line.Length != size || !errors.Is(line.Damaged(), ErrLong) {
				t.Fatalf("line %+v, %v", line, err)
			}
		}
		if n != 1 {
			t.Errorf("%d lines", n)
		}
	})
	if allocated > 200 {
		t.Errorf("%v allocations", allocated)
	}
	for _, over := range []int{0, 1} {
		text := strings.Repeat("x", MaxLineBytes+over)
		got := lines(t, text+"\nnext\n")
		if len(got) != 2 || got[0].Long != (over == 1) || string(got[1].Text) != "next" {
			t.Errorf("over by %d: long is %v", over, got[0].Long)
		}
	}
}

func TestTailsAreMovedAside(t *testing.T) {
	head := "{\"a\":1}\n"
	for name, c := range map[string]struct{ tail, after, kept string }{
		"nothing":             {"", "", ""},
		"torn":                {`{"seq":4,"to`, "", `"offset":8,"bytes":12,"nuls":0,"ts":"2026-11-30T18:05:12.123Z"}` + "\n" + `{"seq":4,"to` + "\n"},
		"NULs":                {strings.Repeat("\x00", 200_000), "", `"offset":8,"bytes":0,"nuls":200000,"ts":"2026-11-30T18:05:12.123Z"}` + "\n\n"},
		"torn and NULs":       {"{\"x\x00y\x00\x00", "", `"offset":8,"bytes":5,"nuls":2,"ts":"2026-11-30T18:05:12.123Z"}` + "\n{\"x\x00y\n"},
		"complete":            {"WHOLE", "WHOLE\n", ""},
		"larger than a piece": {strings.Repeat("y", 200_000), "", strings.Repeat("y", 200_000) + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "file.jsonl")
			if err := os.WriteFile(path, []byte(head+c.tail), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := OpenAppend(path, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			now := time.Date(2026, 11, 30, 18, 5, 12, 123456789, time.UTC)
			size, tail, err := Repair(dir, f, now, func(b []byte) bool { return string(b) == "WHOLE" })
			if err != nil {
				t.Fatal(err)
			}
			after, _ := os.ReadFile(path)
			if string(after) != head+c.after || size != int64(len(after)) {
				t.Errorf("file is %q of %d", after, size)
			}
			if (tail == nil) != (c.tail == "") {
				t.Errorf("tail %v", tail)
			}
			kept, _ := os.ReadFile(filepath.Join(dir, damagedName))
			if !strings.HasSuffix(string(kept), c.kept) || (c.kept == "") != (len(kept) == 0) {
				t.Errorf("kept %.200q", kept)
			}
		})
	}
}

// A disk that fills takes part of a write and fails the next.
func TestShortWriteIsUndone(t *testing.T) {
	dir := t.TempDir()
	f, err := OpenAppend(filepath.Join(dir, "f"), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Append(f, 0, []byte("first\n")); err != nil {
		t.Fatal(err)
	}
	real := Calls.Write
	defer func() { Calls.Write = real }()
	Calls.Write = func(fd int, p []byte) (int, error) { return real(fd, p[:3]) }
	if err := Append(f, 6, []byte("second\n")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("error %v", err)
	}
	Calls.Write = func(int, []byte) (int, error) { return -1, unix.ENOSPC }
	if err := Append(f, 6, []byte("second\n")); !errors.Is(err, ErrUnavailable) || !errors.Is(err, unix.ENOSPC) {
		t.Errorf("error %v", err)
	}
	Calls.Write = real
	if err := Append(f, 6, []byte("third\n")); err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(io.NewSectionReader(f, 0, 100)); string(b) != "first\nthird\n" {
		t.Errorf("file is %q", b)
	}
}
