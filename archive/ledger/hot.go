package ledger

import (
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"toolrun/archive/evidence"
	"toolrun/archive/internal/jsonl"
)

// Hot is ledger.jsonl as it was at one moment, and what had been taken out of it by then. It stays so however it is cut
// later.
type Hot struct {
	Path    string
	Size    int64 // of the file, 0 where there is none
	Pending *Cut  // the first that is written down and was not made yet: its lines are still there
	layout
	f *os.File // nil where there is no ledger
}

// OpenHot opens the hot ledger of a data directory to be read; who does so holds no lock. Errors are ErrUnusable.
func OpenHot(dir string) (*Hot, error) {
	h, err := openHot(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	return h, nil
}

func openHot(dir string) (*Hot, error) {
	h := &Hot{Path: filepath.Join(dir, FileName)}
	for try := 0; ; try++ {
		parts := sealedParts(dir)
		before, err := ReadCuts(dir)
		if err != nil {
			return nil, err
		}
		if h.f, h.Size, err = jsonl.Snapshot(h.Path, filepath.Join(dir, LockName)); err != nil {
			return nil, err
		}
		if h.layout, h.Pending, err = readLayout(h.f, before); err != nil {
			h.Close()
			return nil, err
		}
		// A cut is written down before it is made. One that was written down meanwhile may have been made in the file that was
		// opened; else the file has every cut but perhaps the last.
		after, err := ReadCuts(dir)
		if err != nil {
			h.Close()
			return nil, err
		}
		if slices.EqualFunc(after, before, func(a, b Cut) bool { return a.Sum == b.Sum }) {
			if err := h.holdParts(dir, h, before, parts); err != nil {
				h.Close()
				return nil, err
			}
			return h, nil
		}
		h.Close()
		if try == 100 {
			return nil, fmt.Errorf("%s changed with each of %d readings", CutsName, try)
		}
	}
}

// Close closes the file.
func (h *Hot) Close() error {
	if h.f == nil {
		return nil
	}
	return h.f.Close()
}

// Exists tells whether there is a ledger at all.
func (h *Hot) Exists() bool { return h.f != nil }

// Cuts are the cuts that were made, in their order.
func (h *Hot) Cuts() []Cut { return h.cuts }

// Bytes is the length of the whole ledger.
func (h *Hot) Bytes() int64 {
	shift, _ := h.shift()
	return h.Size + shift
}

// Place is where in ledger.jsonl a byte of the whole ledger is; ok is false where it was taken out.
func (h *Hot) Place(offset int64) (at int64, ok bool) { return h.hot(offset) }

// LineNo is which line of ledger.jsonl, from 0, a line of the whole ledger is that was not taken out.
func (h *Hot) LineNo(line int64) int64 {
	no := line
	for _, g := range h.gaps {
		if g.Line < line {
			no -= g.Lines
		}
	}
	return no
}

// Piece is a run of lines that stand together, in ledger.jsonl or in one part of a sealed month. Of the last of
// ledger.jsonl Lines is -1: to its end.
type Piece struct {
	Range
	Cut *Cut  // nil: in ledger.jsonl
	At  int64 // of its first byte, in ledger.jsonl or in the ledger of the part
	No  int64 // of its first line there, from 0
}

// Pieces are the pieces of the whole ledger, in its order.
func (h *Hot) Pieces() []Piece {
	var list []Piece
	line, offset := int64(0), int64(0) // of the whole ledger
	no, at := int64(0), int64(0)       // of ledger.jsonl
	took := make([]struct{ no, at int64 }, len(h.cuts))
	hot := func(lines, bytes int64) {
		list = append(list, Piece{Range: Range{line, lines, offset, bytes}, At: at, No: no})
		no, at = no+lines, at+bytes
	}
	for _, g := range h.gaps {
		if g.Line > line {
			hot(g.Line-line, g.Offset-offset)
		}
		t := &took[g.cut]
		list = append(list, Piece{Range: g.Range, Cut: &h.cuts[g.cut], At: t.at, No: t.no})
		t.no, t.at = t.no+g.Lines, t.at+g.Bytes
		line, offset = g.Line+g.Lines, g.Offset+g.Bytes
	}
	if at < h.Size {
		hot(-1, h.Size-at)
	}
	return list
}

// Reader reads a piece of ledger.jsonl, from a byte of the whole ledger on that lies in it.
func (h *Hot) Reader(p Piece, from int64) *io.SectionReader {
	skip := max(from-p.Offset, 0)
	return io.NewSectionReader(h, p.At+skip, p.Bytes-skip)
}

// ReadAt reads bytes of ledger.jsonl, in places of the file itself.
func (h *Hot) ReadAt(b []byte, at int64) (int, error) {
	if h.f == nil {
		return 0, io.EOF
	}
	return h.f.ReadAt(b, at)
}

// Has tells whether the lines of a part of a month were taken out.
func (h *Hot) Has(month string, part int) bool {
	return slices.ContainsFunc(h.cuts, func(c Cut) bool { return c.Month == month && c.Part == part })
}

func leafHex(line []byte) string {
	h := evidence.LeafHash(line)
	return hex.EncodeToString(h[:])
}
