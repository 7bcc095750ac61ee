package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/ncruces/go-sqlite3"

	"toolrun/archive"
	"toolrun/archive/ledger"
)

// load is one loading of rows.
type load struct {
	ctx context.Context
	d   *archive.Dir
	hot *ledger.Hot
	db  *sqlite3.Conn
	Range
	unread []error
}

// batch is what one block has, found by one goroutine and written by another.
type batch struct {
	block  *archive.Block
	rows   []place
	n      int // of rows that count
	damage []damaged
	end    archive.Position // behind its last whole line: a torn one may become whole
	torn   error            // what is wrong with that
	err    error
}

type place struct {
	place, offset int64
	fields        ledger.Fields
}

type damaged struct {
	place int64
	*ledger.Damage
}

// part names a part of a sealed month.
func part(c *ledger.Cut) string { return fmt.Sprintf("%s.%d", c.Month, c.Part) }

// missing are the parts of sealed months that the range reaches and that are not loaded. Those that were taken out of
// ledger.jsonl since the last time were loaded from there; where lines of it are damaged they have other places now, and the
// index does not fit. Nor does one that has rows of a pruned month.
func (l *load) missing(s *state) (list []*ledger.Cut, err error) {
	cuts := l.hot.Cuts()
	for i := s.cuts; i < len(cuts) && s.end.Place > 0; i++ {
		last := cuts[i].Ranges[len(cuts[i].Ranges)-1]
		if last.Line+last.Lines > s.end.Place {
			return nil, errUnfit
		}
		s.months[part(&cuts[i])] = true
		if damage, err := damagedLines(l.db, "", ledger.FileName); err != nil || len(damage) > 0 {
			return nil, errors.Join(errUnfit, err)
		}
	}
	for i := range cuts {
		if s.months[part(&cuts[i])] {
			if l.d.Pruned(&cuts[i]) {
				return nil, errUnfit
			}
			continue
		}
		if l.Hot {
			continue
		}
		reached, err := l.d.Reached(&cuts[i], l.Since, l.Until)
		if err != nil {
			if err := l.note(err); err != nil {
				return nil, err
			}
			continue
		}
		if reached {
			list = append(list, &cuts[i])
		}
	}
	return list, nil
}

// note keeps the damage of a sealed month; another error it returns.
func (l *load) note(err error) error {
	var damage *Damage
	if !errors.As(err, &damage) {
		return err
	}
	l.unread = append(l.unread, damage)
	return nil
}

// sealed loads parts of sealed months. One that cannot be read whole is not loaded, and tried again the next time.
func (l *load) sealed(s *state, months []*ledger.Cut) error {
	for _, m := range months {
		before := len(l.unread)
		_, err := l.blocks(archive.Position{}, func(p ledger.Piece) bool { return p.Cut != nil && part(p.Cut) == part(m) })
		if err != nil {
			return err
		}
		if len(l.unread) == before {
			s.months[part(m)] = true
		}
	}
	return nil
}

// rows loads what is behind s.end in ledger.jsonl, and moves it.
func (l *load) rows(s *state) error {
	end, err := l.blocks(s.end, func(p ledger.Piece) bool { return p.Cut == nil })
	if err != nil {
		return err
	}
	if end.Place > s.end.Place {
		s.end = end
	}
	s.cuts = len(l.hot.Cuts())
	s.last, err = lastLine(l.hot, s.end)
	return err
}

// blocks loads the rows of the wanted pieces from a position on, and returns the one behind them.
func (l *load) blocks(from archive.Position, wanted func(ledger.Piece) bool) (end archive.Position, err error) {
	batches, free, stop := make(chan *batch, 4), make(chan *batch, 8), make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(batches)
		l.read(from, wanted, batches, free, stop)
	}()
	defer func() { <-done }() // who closes the ledger finds nobody reading it
	defer close(stop)
	w, err := newWriter(l.db, l.d.Path())
	if err != nil {
		return end, err
	}
	defer w.close()
	for b := range batches {
		if b.err != nil {
			if err := l.note(b.err); err != nil {
				return end, err
			}
			continue
		}
		if err := l.ctx.Err(); err != nil {
			return end, err
		}
		if err := w.write(b); err != nil {
			return end, err
		}
		if b.torn != nil {
			if err := l.note(b.torn); err != nil {
				return end, err
			}
		}
		end = b.end
		select {
		case free <- b:
		default:
		}
	}
	return end, nil
}

// read finds rows until the end, or until stop is closed.
func (l *load) read(from archive.Position, wanted func(ledger.Piece) bool, batches chan<- *batch, free <-chan *batch, stop <-chan struct{}) {
	next := &batch{}
	buffer := func() []byte {
		select {
		case next = <-free:
			return next.block.Text
		default:
			return nil
		}
	}
	for block, err := range l.d.BlocksOf(l.hot, archive.Scope{}, from, wanted, buffer) {
		b := next
		next = &batch{}
		b.block, b.err, b.torn, b.n, b.damage = block, err, nil, 0, b.damage[:0]
		if err == nil {
			b.find()
		}
		select {
		case batches <- b:
		case <-stop:
			return
		}
	}
}

