package audit

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"

	"toolrun/archive/evidence"
	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
)

// checkedLine is a line of the ledger with what can be said of it alone.
type checkedLine struct {
	ledger.Line
	leaf  evidence.Hash
	whole bool  // a newline ends it
	bad   error // of a row: what no row may say
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

// checkedLines yields the lines of the ledger as it was when the iteration began, in their order. They are parsed and
// hashed in blocks on all processors, a few blocks ahead.
func (v *verifier) checkedLines() iter.Seq[checkedLine] {
	return func(yield func(checkedLine) bool) {
		path := v.ledgerFile()
		f, size, err := jsonl.Snapshot(path, filepath.Join(v.d.Path(), ledger.LockName))
		if err != nil {
			yield(checkedLine{Line: ledger.Line{File: path, Err: err}})
			return
		}
		if f == nil {
			return
		}
		defer f.Close()
		v.report.Bytes += size
		workers := runtime.GOMAXPROCS(0)
		stop := make(chan struct{})
		defer close(stop)
		ahead := make(chan *block, 2*workers)
		work := make(chan *block)
		go func() {
			defer close(ahead)
			defer close(work)
			for b := range blocks(f, size) {
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
		before := 0
		for b := range ahead {
			if b.err != nil {
				yield(checkedLine{Line: ledger.Line{File: path, Err: b.err}})
				return
			}
			<-b.done
			for _, line := range b.lines {
				line.No += before
				if damage, ok := line.Err.(*ledger.Damage); ok {
					damage.Line += before
				}
				if !yield(line) {
					return
				}
			}
			before += len(b.lines)
		}
	}
}

// blocks cuts the file behind newlines. A line of any length is in one block.
func blocks(f *os.File, size int64) iter.Seq[*block] {
	return func(yield func(*block) bool) {
		r := io.NewSectionReader(f, 0, size)
		var rest []byte
		for {
			text := make([]byte, len(rest)+blockBytes)
			copy(text, rest)
			n, err := io.ReadFull(r, text[len(rest):])
			text = text[:len(rest)+n]
			if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
				yield(&block{err: fmt.Errorf("read %q: %w", f.Name(), err)})
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
