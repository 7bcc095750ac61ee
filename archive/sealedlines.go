package archive

import (
	"errors"

	"toolrun/archive/ledger"
	"toolrun/archive/month"
)

// sealedReader reads the pieces of a ledger that are in sealed months, for one iteration. Its methods tell whether to go
// on.
type sealedReader struct {
	Scope
	d     *Dir
	spans map[month.Ref][]month.Span // what the index of a part named
	bad   map[month.Ref]bool         // parts that were told to be damaged
}

func (d *Dir) newSealedReader(s Scope) *sealedReader {
	return &sealedReader{Scope: s, d: d, spans: map[month.Ref][]month.Span{}, bad: map[month.Ref]bool{}}
}

// open returns the part of a piece and the lines of it that are to be read, as far as the index tells.
func (r *sealedReader) open(p ledger.Piece) (*month.Part, []month.Span, error) {
	ref := refOf(p.Cut)
	if r.d.hotOnly || r.bad[ref] {
		return nil, nil, nil
	}
	part, err := r.d.months.part(ref)
	if err != nil || part.Pruned || !r.reaches(part) {
		return nil, nil, err
	}
	if r.Session == "" && r.Call == "" {
		return part, []month.Span{{Line: p.No, Lines: p.Lines, Offset: p.At, Bytes: p.Bytes}}, nil
	}
	spans, ok := r.spans[ref]
	if !ok {
		if spans, err = part.Find(month.Key{Call: r.Call, Session: r.Session}); err != nil {
			return nil, nil, err
		}
		r.spans[ref] = spans
	}
	var list []month.Span
	for _, s := range spans {
		if s.Line+s.Lines > p.No && s.Line < p.No+p.Lines {
			list = append(list, s)
		}
	}
	return part, list, nil
}

// reaches tells whether rows of the part may have started in the range.
func (r *sealedReader) reaches(p *month.Part) bool {
	return (r.Until.IsZero() || p.FirstStart < ledger.FormatTime(r.Until)) && (r.Since.IsZero() || p.LastStart >= ledger.FormatTime(r.Since))
}

// damaged tells whether an error is damage, behind which it goes on; of a part that cannot be read at all nothing more is
// read.
func (r *sealedReader) damaged(p ledger.Piece, err error) bool {
	var damage *ledger.Damage
	if !errors.As(err, &damage) {
		return false
	}
	if damage.Line == 0 {
		r.bad[refOf(p.Cut)] = true
	}
	return true
}

// lines yields the lines of a piece.
func (r *sealedReader) lines(p ledger.Piece, yield func(*Line, error) bool) bool {
	part, spans, err := r.open(p)
	if err != nil {
		return yield(nil, err) && r.damaged(p, err)
	}
	for _, span := range spans {
		line := Line{Month: part.Ref.Month, File: part.Name(month.LedgerFile)}
		for raw, err := range part.Lines(span) {
			if err != nil {
				if !yield(nil, err) || !r.damaged(p, err) {
					return false
				}
				continue
			}
			line.Place, line.No = p.Line+raw.No-p.No, int(raw.No)+1
			line.take(&raw.Line)
			if raw.No >= p.No && raw.No < p.No+p.Lines && line.Place >= r.From && !yield(&line, nil) {
				return false
			}
		}
	}
	return true
}

// blocks yields a piece in blocks: those lines, or all of it a frame at a time.
func (r *sealedReader) blocks(p ledger.Piece, yield func(*Block, error) bool) bool {
	part, spans, err := r.open(p)
	if err != nil {
		return yield(nil, err) && r.damaged(p, err)
	}
	for _, span := range spans {
		b := Block{Position: Position{p.Line + span.Line - p.No, p.Offset + span.Offset - p.At}, Month: part.Ref.Month, File: part.Name(month.LedgerFile), No: int(span.Line) + 1}
		if r.Session != "" || r.Call != "" || r.From > p.Line {
			if !r.wanted(p, part, span, yield) {
				return false
			}
			continue
		}
		for text, err := range part.Frames(span) {
			if err != nil {
				if !yield(nil, err) || !r.damaged(p, err) {
					return false
				}
				continue
			}
			next := b
			next.Position = Position{p.Line + text.No - p.No, p.Offset + text.Offset - p.At}
			next.No, next.Text, next.bytes = int(text.No)+1, text.Text, int64(len(text.Text))
			if !yield(&next, nil) {
				return false
			}
		}
	}
	return true
}

// wanted yields few lines, each as a block of its own.
func (r *sealedReader) wanted(p ledger.Piece, part *month.Part, span month.Span, yield func(*Block, error) bool) bool {
	for raw, err := range part.Lines(span) {
		if err != nil {
			if !yield(nil, err) || !r.damaged(p, err) {
				return false
			}
			continue
		}
		b := Block{Position: Position{p.Line + raw.No - p.No, p.Offset + raw.Offset - p.At}, Month: part.Ref.Month, File: part.Name(month.LedgerFile), No: int(raw.No) + 1}
		b.long, b.bytes = raw.Long, raw.Length
		b.Text = append(append(b.Text, raw.Text...), '\n')
		if raw.No >= p.No && raw.No < p.No+p.Lines && b.Place >= r.From && !yield(&b, nil) {
			return false
		}
	}
	return true
}
