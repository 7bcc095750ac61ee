// Package terminal reads what a program wrote to a terminal as a person would have read it: spinners show their last
// frame, colours and cursor movements are gone, what scrolled away stands above what was on the screen at the end.
//
// It keeps nothing and runs nothing; the raw bytes are what the record holds.
package terminal

import (
	"bytes"
	"io"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/vt"
)

// Largest size of a terminal, in characters: its emulation holds a cell for each.
const (
	MaxRows = 300
	MaxCols = 1000
)

// chunk is how much is fed at a time; fewer lines than it has bytes can scroll away in between.
const chunk = 4 << 10

// Plain is the text that raw shows on a terminal of this size, lines that scrolled away first. White space at the end of
// lines and blank lines at the end are gone, and so is every control character but the newline. It ends with a newline
// unless it is empty. A run of bytes that are not UTF-8 becomes one U+FFFD.
func Plain(raw []byte, rows, cols int) string {
	if text, ok := unmoved(raw, cols); ok {
		return text
	}
	var b strings.Builder
	raw = bytes.ToValidUTF8(raw, []byte("\ufffd")) // the emulator would drop them without a trace
	if rest := emulate(raw, min(rows, MaxRows), min(cols, MaxCols), &b); rest != nil {
		for line := range bytes.Lines(rest) { // the emulator failed: what it has not seen, without its order of things
			writeLine(&b, string(line))
		}
	}
	text := strings.TrimRight(b.String(), "\n")
	if text == "" {
		return ""
	}
	return text + "\n"
}

// unmoved is what raw shows if nothing in it moves the cursor but the ends of lines: an emulator has 5 MB and takes
// milliseconds to make, and most answers of a program need none.
func unmoved(raw []byte, cols int) (text string, ok bool) {
	lines := strings.Split(string(raw), "\r\n")
	for i, line := range lines {
		if len(line) > cols {
			return "", false
		}
		for j := range len(line) {
			if line[j] < ' ' || line[j] > '~' {
				return "", false
			}
		}
		lines[i] = strings.TrimRight(line, " ")
	}
	text = strings.TrimRight(strings.Join(lines, "\n"), "\n")
	if text == "" {
		return "", true
	}
	return text + "\n", true
}

// emulate feeds raw to an emulator and writes what it shows. It returns what is left where the emulator panics: raw is
// whatever a program wrote.
func emulate(raw []byte, rows, cols int, b *strings.Builder) (rest []byte) {
	e := vt.NewEmulator(cols, rows)
	e.SetScrollbackSize(chunk + 1)
	answered := make(chan struct{})
	go func() { // it answers questions (ESC [ c), and waits until somebody reads the answers
		io.Copy(io.Discard, e)
		close(answered)
	}()
	rest = raw
	defer func() {
		if recover() == nil {
			rest = nil
		}
		e.InputPipe().(io.Closer).Close()
		<-answered
	}()
	for len(rest) > 0 {
		k := min(chunk, len(rest))
		e.Write(rest[:k])
		rest = rest[k:]
		for _, line := range e.Scrollback().Lines() {
			writeLine(b, line.String())
		}
		e.Scrollback().Clear()
	}
	for line := range strings.Lines(e.String()) {
		writeLine(b, line)
	}
	return nil
}

// writeLine writes one line without white space at its end and without control characters.
func writeLine(b *strings.Builder, line string) {
	for _, r := range strings.TrimRight(line, " \t\r\n") {
		if r == '\t' || !unicode.IsControl(r) {
			b.WriteRune(r)
		}
	}
	b.WriteByte('\n')
}
