package month

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"toolrun/archive/evidence"
	"toolrun/archive/internal/jsonl"
	"toolrun/archive/internal/seekable"
	"toolrun/archive/ledger"
	"toolrun/archive/store"
)

// ledgerFrame is how much of a ledger is one frame: less has a worse ratio than zstd -3, and of more a row is not taken out in
// two milliseconds.
const ledgerFrame = 2 << 20

// Content is what a part is made of.
type Content struct {
	Ref
	Now    time.Time
	Hot    *ledger.Hot
	Ranges []ledger.Range // whole lines of ledger.jsonl, none over jsonl.MaxLineBytes
	Runs   []Run          // in the order in which they are kept
	Store  *store.Store
	Signed Signed
	Leave  int64 // what has to stay free on the file system; 0: nothing
	// Progress is told what was done so far of a step, in bytes.
	Progress func(step string, done, total int64)
}

// Run is a trace: a file that will not change any more.
type Run struct {
	ID      string
	Path    string
	Bytes   int64
	Objects []string // that it names and that have to be there
	Defines []string // and those that may
	Gone    bool     // it was taken away from Path already: the part, which is signed, is the only one that has it
}

// Signed is what a checkpoint says of the lines.
type Signed interface {
	Leaves(from, to int64) ([]evidence.Hash, error)
	Head(n int64) (evidence.Tree, error)
}

// ErrUnsigned means that a line is not what was signed in its place: nothing may be sealed.
var ErrUnsigned = errors.New("a line is not what was signed")

// Write makes the files of a part in folder, each synced, the manifest last. Nothing of it is checked yet: see Compare.
func Write(ctx context.Context, folder string, c *Content) (*Manifest, error) {
	w := &writing{Content: c, ctx: ctx, folder: folder, m: &Manifest{
		Format: Format, Month: c.Month, Part: c.Part, SealedAt: ledger.FormatTime(c.Now), Files: map[string]File{}, Lost: []Lost{},
	}}
	for _, step := range []func() error{w.ledger, w.signed, w.runs, w.store, w.index} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("seal %v: %w", c.Ref, err)
		}
	}
	text, _, err := w.m.encode()
	if err == nil {
		_, err = w.file(ManifestFile, func(out io.Writer) error { _, err := out.Write(text); return err })
	}
	if err != nil {
		return nil, fmt.Errorf("seal %v: %w", c.Ref, err)
	}
	return w.m, nil
}

// writing is one Write.
type writing struct {
	*Content
	ctx    context.Context
	folder string
	m      *Manifest
	got    gathered
}

// file makes one file of the part and syncs it.
func (w *writing) file(name string, write func(io.Writer) error) (File, error) {
	path := filepath.Join(w.folder, filepath.Base(w.Path(name)))
	f, err := jsonl.OpenAppend(path, unix.O_TRUNC)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	out := &output{f: f, sum: sha256.New(), leave: w.Leave}
	if err := write(out); err != nil {
		return File{}, err
	}
	if err := jsonl.Calls.Fsync(int(f.Fd())); err != nil {
		return File{}, &os.PathError{Op: "fsync", Path: path, Err: err}
	}
	return File{Bytes: out.n, SHA256: hex.EncodeToString(out.sum.Sum(nil))}, nil
}

// output is a file that is written and hashed.
type output struct {
	f     *os.File
	sum   hash.Hash
	n     int64
	leave int64
}

func (o *output) Write(b []byte) (int, error) {
	if o.leave > 0 {
		if free, known := Free(o.f.Name()); known && free < o.leave+int64(len(b)) {
			return 0, ErrSpace
		}
	}
	o.sum.Write(b)
	o.n += int64(len(b))
	for rest := b; len(rest) > 0; {
		n, err := jsonl.Calls.Write(int(o.f.Fd()), rest)
		if err == unix.EINTR {
			continue
		}
		if err == nil && n == 0 {
			err = jsonl.ErrShort
		}
		if err != nil {
			return 0, &os.PathError{Op: "write", Path: o.f.Name(), Err: err}
		}
		rest = rest[n:]
	}
	return len(b), nil
}

