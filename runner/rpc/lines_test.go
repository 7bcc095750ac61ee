package rpc

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// all reads every line of r, an overlong as "!" and its beginning.
func all(t *testing.T, r io.Reader, max int) (lines []string, longs []*overlong) {
	t.Helper()
	l := newLineReader(r, max)
	for {
		line, long, err := l.next()
		switch {
		case errors.Is(err, io.EOF):
			return lines, longs
		case err != nil:
			t.Fatal(err)
		case long != nil:
			lines, longs = append(lines, "!"), append(longs, long)
		default:
			lines = append(lines, string(line))
		}
	}
}

func TestLinesAreCutAtNewlinesOnly(t *testing.T) {
	const in = "a\n\nb\r\nc d\n\ue000\u2028x\nlast"
	for name, r := range map[string]io.Reader{
		"at once":     strings.NewReader(in),
		"by bytes":    iotest.OneByteReader(strings.NewReader(in)),
		"err at data": iotest.DataErrReader(strings.NewReader(in)),
	} {
		lines, _ := all(t, r, 100)
		if got := strings.Join(lines, "|"); got != "a||b\r|c d|\ue000\u2028x|last" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestLineOfTheMaximumIsReadAndOneByteMoreIsDrained(t *testing.T) {
	for _, max := range []int{10, 65535, 65536, 65537, 200000} {
		fits, over := strings.Repeat("x", max), strings.Repeat("y", max+1)
		in := fits + "\n" + over + "\nnext\n" + over
		for name, r := range map[string]io.Reader{"at once": strings.NewReader(in), "halves": iotest.HalfReader(strings.NewReader(in))} {
			lines, longs := all(t, r, max)
			if len(lines) != 4 || lines[0] != fits || lines[1] != "!" || lines[2] != "next" || lines[3] != "!" {
				t.Fatalf("max %d %s: %d lines", max, name, len(lines))
			}
			for _, long := range longs {
				if long.bytes != int64(max+1) || long.sha256 != digest([]byte(over)) || !strings.HasPrefix(over, string(long.head)) || len(long.head) != min(max+1, headBytes) {
					t.Errorf("max %d %s: overlong of %d bytes, head of %d", max, name, long.bytes, len(long.head))
				}
			}
		}
	}
}

func TestDrainingKeepsNoMoreThanTheHead(t *testing.T) {
	r := io.MultiReader(strings.NewReader(`{"id":1,"x":"`), io.LimitReader(zeros{}, 40<<20), strings.NewReader("\"}\n{}\n"))
	l := newLineReader(r, 1<<20)
	_, long, err := l.next()
	if err != nil || long == nil || cap(long.head) > 4*headBytes {
		t.Fatalf("%+v %v", long, err)
	}
	if line, _, err := l.next(); string(line) != "{}" || err != nil {
		t.Errorf("next line %q %v", line, err)
	}
}

func TestErrorOfReadingIsHandedOn(t *testing.T) {
	bad := errors.New("bad cable")
	l := newLineReader(io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(bad)), 10)
	if line, _, err := l.next(); string(line) != "a" || err != nil {
		t.Fatalf("%q %v", line, err)
	}
	if _, _, err := l.next(); !errors.Is(err, bad) {
		t.Errorf("error %v", err)
	}
}

func TestLinesAreNotOverwritten(t *testing.T) {
	l := newLineReader(strings.NewReader("first\nsecond\n"), 10)
	first, _, _ := l.next()
	keep := bytes.Clone(first)
	l.next()
	if !bytes.Equal(first, keep) {
		t.Errorf("the first line became %q", first)
	}
}

// zeros is an endless stream without a newline.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}
