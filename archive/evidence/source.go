package evidence

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"math"
)

// Source is a ledger to be signed, as it was at one moment. Places in it are bytes of the whole ledger: of what
// ledger.jsonl would be if no month had ever been sealed.
type Source interface {
	// Leaves yields the leaf of every line from a byte on, where a line begins.
	Leaves(from int64) iter.Seq2[Leaf, error]
	// Before returns the line that ends at a byte, without its newline; sealed is true where that line is in a sealed month,
	// which no ledger can change any more.
	Before(end int64) (line []byte, sealed bool, err error)
	// Line returns the bytes where a leaf was, or sealed.
	Line(l Leaf) (line []byte, sealed bool, err error)
	Close() error
}

// leavesAt is Leaves of a file from a byte on, which is the byte as of the whole ledger.
func leavesAt(f io.ReaderAt, from, as int64) iter.Seq2[Leaf, error] {
	return func(yield func(Leaf, error) bool) {
		for leaf, err := range Leaves(io.NewSectionReader(f, from, math.MaxInt64-from)) {
			leaf.Offset += as
			if !yield(leaf, err) {
				return
			}
		}
	}
}

// LineBefore reads the line of a file that ends at a byte, without its newline.
func LineBefore(f io.ReaderAt, end int64) ([]byte, error) {
	for window := int64(8 << 10); ; window *= 16 {
		start := max(end-window, 0)
		b := make([]byte, end-start)
		if _, err := f.ReadAt(b, start); err != nil {
			return nil, err
		}
		if len(b) == 0 || b[len(b)-1] != '\n' {
			return nil, errors.New("no line ends there")
		}
		b = b[:len(b)-1]
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 || start == 0 {
			return b[i+1:], nil
		}
	}
}
