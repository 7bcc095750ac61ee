package runner

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"toolrun/archive/redact"
)

// memory is an object that can be looked at.
type memory struct {
	bytes.Buffer
	fail    int // Write fails once this many bytes are in; 0: never
	aborted bool
}

var errFull = errors.New("no space left")

func (m *memory) Write(b redact.Bytes) error {
	if m.fail > 0 && m.Len() >= m.fail {
		return errFull
	}
	m.Buffer.Write(b.Raw())
	return nil
}

func (m *memory) Finish() (string, int64, error) {
	sum := sha256.Sum256(m.Bytes())
	return hex.EncodeToString(sum[:]), int64(m.Len()), nil
}

func (m *memory) Abort() { m.aborted = true }

// feed writes p in random pieces.
func feed(t *testing.T, c *capture, p []byte) {
	t.Helper()
	for len(p) > 0 {
		n := min(len(p), 1+rand.IntN(70000))
		if _, err := c.Write(p[:n]); err != nil {
			t.Fatal(err)
		}
		p = p[n:]
	}
}

func numbered(lines int) []byte {
	var b bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&b, "line %d of a long output\n", i)
	}
	return b.Bytes()
}

func TestAnObjectUpToItsCapIsTheWholeStream(t *testing.T) {
	text := numbered(100000) // 2.6 MB
	for _, limit := range []int{len(text), len(text) + 1, 64 << 20} {
		to := &memory{}
		c := newCapture(redact.New(nil), to, int64(limit), 4096)
		feed(t, c, text)
		end := c.finish()
		if end.Truncated || !bytes.Equal(to.Bytes(), text) || end.Bytes != int64(len(text)) || end.Stored != end.Bytes {
			t.Errorf("cap %d: truncated %v, %d of %d bytes", limit, end.Truncated, to.Len(), len(text))
		}
	}
}

func TestAnObjectOverItsCapIsHeadMarkAndTail(t *testing.T) {
	text := numbered(200000)
	const limit = 3 << 20
	var hashes []string
	for range 3 { // whatever the pieces
		to := &memory{}
		c := newCapture(redact.New(nil), to, limit, 4096)
		feed(t, c, text)
		end := c.finish()
		head, tail := text[:limit-keptTailBytes], text[len(text)-keptTailBytes:]
		want := fmt.Sprintf("%s\n[toolrun: %d bytes left out]\n%s", head, len(text)-limit, tail)
		if to.String() != want || !end.Truncated || end.Bytes != int64(len(text)) || end.Stored != int64(len(want)) {
			t.Fatalf("stored %d bytes, want %d; truncated %v", to.Len(), len(want), end.Truncated)
		}
		hashes = append(hashes, string(end.Hash))
	}
	if hashes[0] != hashes[1] || hashes[1] != hashes[2] {
		t.Error("the object depends on how the stream was cut")
	}
}

