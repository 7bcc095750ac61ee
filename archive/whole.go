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
			for leaf, err := range w.leavesOf(p, max(from, p.Offset)) {
				if !yield(leaf, err) || err != nil {
					return
				}
			}
		}
	}
}

// leavesOf are the leaves of a piece, from a byte of the whole ledger on.
func (w *whole) leavesOf(p ledger.Piece, from int64) iter.Seq2[evidence.Leaf, error] {
	if p.Cut == nil {
		return moved(evidence.Leaves(w.hot.Reader(p, from)), from)
	}
	part, err := w.d.months.part(refOf(p.Cut))
	if err == nil && part.Pruned {
		return w.prunedLeaves(p, from)
	}
	skip := from - p.Offset
	if err == nil {
		in, contentErr := part.Content(p.At+skip, p.At+p.Bytes)
		if err = contentErr; err == nil {
			return moved(evidence.Leaves(in), from)
		}
	}
	return func(yield func(evidence.Leaf, error) bool) { yield(evidence.Leaf{}, err) }
}

func (w *whole) prunedLeaves(p ledger.Piece, from int64) iter.Seq2[evidence.Leaf, error] {
	return func(yield func(evidence.Leaf, error) bool) {
		part, err := w.d.months.part(refOf(p.Cut))
		var leaves []evidence.Leaf
		if err == nil {
			leaves, err = part.Leaves()
		}
		if err != nil {
			yield(evidence.Leaf{}, err)
			return
		}
		if p.No+p.Lines > int64(len(leaves)) {
			yield(evidence.Leaf{}, fmt.Errorf("%s is not what the manifest of %v says; it is derived: verify --repair-derived", ledger.CutsName, part.Ref))
			return
		}
		for _, leaf := range leaves[p.No : p.No+p.Lines] {
			leaf.Offset += p.Offset - p.At
			if leaf.Offset >= from && !yield(leaf, nil) {
				return
			}
		}
	}
}

// moved makes the places of leaves those of the whole ledger.
func moved(leaves iter.Seq2[evidence.Leaf, error], by int64) iter.Seq2[evidence.Leaf, error] {
	return func(yield func(evidence.Leaf, error) bool) {
		for leaf, err := range leaves {
			leaf.Offset += by
			if !yield(leaf, err) {
				return
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
