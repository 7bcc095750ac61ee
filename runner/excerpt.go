package runner

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// excerpt keeps the beginning and the end of a stream that may be of any length, each up to max bytes.
type excerpt struct {
	max  int
	n    int64 // bytes seen
	head []byte
	tail ring // what follows the head

	screen *screen // nil: the stream is text as it is
}

func newExcerpt(max int) excerpt { return excerpt{max: max, tail: ring{max: max}} }

func (e *excerpt) write(p []byte) {
	e.n += int64(len(p))
	if room := e.max - len(e.head); room > 0 {
		room = min(room, len(p))
		e.head = append(e.head, p[:room]...)
		p = p[room:]
	}
	if len(p) > 0 {
		e.tail.write(p)
	}
}

// render gives at most about budget bytes of the stream as valid UTF-8: all of it, or its head, a mark that tells the
// number of bytes left out, and its tail. It cuts between runes, and between lines where one ends near the cut.
func (e *excerpt) render(budget int) Preview {
	if e.screen != nil {
		return e.screen.render(e, budget)
	}
	budget = min(budget, e.max)
	if e.n <= int64(budget) {
		return preview(e.head, 0, nil)
	}
	half := budget / 2
	head := endAtBoundary(e.head[:half])
	tail := startAtBoundary(e.last(budget - half))
	return preview(head, e.n-int64(len(head)+len(tail)), tail)
}

// last gives the last n bytes of the stream, n at most max.
func (e *excerpt) last(n int) []byte {
	older, newer := e.tail.parts()
	tail := append(append(make([]byte, 0, len(older)+len(newer)), older...), newer...)
	if missing := n - len(tail); missing > 0 {
		return append(append(make([]byte, 0, n), e.head[len(e.head)-missing:]...), tail...)
	}
	return tail[len(tail)-n:]
}

// preview joins what was kept. Bytes that are not UTF-8 become U+FFFD and make it lossy.
func preview(head []byte, leftOut int64, tail []byte) Preview {
	var b strings.Builder
	lossy := !utf8.Valid(head) || !utf8.Valid(tail)
	b.Write(bytes.ToValidUTF8(head, []byte("\uFFFD")))
	if leftOut > 0 {
		b.WriteString(leftOutMark(b.Len() > 0 && head[len(head)-1] != '\n', leftOut))
	}
	b.Write(bytes.ToValidUTF8(tail, []byte("\uFFFD")))
	return Preview{Text: b.String(), Lossy: lossy, LeftOut: leftOut}
}

// leftOutMark is the line that stands where bytes were left out of a preview or of a stored object.
func leftOutMark(midLine bool, n int64) string {
	mark := fmt.Sprintf("[toolrun: %d bytes left out]\n", n)
	if midLine {
		return "\n" + mark
	}
	return mark
}

// endAtBoundary shortens p so that it ends after a line, if one ends in its last quarter, else after a whole rune.
func endAtBoundary(p []byte) []byte {
	if i := bytes.LastIndexByte(p, '\n'); i >= len(p)-len(p)/4 {
		return p[:i+1]
	}
	return endAtRune(p)
}

// endAtRune shortens p by the beginning of a rune that the cut left behind.
func endAtRune(p []byte) []byte {
	for back := 1; back < utf8.UTFMax && back <= len(p); back++ {
		if at := len(p) - back; utf8.RuneStart(p[at]) {
			if !utf8.FullRune(p[at:]) {
				return p[:at]
			}
			break
		}
	}
	return p
}

// startAtBoundary shortens p so that it begins with a line, if one begins in its first quarter, else with a whole rune.
func startAtBoundary(p []byte) []byte {
	if i := bytes.IndexByte(p[:len(p)/4], '\n'); i >= 0 {
		return p[i+1:]
	}
	for skip := 0; skip < utf8.UTFMax && skip < len(p); skip++ {
		if utf8.RuneStart(p[skip]) {
			return p[skip:]
		}
	}
	return p
}

// ring keeps the last max bytes written to it; its memory grows with what it holds.
type ring struct {
	max   int
	buf   []byte
	start int // where the oldest byte is, once buf is full
}

// write adds p and returns how many bytes, old or new, were dropped.
func (r *ring) write(p []byte) (dropped int64) {
	if over := len(p) - r.max; over >= 0 {
		dropped = int64(len(r.buf) + over)
		r.buf, r.start = append(r.buf[:0], p[over:]...), 0
		return dropped
	}
	if room := r.max - len(r.buf); room > 0 {
		room = min(room, len(p))
		r.buf = append(r.buf, p[:room]...)
		p = p[room:]
	}
	dropped = int64(len(p))
	for len(p) > 0 {
		n := copy(r.buf[r.start:], p)
		p = p[n:]
		if r.start += n; r.start == r.max {
			r.start = 0
		}
	}
	return dropped
}

// parts are the bytes held, oldest first.
func (r *ring) parts() (older, newer []byte) { return r.buf[r.start:], r.buf[:r.start] }

// lastLine follows a stream and knows its last line that is not blank.
type lastLine struct {
	done    []byte // the last complete line that is not blank
	current []byte // the line being written
}

// maxLineBytes is what is kept of a line; a message shows less.
const maxLineBytes = 1024

func (l *lastLine) write(p []byte) {
	end := bytes.LastIndexByte(p, '\n')
	if end < 0 {
		l.extend(p)
		return
	}
	first := bytes.IndexByte(p, '\n')
	l.extend(p[:first])
	if len(bytes.TrimSpace(l.current)) > 0 {
		l.done = append(l.done[:0], l.current...)
	}
	for whole := p[first:end]; len(whole) > 0; { // complete lines after the first, the last one first
		from := bytes.LastIndexByte(whole, '\n') + 1
		if line := whole[from:]; len(bytes.TrimSpace(line)) > 0 {
			l.done = append(l.done[:0], line[:min(len(line), maxLineBytes)]...)
			break
		}
		whole = whole[:max(from-1, 0)]
	}
	l.current = l.current[:0]
	l.extend(p[end+1:])
}

func (l *lastLine) extend(p []byte) {
	if room := maxLineBytes - len(l.current); room > 0 {
		l.current = append(l.current, p[:min(room, len(p))]...)
	}
}

func (l *lastLine) String() string {
	line := l.done
	if len(bytes.TrimSpace(l.current)) > 0 {
		line = l.current
	}
	return string(bytes.TrimSpace(bytes.ToValidUTF8(line, []byte("\uFFFD"))))
}
