package query

import (
	"bytes"
	"io"
	"iter"
	"slices"

	"toolrun/archive"
	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
)

// End is the byte of the whole ledger behind its last whole line: rows that are written from now on stand behind it, whatever
// becomes of a torn end.
func End(d *archive.Dir) (int64, error) {
	hot, err := ledger.OpenHot(d.Path())
	if err != nil {
		return 0, err
	}
	defer hot.Close()
	torn := int64(0)
	for window := make([]byte, 64<<10); torn < hot.Size; {
		n := min(int64(len(window)), hot.Size-torn)
		if _, err := hot.ReadAt(window[:n], hot.Size-torn-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(window[:n], '\n'); i >= 0 {
			torn += n - int64(i) - 1
			break
		}
		torn += n
	}
	return hot.Bytes() - torn, nil
}

// Behind yields the rows behind an end of the ledger that End gave, without reading what stands before it, unless lines
// behind it were sealed meanwhile: then it yields them all. Damaged lines are passed over.
func Behind(d *archive.Dir, end int64) iter.Seq2[*ledger.Row, error] {
	return func(yield func(*ledger.Row, error) bool) {
		hot, err := ledger.OpenHot(d.Path())
		if err != nil {
			yield(nil, err)
			return
		}
		defer hot.Close()
		at, ok := hot.Place(end)
		if !ok || at > hot.Size || slices.ContainsFunc(hot.Pieces(), func(p ledger.Piece) bool { return p.Cut != nil && p.Offset+p.Bytes > end }) {
			err := each(Rows(d, Filter{}), nil, func(row *ledger.Row) bool { return yield(row, nil) })
			if err != nil {
				yield(nil, err)
			}
			return
		}
		for line, err := range jsonl.Lines(io.NewSectionReader(hot, at, hot.Size-at)) {
			if err != nil {
				yield(nil, err)
				return
			}
			row, err := ledger.ParseRow(line.Text)
			if err == nil && !line.Torn && !yield(row, nil) {
				return
			}
		}
	}
}
