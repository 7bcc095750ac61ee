package month

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
)

// The index of a part tells where in its files a call, a session, an object and a run are. It is derived; it is
// held against its hash in the manifest when it is opened, and what is found by it against what was asked for.
//
// The content of its pages: magic, the numbers of records of the tables (4 bytes each) and the length of the names; the
// tables, each record of fixed length and sorted, numbers big-endian; the names of the runs, a line each.
const indexMagic = "toolidx1"

const (
	tableCalls    = iota // hash of tool_call_id or client_call_id 8, line 4, offset 8
	tableSessions        // hash of session_id 8, line 4, lines 4, offset 8, bytes 8: lines that stand together
	tableObjects         // first 8 bytes of the SHA-256, offset in store.tar 8, size 8
	tableRuns            // hash of the run 8, offset in runs.tar 8, size 8
	tableDamaged         // line 4, offset 8, bytes 8: of lines that are no rows
	tableFrames          // line 4: the first of each frame of the ledger
	tables
)

var recordBytes = [tables]int{20, 32, 24, 24, 20, 4}

const indexHead = len(indexMagic) + 4*(tables+1)

// Span is lines of a part's ledger that stand together.
type Span struct {
	Line, Lines   int64 // from 0
	Offset, Bytes int64
}

// within tells whether the span is in a ledger of so many lines and bytes.
func (s Span) within(lines, bytes int64) bool {
	return s.Line >= 0 && s.Lines > 0 && s.Lines <= lines && s.Line <= lines-s.Lines &&
		s.Offset >= 0 && s.Bytes >= 0 && s.Bytes <= bytes && s.Offset <= bytes-s.Bytes
}

// place is where in a tar the content of a file is.
type place struct{ offset, size int64 }

// indexBuilder gathers records.
type indexBuilder struct {
	records [tables][]byte
	names   []string
}

func (b *indexBuilder) put(table int, fields ...uint64) {
	rec := b.records[table]
	for i, f := range fields {
		if i > 0 && wide(table, i) || i == 0 && hashed(table) {
			rec = binary.BigEndian.AppendUint64(rec, f)
		} else {
			rec = binary.BigEndian.AppendUint32(rec, uint32(f))
		}
	}
	b.records[table] = rec
}

// hashed tells whether the records of a table begin with a hash, and wide whether a further field has 8 bytes.
func hashed(table int) bool { return table < tableDamaged }

func wide(table, field int) bool {
	switch table {
	case tableCalls:
		return field == 2
	case tableSessions:
		return field >= 3
	}
	return true
}

// encode sorts the tables and makes the file. Equal content has equal bytes.
func (b *indexBuilder) encode() []byte {
	out := []byte(indexMagic)
	names := strings.Join(append(b.names, ""), "\n")
	for t := range tables {
		out = binary.BigEndian.AppendUint32(out, uint32(len(b.records[t])/recordBytes[t]))
	}
	out = binary.BigEndian.AppendUint32(out, uint32(len(names)))
	for t := range tables {
		out = append(out, sorted(b.records[t], recordBytes[t])...)
	}
	return paged(append(out, names...))
}

func sorted(records []byte, size int) []byte {
	list := make([][]byte, 0, len(records)/size)
	for rest := records; len(rest) > 0; rest = rest[size:] {
		list = append(list, rest[:size])
	}
	slices.SortFunc(list, bytes.Compare)
	return bytes.Join(list, nil)
}

// Index is the index of a part, open.
type Index struct {
	from   *pages
	at     [tables]int64
	counts [tables]int
	names  int64 // offset
	bytes  int64 // of the content
}

var errIndex = errors.New("not an index, or not as it was written")

func openIndex(from io.ReaderAt, size int64) (*Index, error) {
	p := &pages{from, size}
	head := make([]byte, indexHead)
	if _, err := p.ReadAt(head, 0); err != nil {
		if err == io.EOF {
			return nil, errIndex
		}
		return nil, err
	}
	if string(head[:len(indexMagic)]) != indexMagic {
		return nil, errIndex
	}
	x := &Index{from: p, bytes: p.content()}
	at := int64(indexHead)
	for t := range tables {
		x.counts[t], x.at[t] = int(binary.BigEndian.Uint32(head[len(indexMagic)+4*t:])), at
		at += int64(x.counts[t]) * int64(recordBytes[t])
	}
	x.names = at
	if at+int64(binary.BigEndian.Uint32(head[indexHead-4:])) != x.bytes {
		return nil, errIndex
	}
	return x, nil
}

