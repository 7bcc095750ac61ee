package audit

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"runtime"

	"toolrun/archive/evidence"
	"toolrun/archive/ledger"
	"toolrun/archive/month"
)

// checkedLine is a line of the ledger with what can be said of it alone.
type checkedLine struct {
	ledger.Line
	leaf  evidence.Hash
	whole bool  // a newline ends it
	bad   error // of a row: what no row may say

	sealed bool         // it is in a sealed month
	unread *unreadPiece // in place of a line: lines that cannot be read
}

// unreadPiece are lines of a sealed month that cannot be read, or were pruned.
type unreadPiece struct {
	ledger.Piece
	lastSeq int64 // of its rows, -1 where it is not known
}

// blockBytes is how much of the ledger is checked as one piece of work.
const blockBytes = 512 << 10

// block is some whole lines of the ledger, or its end.
type block struct {
	text  []byte
	lines []checkedLine // numbered from 1
	done  chan struct{}
	err   error
}

// checkedLines yields the lines of the ledger as it was when the iteration began, in their order: those of ledger.jsonl and
// of sealed months.
func (v *verifier) checkedLines() iter.Seq[checkedLine] {
	return func(yield func(checkedLine) bool) {
		hot, err := ledger.OpenHot(v.d.Path())
		if err != nil {
			yield(checkedLine{Line: ledger.Line{File: v.ledgerFile(), Err: err}})
			return
		}
		defer hot.Close()
		v.checkCuts(hot.Cuts())
		v.report.Bytes += hot.Size
		for _, p := range hot.Pieces() {
			at := piece{len(v.lines), hot.Path, int(p.No)}
			if p.Cut == nil {
				v.pieces = append(v.pieces, at)
				if !v.stream(hot.Path, hot.Reader(p, p.Offset), int(p.No), false)(yield) {
					return
				}
				continue
			}
			ref := month.Ref{Month: p.Cut.Month, Part: p.Cut.Part}
			m := v.month(ref)
			at.file = filepath.Join(v.d.Path(), ledger.ArchiveName, ref.Path(month.LedgerFile))
			v.pieces = append(v.pieces, at)
			if r := m.reader(p); r != nil {
				v.report.Bytes += p.Bytes
				if !v.stream(at.file, r, int(p.No), true)(yield) {
					return
				}
				continue
			}
			v.unreadLines(p, m)
			if !yield(checkedLine{unread: &unreadPiece{p, m.lastSeq(p)}}) {
				return
			}
		}
	}
}

// stream checks the lines that r holds. They are parsed and hashed in blocks on all processors, a few blocks ahead. before is
// how many lines come before them in the file. It tells whether to go on.
func (v *verifier) stream(path string, r io.Reader, before int, sealed bool) func(func(checkedLine) bool) bool {
	return func(yield func(checkedLine) bool) bool {
		workers := runtime.GOMAXPROCS(0)
		stop := make(chan struct{})
		defer close(stop)
		ahead := make(chan *block, 2*workers)
		work := make(chan *block)
		go func() {
			defer close(ahead)
			defer close(work)
			for b := range blocks(path, r) {
				for _, to := range []chan *block{ahead, work} {
					if b.err != nil && to != ahead {
						return
					}
					select {
					case to <- b:
					case <-stop:
						return
					}
				}
			}
		}()
		for range workers {
			go func() {
				for b := range work {
					b.check(path)
					close(b.done)
				}
			}()
		}
		for b := range ahead {
			if b.err != nil {
				yield(checkedLine{Line: ledger.Line{File: path, Err: b.err}})
				return false
			}
			<-b.done
			for _, line := range b.lines {
				line.No += before
				if damage, ok := line.Err.(*ledger.Damage); ok {
					damage.Line += before
				}
				line.sealed = sealed
				if !yield(line) {
					return false
				}
			}
			before += len(b.lines)
		}
		return true
	}
}

// blocks cuts the file behind newlines. A line of any length is in one block.
func blocks(path string, r io.Reader) iter.Seq[*block] {
	return func(yield func(*block) bool) {
		var rest []byte
		for {
			text := make([]byte, len(rest)+blockBytes)
			copy(text, rest)
			n, err := io.ReadFull(r, text[len(rest):])
			text = text[:len(rest)+n]
			if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
				yield(&block{err: fmt.Errorf("read %q: %w", path, err)})
				return
			}
			end := len(text)
			if err == nil {
				end = bytes.LastIndexByte(text[len(rest):], '\n') + 1 + len(rest)
				if end == len(rest) { // no newline came
					rest = text
					continue
				}
			}
			if len(text) > 0 && !yield(&block{text: text[:end], done: make(chan struct{})}) || err != nil {
				return
			}
			rest = bytes.Clone(text[end:])
		}
	}
}

func (b *block) check(path string) {
	rest := b.text
	for line := range ledger.LinesOf(path, bytes.NewReader(b.text), ledger.CheckLine) {
		c := checkedLine{Line: line}
		c.Text = nil
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			c.leaf, c.whole = evidence.LeafHash(rest[:i]), true
			rest = rest[i+1:]
		}
		if c.Row != nil {
			c.bad = checkRow(c.Row)
		}
		b.lines = append(b.lines, c)
	}
	b.text = nil
}
