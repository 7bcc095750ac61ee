package ledger

import (
	"io"
	"iter"
	"path/filepath"

	"toolrun/archive/internal/jsonl"
)

// Line is one line of the ledger: a row, or what is wrong with it.
type Line struct {
	File   string
	No     int   // from 1
	Offset int64 // of its first byte
	Text   []byte
	Row    *Row  // nil where Err is not
	Err    error // *Damage; any other is an error of reading and the last
}

// Lines yields every line of ledger.jsonl as it was when the iteration began, in the order of seq. Text is valid until
// the next line. A missing ledger has no lines.
func Lines(dir string, parse func([]byte) (*Row, error)) iter.Seq[Line] {
	return func(yield func(Line) bool) {
		path := filepath.Join(dir, FileName)
		f, size, err := jsonl.Snapshot(path, filepath.Join(dir, LockName))
		if err != nil {
			yield(Line{File: path, Err: err})
			return
		}
		if f == nil {
			return
		}
		defer f.Close()
		LinesOf(path, io.NewSectionReader(f, 0, size), parse)(yield)
	}
}

// LinesOf is Lines of what r holds, as a sealed month does; name is the file's.
func LinesOf(name string, r io.Reader, parse func([]byte) (*Row, error)) iter.Seq[Line] {
	return func(yield func(Line) bool) {
		for raw, err := range jsonl.Lines(r) {
			if err != nil {
				yield(Line{File: name, Err: err})
				return
			}
			line := Line{File: name, No: raw.No, Offset: raw.Offset, Text: raw.Text}
			bad := raw.Damaged()
			if bad == nil {
				line.Row, bad = parse(raw.Text)
			}
			if bad != nil && raw.Torn {
				bad = jsonl.ErrTorn
			}
			if bad != nil {
				line.Row, line.Err = nil, &Damage{File: name, Line: raw.No, Err: bad}
			}
			if !yield(line) {
				return
			}
		}
	}
}

// Rows yields every row of ledger.jsonl in the order of seq. A line that is no row is yielded as a *Damage and the
// iteration goes on; after any other error it ends.
func Rows(dir string) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		for line := range Lines(dir, ParseRow) {
			if !yield(line.Row, line.Err) {
				return
			}
		}
	}
}