// record reads record i of a table.
func (x *Index) record(table, i int, buf []byte) ([]byte, error) {
	buf = buf[:recordBytes[table]]
	_, err := x.from.ReadAt(buf, x.at[table]+int64(i)*int64(len(buf)))
	return buf, err
}

// each calls do with every record of a table that begins with hash.
func (x *Index) each(table int, hash uint64, do func(rec []byte) error) error {
	var failed error
	buf := make([]byte, 32)
	first := sort.Search(x.counts[table], func(i int) bool {
		rec, err := x.record(table, i, buf)
		failed = cmp.Or(failed, err)
		return err == nil && binary.BigEndian.Uint64(rec) >= hash
	})
	for i := first; i < x.counts[table] && failed == nil; i++ {
		rec, err := x.record(table, i, buf)
		if err != nil {
			return err
		}
		if binary.BigEndian.Uint64(rec) != hash {
			return nil
		}
		failed = do(rec)
	}
	return failed
}

// calls are the lines that may be of a call.
func (x *Index) calls(hash uint64) (spans []Span, err error) {
	err = x.each(tableCalls, hash, func(rec []byte) error {
		spans = append(spans, Span{int64(binary.BigEndian.Uint32(rec[8:])), 1, int64(binary.BigEndian.Uint64(rec[12:])), 0})
		return nil
	})
	return spans, err
}

// session are the lines that may be of a session.
func (x *Index) session(hash uint64) (spans []Span, err error) {
	err = x.each(tableSessions, hash, func(rec []byte) error {
		spans = append(spans, Span{int64(binary.BigEndian.Uint32(rec[8:])), int64(binary.BigEndian.Uint32(rec[12:])),
			int64(binary.BigEndian.Uint64(rec[16:])), int64(binary.BigEndian.Uint64(rec[24:]))})
		return nil
	})
	return spans, err
}

// damaged are the lines that are no rows.
func (x *Index) damaged() (spans []Span, err error) {
	buf := make([]byte, 32)
	for i := range x.counts[tableDamaged] {
		rec, err := x.record(tableDamaged, i, buf)
		if err != nil {
			return nil, err
		}
		spans = append(spans, Span{int64(binary.BigEndian.Uint32(rec)), 1, int64(binary.BigEndian.Uint64(rec[4:])), int64(binary.BigEndian.Uint64(rec[12:]))})
	}
	return spans, nil
}

// firstLine is the first line of a frame of the ledger.
func (x *Index) firstLine(frame int) (int64, error) {
	if frame >= x.counts[tableFrames] {
		return 0, errIndex
	}
	rec, err := x.record(tableFrames, frame, make([]byte, 32))
	return int64(binary.BigEndian.Uint32(rec)), err
}

// find is where the content of an object or a run may be.
func (x *Index) find(table int, hash uint64) (list []place, err error) {
	err = x.each(table, hash, func(rec []byte) error {
		list = append(list, place{int64(binary.BigEndian.Uint64(rec[8:])), int64(binary.BigEndian.Uint64(rec[16:]))})
		return nil
	})
	return list, err
}

// Runs are the ids of the traces of the part.
func (x *Index) Runs() ([]string, error) {
	text := make([]byte, x.bytes-x.names)
	if _, err := x.from.ReadAt(text, x.names); err != nil && err != io.EOF {
		return nil, err
	}
	return strings.Fields(string(text)), nil
}

// hashes calls do with the hash of every call and every run.
func (x *Index) hashes(do func(uint64)) error {
	for _, t := range []int{tableCalls, tableRuns} {
		text := make([]byte, x.counts[t]*recordBytes[t])
		if _, err := x.from.ReadAt(text, x.at[t]); err != nil && err != io.EOF {
			return err
		}
		for ; len(text) > 0; text = text[recordBytes[t]:] {
			do(binary.BigEndian.Uint64(text))
		}
	}
	return nil
}

// objectHash is how an object is found.
func objectHash(name string) (uint64, error) {
	var b [8]byte
	if len(name) != 64 {
		return 0, fmt.Errorf("%q names no object", name)
	}
	_, err := hex.Decode(b[:], []byte(name[:16]))
	return binary.BigEndian.Uint64(b[:]), err
}