// ledger writes the lines, and gathers what they say.
func (w *writing) ledger() error {
	var all []*facts
	file, err := w.file(LedgerFile, func(out io.Writer) error {
		z := seekable.NewWriter(out)
		err := w.blocks(func(block []byte) error {
			f := new(facts)
			all = append(all, f)
			return z.Add(block, func(b []byte) { *f = *factsOf(b) })
		})
		return errors.Join(err, z.Close())
	})
	if err != nil {
		return err
	}
	for _, f := range all {
		w.got.add(f)
	}
	file.Content = w.got.bytes
	w.m.Files[LedgerFile] = file
	w.m.Rows, w.m.Lines, w.m.Sessions = w.got.rows, int64(len(w.got.leaves)), w.got.end()
	w.m.FirstStart, w.m.LastStart = w.got.start[0], w.got.start[1]
	return nil
}

// blocks cuts the lines into blocks, each of whole lines.
func (w *writing) blocks(do func([]byte) error) error {
	var readers []io.Reader
	total, done := int64(0), int64(0)
	for _, r := range w.Ranges {
		at, ok := w.Hot.Place(r.Offset)
		if !ok {
			return fmt.Errorf("line %d is not in %q", r.Line+1, w.Hot.Path)
		}
		readers = append(readers, io.NewSectionReader(w.Hot, at, r.Bytes))
		total += r.Bytes
	}
	in := io.MultiReader(readers...)
	var rest []byte
	for {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		block := seekable.Buffer(len(rest) + ledgerFrame)
		copy(block, rest)
		n, err := io.ReadFull(in, block[len(rest):])
		block = block[:len(rest)+n]
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !last {
			return err
		}
		end := bytes.LastIndexByte(block, '\n') + 1
		if last && end != len(block) {
			return fmt.Errorf("%q ends in the middle of a line", w.Hot.Path)
		}
		rest = bytes.Clone(block[end:])
		if end > 0 {
			if err := do(block[:end]); err != nil {
				return err
			}
		}
		if last {
			if done += int64(end); done != total {
				return fmt.Errorf("%q has %d bytes of %d", w.Hot.Path, done, total)
			}
			return nil
		}
		done += int64(end)
		w.Progress("ledger", done, total)
	}
}

// signed holds the lines against what was signed of them, and notes their ranges and the heads of the tree around them.
func (w *writing) signed() error {
	at := 0
	for _, r := range w.Ranges {
		if int64(len(w.got.leaves)-at) < r.Lines {
			return fmt.Errorf("%d lines where %d were due", len(w.got.leaves), r.Lines)
		}
		signed, err := w.Signed.Leaves(r.Line, r.Line+r.Lines)
		if err != nil {
			return err
		}
		out := Range{Range: r, FirstSeq: -1, LastSeq: -1}
		for i, leaf := range signed {
			if w.got.leaves[at+i] != leaf {
				return fmt.Errorf("%w: %s:%d", ErrUnsigned, w.Hot.Path, w.Hot.LineNo(r.Line+int64(i))+1)
			}
			if seq := w.got.seqs[at+i]; seq >= 0 {
				if out.FirstSeq < 0 {
					out.FirstSeq = seq
				}
				out.LastSeq = max(out.LastSeq, seq)
			}
		}
		w.m.Ranges = append(w.m.Ranges, out)
		at += len(signed)
	}
	if at != len(w.got.leaves) {
		return fmt.Errorf("%d lines where %d were due", len(w.got.leaves), at)
	}
	return w.heads()
}

func (w *writing) heads() error {
	before, after := int64(0), int64(0)
	if n := len(w.Ranges); n > 0 {
		before, after = w.Ranges[0].Line, w.Ranges[n-1].Line+w.Ranges[n-1].Lines
	}
	for _, h := range []struct {
		n  int64
		to *Tree
	}{{before, &w.m.TreeBefore}, {after, &w.m.TreeAfter}} {
		tree, err := w.Signed.Head(h.n)
		if err != nil {
			return err
		}
		*h.to = Tree{tree.N, tree.Hash.String()}
	}
	for _, r := range w.m.Ranges {
		first, last := r.FirstSeq, r.LastSeq
		if first < 0 {
			continue
		}
		if w.m.FirstSeq == nil {
			w.m.FirstSeq, w.m.LastSeq = &first, &last
		}
		*w.m.FirstSeq, *w.m.LastSeq = min(*w.m.FirstSeq, first), max(*w.m.LastSeq, last)
	}
	return nil
}

func (w *writing) index() error {
	file, err := w.file(IndexFile, func(out io.Writer) error {
		_, err := out.Write(w.got.index.encode())
		return err
	})
	file.Content = file.Bytes
	w.m.Files[IndexFile] = file
	return err
}
