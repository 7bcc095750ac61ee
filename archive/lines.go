package archive

import (
	"bytes"
	"iter"
	"time"

	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
)

// Scope says which lines of the ledger are read. The zero value is all of them. It is there to save reading: of
// ledger.jsonl every line from From on is yielded, so that who wants only some rows still looks at each.
type Scope struct {
	From    int64     // lines before this place are left out
	Since   time.Time // sealed months of which no row started in [Since, Until) are left out; zero: no bound
	Until   time.Time
	Session string // of sealed months, only lines that their index names for this session_id, and damaged ones
	Call    string // or for this tool_call_id or client_call_id
}

// Line is one line of the ledger as it stands there. It is valid until the next one is read.
type Line struct {
	Place int64  // of the whole ledger, from 0, sealed lines counted: never changes, and is the leaf of the tree
	Month string // "2026-11": of the sealed month that holds it; "" where it is hot
	File  string // for messages
	No    int    // in File, from 1
	Text  []byte // without its end
	cr    bool   // a carriage return stands before its end
	bad   error  // what is wrong with it before it is parsed
}

// Row parses the line. The error is a *[ledger.Damage], which names it.
func (l *Line) Row() (*ledger.Row, error) {
	row, err := (*ledger.Row)(nil), l.bad
	if err == nil {
		row, err = ledger.ParseRow(l.Text)
	}
	if err != nil {
		return nil, &ledger.Damage{File: l.File, Line: l.No, Err: err}
	}
	return row, nil
}

// take makes it the line that was read.
func (l *Line) take(raw *jsonl.Line) {
	l.Text, l.bad = raw.Text, raw.Damaged()
	l.cr = !raw.Torn && !raw.Long && raw.Length == int64(len(raw.Text))+2
	if raw.Torn {
		l.bad = jsonl.ErrTorn
	}
}

// exact is a copy of the line as it is signed, which a carriage return at its end belongs to.
func (l *Line) exact() []byte {
	text := bytes.Clone(l.Text)
	if l.cr {
		text = append(text, '\r')
	}
	return text
}

// Lines yields the lines of the ledger, sealed and hot, in their order, which is that of seq, as it was when the iteration
// began:
//
//	for line, err := range d.Lines(archive.Scope{From: loaded}) {
//		if err != nil { … }               // a *ledger.Damage: something that cannot be read, and the iteration goes on; else the end
//		if !bytes.Contains(line.Text, …) { continue } // the raw line is there before it is parsed
//		row, err := line.Row()            // err: a *ledger.Damage for this line only
//	}
//
// A line that is no row is yielded like any other, and Row tells. A sealed month that cannot be read is one *ledger.Damage
// with the name of its file, and its lines are missing; of one that was pruned there are no lines. Where the directory was
// opened with Options.Hot only the lines of ledger.jsonl are yielded.
func (d *Dir) Lines(s Scope) iter.Seq2[*Line, error] {
	return func(yield func(*Line, error) bool) {
		hot, err := ledger.OpenHot(d.path)
		if err != nil {
			yield(nil, err)
			return
		}
		defer hot.Close()
		r := d.newSealedReader(s)
		for _, p := range hot.Pieces() {
			switch {
			case p.Lines >= 0 && p.Line+p.Lines <= s.From:
			case p.Cut != nil && !r.lines(p, yield), p.Cut == nil && !hotLines(hot, p, s, yield):
				return
			}
		}
	}
}

// hotLines yields the lines of a piece of ledger.jsonl and tells whether to go on.
func hotLines(hot *ledger.Hot, p ledger.Piece, s Scope, yield func(*Line, error) bool) bool {
	line := Line{File: hot.Path}
	for raw, err := range jsonl.Lines(hot.Reader(p, p.Offset)) {
		if err != nil {
			yield(nil, err)
			return false
		}
		line.Place, line.No = p.Line+int64(raw.No)-1, int(p.No)+raw.No
		line.take(raw)
		if line.Place >= s.From && !yield(&line, nil) {
			return false
		}
	}
	return true
}
