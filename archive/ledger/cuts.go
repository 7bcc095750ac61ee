package ledger

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"toolrun/archive/internal/jsonl"
)

// CutsName is the file that tells which lines were taken out of ledger.jsonl because a month was sealed.
const CutsName = "ledger.cuts"

// Range is a run of lines of the whole ledger: of what ledger.jsonl would be if nothing had ever been taken out of it.
// Places never change: a line keeps its own from the day it is written.
type Range struct {
	Line   int64 `json:"line"`   // of its first line, from 0
	Lines  int64 `json:"lines"`  //
	Offset int64 `json:"offset"` // of its first byte
	Bytes  int64 `json:"bytes"`
}

// Cut is what one part of a sealed month took out of ledger.jsonl.
type Cut struct {
	Month      string  `json:"month"`
	Part       int     `json:"part"`
	Ranges     []Range `json:"ranges"`      // in the order of the ledger
	First      string  `json:"first"`       // leaf hash of its first line, in hex
	FirstBytes int64   `json:"first_bytes"` // length of that line, without the newline
	NextSeq    int64   `json:"next_seq"`    // above every seq of its rows
	Sum        string  `json:"sum"`         // CRC-32C of its line where this is empty, in hex
}

// sum is how many lines and bytes a cut took.
func (c *Cut) sum() (lines, bytes int64) {
	for _, r := range c.Ranges {
		lines += r.Lines
		bytes += r.Bytes
	}
	return lines, bytes
}

// ReadCuts reads the file of cuts. A last line without a newline was never made good and does not count.
func ReadCuts(dir string) ([]Cut, error) {
	path := filepath.Join(dir, CutsName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		// It is made before the first month is sealed. Without it no line would be in its place.
		if len(sealedParts(dir)) > 0 {
			return nil, fmt.Errorf("%s is missing, and months were sealed; it is derived: verify --repair-derived", path)
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var cuts []Cut
	for len(text) > 0 {
		line, rest, whole := bytes.Cut(text, []byte{'\n'})
		if !whole {
			break
		}
		var c Cut
		if err := json.Unmarshal(line, &c); err != nil || !c.valid() || c.Sum != c.sumOf() {
			return nil, fmt.Errorf("%s:%d: not a cut of the ledger; it is derived: verify --repair-derived", path, len(cuts)+1)
		}
		cuts, text = append(cuts, c), rest
	}
	return cuts, nil
}

// WriteCuts makes the file of cuts anew. Whoever calls it holds the right to seal.
func WriteCuts(dir string, cuts []Cut) error {
	var text []byte
	for _, c := range cuts {
		text = c.append(text)
	}
	return jsonl.Replace(filepath.Join(dir, CutsName), text)
}

func (c *Cut) valid() bool {
	end, at := int64(0), int64(0)
	for _, r := range c.Ranges {
		if r.Line < end || r.Offset < at || r.Lines < 1 || r.Bytes < r.Lines {
			return false
		}
		end, at = r.Line+r.Lines, r.Offset+r.Bytes
	}
	return len(c.Ranges) > 0 && c.Part > 0 && c.FirstBytes >= 0 && c.FirstBytes < c.Ranges[0].Bytes
}

// append is the line of the file.
func (c Cut) append(dst []byte) []byte {
	c.Sum = c.sumOf()
	return append(append(dst, c.encode()...), '\n')
}

// sumOf is what Sum has to be: numbers that changed would lead a reader past rows.
func (c Cut) sumOf() string {
	c.Sum = ""
	return fmt.Sprintf("%08x", crc32.Checksum(c.encode(), castagnoli))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (c *Cut) encode() []byte {
	line, _ := json.Marshal(c) // of numbers and strings only, which cannot fail
	return line
}

// gap is one range that was taken out, and by which cut.
type gap struct {
	Range
	cut int
}

// layout is where the lines of a ledger are that was cut.
type layout struct {
	cuts []Cut
	gaps []gap // in the order of the ledger
}

func layoutOf(cuts []Cut) layout {
	l := layout{cuts: cuts}
	for i, c := range cuts {
		for _, r := range c.Ranges {
			l.gaps = append(l.gaps, gap{r, i})
		}
	}
	slices.SortFunc(l.gaps, func(a, b gap) int { return cmp.Compare(a.Line, b.Line) })
	return l
}

// shift is how many bytes were taken out, and nextSeq is above every seq among them.
func (l *layout) shift() (bytes, nextSeq int64) {
	for _, c := range l.cuts {
		_, n := c.sum()
		bytes += n
		nextSeq = max(nextSeq, c.NextSeq)
	}
	return bytes, nextSeq
}

// hot is where in ledger.jsonl a byte of the whole ledger is; ok is false where it was taken out.
func (l *layout) hot(offset int64) (at int64, ok bool) {
	at = offset
	for _, g := range l.gaps {
		if offset < g.Offset {
			break
		}
		if offset < g.Offset+g.Bytes {
			return 0, false
		}
		at -= g.Bytes
	}
	return at, true
}

// made tells whether a cut that is written down was made in f, in which those before it were: its first line is not in its
// place any more. That line is a row, or has one behind it that went with it; no other line is like it.
func made(f io.ReaderAt, before []Cut, c *Cut) (bool, error) {
	offset := c.Ranges[0].Offset
	at := offset
	for _, b := range before {
		for _, r := range b.Ranges {
			switch {
			case offset >= r.Offset+r.Bytes:
				at -= r.Bytes
			case offset >= r.Offset:
				return false, fmt.Errorf("%s: two cuts of the ledger took line %d; it is derived: verify --repair-derived", CutsName, c.Ranges[0].Line+1)
			}
		}
	}
	line := make([]byte, c.FirstBytes+1)
	_, err := io.ReadFull(io.NewSectionReader(f, at, c.FirstBytes+1), line)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return true, nil // the ledger is shorter than that
	}
	if err != nil {
		return false, err
	}
	return line[c.FirstBytes] != '\n' || leafHex(line[:c.FirstBytes]) != c.First, nil
}

// readLayout tells how the ledger in f, nil where there is none, was cut. The last cut that is written down may not have been
// made yet; more only where f is an older ledger that somebody put back. pending is the first of them.
func readLayout(f *os.File, cuts []Cut) (l layout, pending *Cut, err error) {
	for i := range cuts {
		if f == nil {
			break // whoever took the ledger away took what was hot in it
		}
		done, err := made(f, cuts[:i], &cuts[i])
		if err != nil {
			return l, nil, err
		}
		if !done {
			return layoutOf(cuts[:i]), &cuts[i], nil
		}
	}
	return layoutOf(cuts), nil, nil
}
