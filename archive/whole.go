package archive

import (
	"fmt"
	"io/fs"
	"iter"
	"os"

	"toolrun/archive/evidence"
	"toolrun/archive/ledger"
)

// whole is the ledger as it is signed: a [evidence.Source].
type whole struct {
	d   *Dir
	hot *ledger.Hot
}

// whole opens the ledger. A missing one, of which nothing was sealed, is fs.ErrNotExist.
func (d *Dir) whole() (evidence.Source, error) {
	hot, err := ledger.OpenHot(d.path)
	if err != nil {
		return nil, err
	}
	if !hot.Exists() {
		return nil, &os.PathError{Op: "open", Path: hot.Path, Err: fs.ErrNotExist}
	}
	return &whole{d, hot}, nil
}

func (w *whole) Close() error { return w.hot.Close() }

// Leaves goes through the pieces of the ledger, from the one on in which the byte is.
func (w *whole) Leaves(from int64) iter.Seq2[evidence.Leaf, error] {
	return func(yield func(evidence.Leaf, error) bool) {
		for _, p := range w.hot.Pieces() {
			if p.Offset+p.Bytes <= from {
				continue
			}
			at := max(from, p.Offset)
			for leaf, err := range evidence.Leaves(w.hot.Reader(p, at)) {
				leaf.Offset += at
				if !yield(leaf, err) || err != nil {
					return
				}
			}
		}
	}
}

func (w *whole) Before(end int64) (line []byte, sealed bool, err error) {
	at, ok := w.hot.Place(end - 1)
	if !ok {
		return nil, true, nil
	}
	line, err = evidence.LineBefore(w.hot, at+1)
	return line, false, err
}

func (w *whole) Line(l evidence.Leaf) (line []byte, sealed bool, err error) {
	at, ok := w.hot.Place(l.Offset)
	if !ok {
		return nil, true, nil
	}
	line = make([]byte, l.Length)
	if n, err := w.hot.ReadAt(line, at); n < len(line) {
		return nil, false, fmt.Errorf("read %q: %w", w.hot.Path, err)
	}
	return line, false, nil
}
