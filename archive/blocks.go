package archive

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"time"

	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
)

// blockBytes is how much of the ledger is read at once.
const blockBytes = 256 << 10

// Position is a place of the whole ledger, and the byte of it where that line begins.
type Position struct{ Place, Offset int64 }

// Block is a run of whole lines of the ledger, for those that judge lines faster than one by one. Lines that a question
// does not want cost it next to nothing so.
type Block struct {
	Position        // of its first line
	Month    string // as of a Line
	File     string
	No       int    // of its first line in File, from 1
	Text     []byte // the lines with their ends; the last one of the ledger may lack its own
	long     bool   // one line that is too long; Text has nothing of it
	bytes    int64  // length in the ledger
}

// End is the position behind a block whose lines are n.
func (b *Block) End(n int) Position { return Position{b.Place + int64(n), b.Offset + b.bytes} }

// Lines yields the lines of a block, and the byte of Text where each begins.
func (b *Block) Lines() iter.Seq2[int, *Line] {
	return func(yield func(int, *Line) bool) {
		line := Line{Place: b.Place, Month: b.Month, File: b.File, No: b.No}
		if b.long {
			line.bad = jsonl.ErrLong
			yield(0, &line)
			return
		}
		for at := 0; at < len(b.Text); {
			end := bytes.IndexByte(b.Text[at:], '\n')
			raw := jsonl.Line{Torn: end < 0}
			next := at + end + 1
			if raw.Torn {
				next = len(b.Text)
				raw.Text = b.Text[at:]
			} else {
				raw.Text = b.Text[at : at+end]
			}
			n := len(raw.Text)
			raw.Text = bytes.TrimSuffix(raw.Text, []byte("\r"))
			raw.Long = len(raw.Text) > jsonl.MaxLineBytes
			line.Text, line.bad, line.cr = raw.Text, raw.Damaged(), !raw.Torn && len(raw.Text) < n
			if raw.Torn {
				line.bad = jsonl.ErrTorn
			}
			if !yield(at, &line) {
				return
			}
			line.Place++
			line.No++
			at = next
		}
	}
}

// Good tells whether nothing is wrong with the line as far as its bytes tell; Row says more.
func (l *Line) Good() bool { return l.bad == nil }

// Torn tells whether the line lacks its end: it may be in the making.
func (l *Line) Torn() bool { return l.bad == jsonl.ErrTorn }

// Blocks yields the ledger as Lines does, from a position on, in blocks. buffer gives the memory for each, and may be nil.
func (d *Dir) Blocks(s Scope, from Position, buffer func() []byte) iter.Seq2[*Block, error] {
	return func(yield func(*Block, error) bool) {
		hot, err := ledger.OpenHot(d.path)
		if err != nil {
			yield(nil, err)
			return
		}
		defer hot.Close()
		d.BlocksOf(hot, s, from, nil, buffer)(yield)
	}
}

// BlocksOf is Blocks of the ledger as it was when hot was opened, of the pieces that are wanted; nil wants all.
func (d *Dir) BlocksOf(hot *ledger.Hot, s Scope, from Position, wanted func(ledger.Piece) bool, buffer func() []byte) iter.Seq2[*Block, error] {
	return func(yield func(*Block, error) bool) {
		s.From = from.Place
		r := d.newSealedReader(s)
		for _, p := range hot.Pieces() {
			if p.Lines >= 0 && p.Line+p.Lines <= from.Place || wanted != nil && !wanted(p) {
				continue
			}
			if p.Cut != nil {
				if !r.blocks(p, yield) {
					return
				}
				continue
			}
			b := Block{Position: Position{p.Line, p.Offset}, File: hot.Path, No: int(p.No) + 1}
			if from.Place > p.Line {
				b.No += int(from.Place - p.Line)
				b.Position = from
			}
			if !blocks(hot.Reader(p, b.Offset), b, buffer, yield) {
				return
			}
		}
	}
}

// Reached tells whether rows of a sealed part may have started in the range; false too where there is none to be read. The
// error is of a part that cannot be read, a *ledger.Damage.
func (d *Dir) Reached(c *ledger.Cut, since, until time.Time) (bool, error) {
	r := d.newSealedReader(Scope{Since: since, Until: until})
	part, _, err := r.open(ledger.Piece{Cut: c})
	return part != nil && !part.Pruned && r.reaches(part), err
}

// blocks cuts what r holds into blocks, the first of which begins as b says.
func blocks(r io.Reader, b Block, buffer func() []byte, yield func(*Block, error) bool) bool {
	var rest []byte // behind the last newline of the block before
	for {
		var text []byte
		if buffer != nil {
			text = buffer()
		}
		text = append(text[:0], rest...)
		for {
			if cap(text)-len(text) < blockBytes/2 {
				text = append(make([]byte, 0, max(blockBytes, 2*len(text))+blockBytes), text...)
			}
			n, err := io.ReadFull(r, text[len(text):min(cap(text), max(len(text)+blockBytes/2, blockBytes))])
			seen := len(text)
			text = text[:seen+n]
			if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
				if len(text) == 0 {
					return true
				}
				next := b
				next.Text, next.bytes = text, int64(len(text))
				return yield(&next, nil)
			}
			if err != nil {
				yield(nil, err)
				return false
			}
			if end := bytes.LastIndexByte(text[seen:], '\n'); end >= 0 {
				end += seen + 1
				rest = append(rest[:0], text[end:]...)
				text = text[:end]
				break
			}
			if len(text) > jsonl.MaxLineBytes+2 {
				skipped, more, err := skipLine(r, &rest)
				if err != nil {
					yield(nil, err)
					return false
				}
				next := b
				next.long, next.bytes = true, int64(len(text))+skipped
				if !yield(&next, nil) {
					return false
				}
				if !more {
					return true
				}
				b.Position, b.No = next.End(1), b.No+1
				text = nil
				break
			}
		}
		if text == nil {
			continue
		}
		next := b
		next.Text, next.bytes = text, int64(len(text))
		if !yield(&next, nil) {
			return false
		}
		lines := bytes.Count(text, []byte{'\n'})
		b.Position, b.No = next.End(lines), b.No+lines
	}
}

// skipLine reads to the end of a line and gives what it read behind it in rest. skipped has the newline; more is false at the
// end of what there is.
func skipLine(r io.Reader, rest *[]byte) (skipped int64, more bool, err error) {
	part := make([]byte, 64<<10)
	*rest = (*rest)[:0]
	for {
		n, err := r.Read(part)
		if end := bytes.IndexByte(part[:n], '\n'); end >= 0 {
			*rest = append(*rest, part[end+1:n]...)
			return skipped + int64(end) + 1, true, nil
		}
		skipped += int64(n)
		if err == io.EOF {
			return skipped, false, nil
		}
		if err != nil {
			return skipped, true, err
		}
	}
}