// find finds the rows of the block.
func (b *batch) find() {
	lines := 0
	for at, line := range b.block.Lines() {
		if line.Torn() {
			b.end = archive.Position{Place: line.Place, Offset: b.block.Offset + int64(at)}
			_, b.torn = line.Row()
			return
		}
		lines++
		if b.n == len(b.rows) {
			b.rows = append(b.rows, place{})
		}
		p := &b.rows[b.n]
		p.place, p.offset = line.Place, b.block.Offset+int64(at)
		if line.Good() && p.fields.Scan(line.Text) {
			b.n++
			continue
		}
		row, err := line.Row()
		if err == nil && !p.fields.Scan(row.Append(nil)) {
			err = &ledger.Damage{File: line.File, Line: line.No, Err: errors.New("values that no column holds")}
		}
		if err == nil {
			b.n++
			continue
		}
		var bad *ledger.Damage
		if errors.As(err, &bad) {
			b.damage = append(b.damage, damaged{line.Place, bad})
		}
	}
	b.end = b.block.End(lines)
}

// writer inserts rows; of a place that is there already, nothing.
type writer struct {
	dir                 string // the data directory
	row, offset, damage *sqlite3.Stmt
	columns             []ledger.Column
	shapes              []ledger.Shape
	text                []byte
}

func newWriter(db *sqlite3.Conn, dir string) (*writer, error) {
	w := &writer{dir: dir}
	keys := ledger.Keys()
	for _, key := range keys {
		c := ledger.ColumnOf(key)
		w.columns, w.shapes = append(w.columns, c), append(w.shapes, c.Shape())
	}
	for _, s := range []struct {
		stmt **sqlite3.Stmt
		sql  string
	}{
		{&w.row, "INSERT OR IGNORE INTO tool_calls (" + strings.Join(keys, ", ") + ", rowid) VALUES (" + strings.Repeat("?, ", len(keys)) + "?)"},
		{&w.offset, "INSERT OR IGNORE INTO offsets VALUES (?, ?)"},
		{&w.damage, "INSERT OR IGNORE INTO damaged VALUES (?, ?, ?, ?)"},
	} {
		stmt, _, err := db.Prepare(s.sql)
		if err != nil {
			w.close()
			return nil, err
		}
		*s.stmt = stmt
	}
	return w, nil
}

func (w *writer) close() {
	for _, s := range []*sqlite3.Stmt{w.row, w.offset, w.damage} {
		if s != nil {
			s.Close()
		}
	}
}

func (w *writer) write(b *batch) error {
	for i := range b.n {
		p := &b.rows[i]
		for n, c := range w.columns {
			if err := w.bind(n+1, w.shapes[n], p.fields.Raw(c)); err != nil {
				return fmt.Errorf("line %d of the ledger: %w", p.place+1, err)
			}
		}
		if err := errors.Join(w.row.BindInt64(len(w.columns)+1, p.place), w.row.Exec()); err != nil {
			return err
		}
		if err := errors.Join(w.offset.BindInt64(1, p.place), w.offset.BindInt64(2, p.offset), w.offset.Exec()); err != nil {
			return err
		}
	}
	for _, d := range b.damage {
		file, err := filepath.Rel(w.dir, d.File)
		if err != nil {
			file = d.File
		}
		if err := errors.Join(w.damage.BindInt64(1, d.place), w.damage.BindText(2, file), w.damage.BindInt(3, d.Line), w.damage.BindText(4, d.Err.Error()), w.damage.Exec()); err != nil {
			return err
		}
	}
	return nil
}

// bind gives a parameter the value of a column: strings as they are, but U+0000 as the six characters \u0000, since SQLite's
// functions end a text there; booleans as 0 and 1; arrays and objects as their JSON text.
func (w *writer) bind(n int, shape ledger.Shape, raw []byte) error {
	if len(raw) == 0 || raw[0] == 'n' {
		return w.row.BindNull(n)
	}
	switch shape {
	case ledger.ShapeString:
		text := raw[1 : len(raw)-1]
		if bytes.IndexByte(text, '\\') >= 0 {
			var err error
			if w.text, err = jsontext.AppendUnquote(w.text[:0], raw); err != nil {
				return err
			}
			if text = w.text; bytes.IndexByte(text, 0) >= 0 {
				text = bytes.ReplaceAll(text, []byte{0}, []byte(`\u0000`))
			}
		}
		return w.row.BindRawText(n, text)
	case ledger.ShapeInteger:
		v, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil {
			return err
		}
		return w.row.BindInt64(n, v)
	case ledger.ShapeBool:
		return w.row.BindBool(n, raw[0] == 't')
	case ledger.ShapeFloat:
		v, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			return err
		}
		return w.row.BindFloat(n, v)
	}
	return w.row.BindRawText(n, raw)
}