func TestASmallCapKeepsBothEnds(t *testing.T) {
	to := &memory{}
	c := newCapture(redact.New(nil), to, 10, 4096)
	feed(t, c, []byte("0123456789abcdefghij"))
	c.finish()
	if got, want := to.String(), "01234\n[toolrun: 10 bytes left out]\nfghij"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestASecretInTheHeldBackTailIsMaskedOnce(t *testing.T) {
	secret := "ghp_" + strings.Repeat("A", 36)
	text := strings.Repeat("x", 3000) + " " + secret + "\n" + strings.Repeat("y", 100)
	to := &memory{}
	c := newCapture(redact.New(nil), to, 3500, 4096)
	feed(t, c, []byte(text))
	end := c.finish()
	if want := strings.Replace(text, secret, redact.Mark, 1); to.String() != want || end.Redactions != 1 || end.Truncated {
		t.Errorf("redactions %d, truncated %v, stored %q", end.Redactions, end.Truncated, to.String()[2990:])
	}
}

func TestBinaryOutputIsStoredByteForByte(t *testing.T) {
	to := &memory{}
	c := newCapture(redact.New(nil), to, 1<<20, 4096)
	feed(t, c, []byte("a\377\376\000b\n"))
	end := c.finish()
	if string(end.Hash) != "50ee3ddb41446bed8d4f4cba9c20cb112bafc645e63c939434e24791d12d35f5" || end.Bytes != 6 {
		t.Errorf("hash %s, %d bytes", end.Hash, end.Bytes)
	}
	if p := end.Excerpt.render(4096); !p.Lossy || !utf8.ValidString(p.Text) || p.Text != "a\uFFFD\x00b\n" {
		t.Errorf("preview %+q, lossy %v", p.Text, p.Lossy)
	}
}

func TestARuneCutByAReadIsWholeAndOneCutByTheEndIsLossy(t *testing.T) {
	whole := newCapture(redact.New(nil), &memory{}, 1<<20, 4096)
	whole.Write([]byte("\342\202"))
	whole.Write([]byte("\254\n"))
	if end := whole.finish(); string(end.Hash) != "e4c27b5033c47b8ebfe7eb3dda171c56b98ec637ca80bcc302ad50424fd05979" || end.Excerpt.render(4096) != (Preview{Text: "€\n"}) {
		t.Errorf("%s %+v", end.Hash, end.Excerpt.render(4096))
	}
	cut := newCapture(redact.New(nil), &memory{}, 1<<20, 4096)
	cut.Write([]byte("\342\202"))
	if end := cut.finish(); end.Stored != 2 || end.Excerpt.render(4096) != (Preview{Text: "\uFFFD", Lossy: true}) {
		t.Errorf("%d bytes, %+v", end.Stored, end.Excerpt.render(4096))
	}
}

func TestACaptureThatCannotStoreFailsTheWriteAndKeepsThePreview(t *testing.T) {
	to := &memory{fail: 1}
	c := newCapture(redact.New(nil), to, 1<<20, 4096)
	c.Write([]byte("first line\n"))
	_, err := c.Write([]byte("second line\n"))
	if !errors.Is(err, errFull) {
		t.Fatalf("Write: %v", err)
	}
	c.Write([]byte("third line\n"))
	end := c.finish()
	if !errors.Is(end.Err, errFull) || end.Hash != "" || !to.aborted || end.Bytes != 34 {
		t.Errorf("%+v", end)
	}
	if p := end.Excerpt.render(4096); !strings.HasPrefix(p.Text, "first line\nsecond line\n") {
		t.Errorf("preview %q", p.Text)
	}
}

func TestThePreviewHasBothEndsAndCountsWhatIsBetween(t *testing.T) {
	var text bytes.Buffer
	for i := range 400 {
		fmt.Fprintf(&text, "%04d%s\n", i+1, strings.Repeat(".", 995))
	}
	text.WriteString("FATAL-LAST\n")
	for _, budget := range []int{1, 2, 100, 5000, 10240, 400000} {
		e := newExcerpt(budget)
		for p := text.Bytes(); len(p) > 0; {
			n := min(len(p), 777)
			e.write(p[:n])
			p = p[n:]
		}
		p := e.render(budget)
		mark := fmt.Sprintf("[toolrun: %d bytes left out]\n", p.LeftOut)
		before, after, found := strings.Cut(p.Text, mark)
		shown := len(strings.TrimSuffix(before, "\n")) + len(after)
		if !found || shown > budget || int64(text.Len())-p.LeftOut > int64(budget) || p.LeftOut < int64(text.Len()-budget) {
			t.Errorf("budget %d: %d shown, %d left out of %d", budget, shown, p.LeftOut, text.Len())
		}
		if !strings.HasPrefix(text.String(), strings.TrimSuffix(before, "\n")) || !strings.HasSuffix(text.String(), after) {
			t.Errorf("budget %d: not head and tail: %.20q … %.20q", budget, before, after)
		}
		if budget >= 100 && (!strings.HasPrefix(p.Text, "0001") || !strings.HasSuffix(p.Text, "FATAL-LAST\n")) {
			t.Errorf("budget %d: %.20q … %q", budget, p.Text, p.Text[len(p.Text)-20:])
		}
	}
}

// TestOneHugeLineHasAPreview is the fault where a trailing newline decided whether anything was shown.
func TestOneHugeLineHasAPreview(t *testing.T) {
	for _, text := range []string{strings.Repeat("x", 300000) + "\n", strings.Repeat("x", 300000), strings.Repeat("y", 2<<20), strings.Repeat("€", 100000)} {
		to := &memory{}
		c := newCapture(redact.New(nil), to, 64<<20, 50000)
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		end := c.finish()
		p := end.Excerpt.render(50000)
		if len(p.Text) < 49000 || p.Lossy || p.LeftOut == 0 || end.Bytes != int64(len(text)) || to.Len() != len(text) {
			t.Errorf("%d bytes: preview of %d bytes, lossy %v, %d left out", len(text), len(p.Text), p.Lossy, p.LeftOut)
		}
		if text == strings.Repeat("x", 300000) && string(end.Hash) != "29927e273accc68286005017f7fa6e4f27bddb4db3083ff8b8d4c3667905b7fa" {
			t.Errorf("hash %s", end.Hash)
		}
	}
}

func TestAPreviewSharedByTwoStreams(t *testing.T) {
	make := func(n int) *captured {
		e := newExcerpt(10000)
		e.write(bytes.Repeat([]byte("z"), n))
		return &captured{Excerpt: &e}
	}
	for _, c := range []struct{ out, err, shownOut, shownErr int }{
		{9000, 1000, 9000, 1000}, {50000, 1000, 9000, 1000}, {1000, 50000, 1000, 9000}, {50000, 50000, 5000, 5000}, {50000, 0, 10000, 0},
	} {
		o, e := previews(make(c.out), make(c.err), 10000)
		if int64(c.out)-o.LeftOut != int64(c.shownOut) || int64(c.err)-e.LeftOut != int64(c.shownErr) {
			t.Errorf("%d and %d: shown %d and %d", c.out, c.err, int64(c.out)-o.LeftOut, int64(c.err)-e.LeftOut)
		}
	}
}

func TestTheLastLineThatIsNotBlank(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a": "a", "a\n": "a", "a\nb\n\n  \n": "b", "\n\nx\n": "x", "a\n  b  ": "b", "a\nb": "b", "a\n \t": "a",
		"one\ntwo\nthree\n": "three", strings.Repeat("l", 5000) + "\n": strings.Repeat("l", maxLineBytes), "x\n\xff\n": "\uFFFD",
	} {
		for _, size := range []int{1, 2, 3, 7, 10000} {
			var l lastLine
			for p := []byte(text); len(p) > 0; {
				n := min(len(p), size)
				l.write(p[:n])
				p = p[n:]
			}
			if got := l.String(); got != want {
				t.Errorf("%.20q in pieces of %d: %.20q, want %.20q", text, size, got, want)
			}
		}
	}
}
