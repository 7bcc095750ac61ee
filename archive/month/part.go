package month

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"toolrun/archive/internal/jsonl"
	"toolrun/archive/internal/seekable"
	"toolrun/archive/ledger"
)

// ErrPruned means that the content of a part was given up; its manifest and its leaves are there.
var ErrPruned = errors.New("the month was pruned")

// Part is a part of a sealed month, open to be read. Its methods may be called from several goroutines.
type Part struct {
	Ref
	*Manifest
	SHA256 string // of the manifest
	Pruned bool

	folder string     // of all archives
	mu     sync.Mutex // guards what follows
	files  map[string]*os.File
	packed map[string]*seekable.Reader
	index  *Index
}

// Open opens a part of the folder archive of a data directory. Its files are opened when they are first asked for. An error
// is a *ledger.Damage that names the file, but for an error of reading.
func Open(folder string, r Ref) (*Part, error) {
	p := &Part{Ref: r, folder: folder, files: map[string]*os.File{}, packed: map[string]*seekable.Reader{}}
	var err error
	if p.Manifest, p.SHA256, err = ReadManifest(folder, r); err != nil {
		return nil, p.Damage(ManifestFile, 0, err)
	}
	// Who puts together what a question needs reads the manifest first: a changed one may not lead it past the month. The
	// seal's signature a verifier checks.
	seal, err := ReadSeal(folder, r)
	if err == nil && !strings.Contains(seal, "\n"+p.SHA256+"\n") {
		return nil, p.Damage(ManifestFile, 0, fmt.Errorf("%w: it is not the manifest that %s names", seekable.ErrDamaged, filepath.Base(p.Name(SealFile))))
	}
	p.Pruned = p.WasPruned()
	return p, nil
}

// maxNoteBytes bounds the small files of a part.
const maxNoteBytes = 64 << 10

// ReadSeal reads the signed note that lies beside the manifest of a part. folder is that of all archives.
func ReadSeal(folder string, r Ref) (string, error) {
	text, err := jsonl.ReadRegular(filepath.Join(folder, r.Path(SealFile)), maxNoteBytes)
	return string(text), err
}

// Verified is when a verifier last found all of the part good, "" where none did.
func (p *Part) Verified() string {
	text, err := jsonl.ReadRegular(p.Name(VerifiedFile), maxNoteBytes)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// WasPruned tells whether the content of the part has been given up, also since it was opened. As long as the lines are there
// it has not, whatever else is.
func (p *Part) WasPruned() bool {
	_, leaves := os.Lstat(p.Name(leavesFile))
	_, lines := os.Lstat(p.Name(LedgerFile))
	return leaves == nil && errors.Is(lines, fs.ErrNotExist)
}

// Close closes the files.
func (p *Part) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, f := range p.files {
		errs = append(errs, f.Close())
	}
	clear(p.files)
	clear(p.packed)
	p.index = nil
	return errors.Join(errs...)
}

// Name is the path of a file of the part.
func (p *Part) Name(file string) string { return filepath.Join(p.folder, p.Path(file)) }

// Damage says what is wrong with a file of the part. No is the line of its content, 0 for the file itself.
func (p *Part) Damage(file string, no int, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	if file == IndexFile && !p.Pruned {
		err = fmt.Errorf("%w; it is derived: verify --repair-derived", err)
	}
	return &ledger.Damage{File: p.Name(file), Line: no, Err: err}
}

// open, under the lock, opens a file and holds its length against the manifest: a cut file is not a shorter one.
func (p *Part) open(file string) (*os.File, error) {
	if f := p.files[file]; f != nil {
		return f, nil
	}
	if p.Pruned && file != IndexFile {
		return nil, ErrPruned
	}
	f, err := jsonl.OpenRegular(p.Name(file))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if want := p.Files[file].Bytes; err == nil && info.Size() != want {
		err = fmt.Errorf("%w: %d bytes, and the manifest says %d", seekable.ErrDamaged, info.Size(), want)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	p.files[file] = f
	return f, nil
}

// reader is the content of one of the three files.
func (p *Part) reader(file string) (*seekable.Reader, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.packed[file]; r != nil {
		return r, nil
	}
	f, err := p.open(file)
	if err != nil {
		return nil, err
	}
	r, err := seekable.NewReader(f, p.Files[file].Bytes)
	if err == nil && r.Size() != p.Files[file].Content {
		err = fmt.Errorf("%w: %d bytes of content, and the manifest says %d", seekable.ErrDamaged, r.Size(), p.Files[file].Content)
	}
	if err != nil {
		return nil, err
	}
	p.packed[file] = r
	return r, nil
}

// Index returns the index of the part, which is the one that the manifest names: another would lead past rows.
func (p *Part) Index() (*Index, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.index != nil {
		return p.index, nil
	}
	size := p.Files[IndexFile].Bytes
	f, err := p.open(IndexFile)
	if err == nil {
		err = p.checkHash(IndexFile, io.NewSectionReader(f, 0, size))
	}
	var x *Index
	if err == nil {
		x, err = openIndex(f, size)
	}
	if err != nil {
		return nil, p.Damage(IndexFile, 0, err)
	}
	p.index = x
	return x, nil
}

// Line is a line of the part's ledger; Text is valid until the next, Offset is that of the ledger.
type Line struct {
	No int64 // from 0
	jsonl.Line
}

// Frame is whole lines of the part's ledger.
type Frame struct {
	No     int64 // of the first, from 0
	Offset int64
	Text   []byte // with their ends
}

// Frames is Lines, a frame at a time.
func (p *Part) Frames(s Span) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		r, err := p.reader(LedgerFile)
		if err != nil {
			yield(Frame{}, p.Damage(LedgerFile, 0, err))
			return
		}
		f := Frame{No: s.Line, Offset: s.Offset}
		for end := s.Offset + s.Bytes; f.Offset < end; {
			i, begin := r.At(f.Offset)
			if i == r.Frames() {
				return
			}
			text, err := r.Frame(i, nil)
			if err != nil {
				from, bad := f.No, err
				f.Offset = r.Begin(i + 1)
				if f.No, err = p.lineAt(r, f.Offset); err != nil {
					f.No = p.Manifest.Lines
				}
				if !yield(Frame{}, p.lost(from, f.No, bad)) {
					return
				}
				continue
			}
			f.Text = text[f.Offset-begin : min(int64(len(text)), end-begin)]
			if !yield(f, nil) {
				return
			}
			f.No, f.Offset = f.No+int64(bytes.Count(f.Text, []byte{'\n'})), f.Offset+int64(len(f.Text))
		}
	}
}

// lost says that lines cannot be read, up to another, from 0.
func (p *Part) lost(from, to int64, err error) error {
	return p.Damage(LedgerFile, int(from)+1, fmt.Errorf("lines %d to %d cannot be read: %w", from+1, to, err))
}

// Lines yields lines that stand together. Where a frame is damaged the error is a *ledger.Damage, and what comes after it
// follows.
func (p *Part) Lines(s Span) iter.Seq2[*Line, error] {
	return func(yield func(*Line, error) bool) {
		r, err := p.reader(LedgerFile)
		if err != nil {
			yield(nil, p.Damage(LedgerFile, 0, err))
			return
		}
		end := s.Offset + s.Bytes
		if s.Bytes == 0 {
			end = r.Size() // the index knows of a call only where its line begins
		}
		part, base := r.Section(s.Offset, end), s.Offset
		line := Line{No: s.Line}
		for {
			first, bad := line.No, error(nil)
			for raw, err := range jsonl.Lines(part) {
				if err != nil {
					bad = err
					break
				}
				line.No, line.Line = first+int64(raw.No)-1, *raw
				line.Offset += base
				if !yield(&line, nil) {
					return
				}
				if line.No++; line.No >= s.Line+s.Lines {
					return
				}
			}
			if bad == nil {
				return
			}
			from := line.No
			at := part.Skip()
			base = at
			if line.No, err = p.lineAt(r, at); err != nil {
				line.No = p.Manifest.Lines
			}
			if !yield(nil, p.lost(from, line.No, bad)) || at >= end || line.No >= s.Line+s.Lines {
				return
			}
		}
	}
}

// lineAt is the first line of the frame that begins at a byte.
func (p *Part) lineAt(r *seekable.Reader, at int64) (int64, error) {
	x, err := p.Index()
	if err != nil {
		return 0, err
	}
	i, _ := r.At(at)
	if i == r.Frames() {
		return p.Manifest.Lines, nil
	}
	return x.firstLine(i)
}

// Key says which lines of a part are looked for.
type Key struct {
	Call    string // tool_call_id or client_call_id
	Session string
}

// Find returns where lines stand that may be what the key asks for, and every line that is no row, in their order. What is
// not among them is not in the part.
func (p *Part) Find(k Key) ([]Span, error) {
	x, err := p.Index()
	if err != nil {
		return nil, err
	}
	spans, err := x.damaged()
	if err != nil {
		return nil, p.Damage(IndexFile, 0, err)
	}
	var found []Span
	if k.Call != "" {
		found, err = x.calls(ledger.IDHash(k.Call))
	} else {
		found, err = x.session(ledger.IDHash(k.Session))
	}
	if err != nil {
		return nil, p.Damage(IndexFile, 0, err)
	}
	spans = append(spans, found...)
	for _, s := range spans {
		if !s.within(p.Manifest.Lines, p.Files[LedgerFile].Content) {
			return nil, p.Damage(IndexFile, 0, errIndex)
		}
	}
	slices.SortFunc(spans, func(a, b Span) int { return int(a.Line - b.Line) })
	return slices.CompactFunc(spans, func(a, b Span) bool { return a.Line == b.Line }), nil
}

// OpenObject opens an object; fs.ErrNotExist where the part does not hold it.
func (p *Part) OpenObject(hash string) (io.ReadCloser, int64, error) {
	key, err := objectHash(hash)
	if err != nil {
		return nil, 0, fs.ErrNotExist
	}
	return p.member(StoreFile, tableObjects, key, objectName(hash))
}

// OpenRun opens a trace; fs.ErrNotExist where the part does not hold it.
func (p *Part) OpenRun(id string) (io.ReadCloser, int64, error) {
	return p.member(RunsFile, tableRuns, ledger.RunHash(id), runName(id))
}

// member opens a file of a tar by the index; its head in the tar has to have the name.
func (p *Part) member(file string, table int, key uint64, name string) (io.ReadCloser, int64, error) {
	x, err := p.Index()
	if err != nil {
		return nil, 0, err
	}
	places, err := x.find(table, key)
	if err != nil {
		return nil, 0, p.Damage(IndexFile, 0, err)
	}
	for _, at := range places {
		r, err := p.reader(file)
		if err != nil {
			return nil, 0, p.unread(file, err)
		}
		const block = 512
		if at.offset < block || at.size < 0 || at.size > r.Size() || at.offset > r.Size()-at.size {
			return nil, 0, p.Damage(IndexFile, 0, errIndex)
		}
		content := r.Section(at.offset-block, at.offset+at.size) // which unpacks the frame of both once
		head := make([]byte, block)
		if _, err := io.ReadFull(content, head); err != nil {
			return nil, 0, p.unread(file, err)
		}
		if string(bytes.TrimRight(head[:100], "\x00")) == name {
			return io.NopCloser(&memberReader{p, file, content}), at.size, nil
		}
	}
	return nil, 0, fs.ErrNotExist
}

// memberReader is the content of a file of a tar: what cannot be read of it is damage of that.
type memberReader struct {
	p    *Part
	file string
	r    io.Reader
}

func (m *memberReader) Read(b []byte) (int, error) {
	n, err := m.r.Read(b)
	if err != nil && err != io.EOF {
		err = m.p.unread(m.file, err)
	}
	return n, err
}

// HasCall tells whether the index knows a call, also where the part was pruned.
func (p *Part) HasCall(id string) (bool, error) {
	x, err := p.Index()
	if err != nil {
		return false, err
	}
	found, err := x.calls(ledger.IDHash(id))
	return len(found) > 0, err
}

// SessionRows is how many rows of a session the index knows, also where the part was pruned.
func (p *Part) SessionRows(id string) (n int64, err error) {
	x, err := p.Index()
	if err != nil {
		return 0, err
	}
	spans, err := x.session(ledger.IDHash(id))
	for _, s := range spans {
		n += s.Lines
	}
	return n, err
}

// HasCallOf is HasCall of a call of a session.
func (p *Part) HasCallOf(call, session string) (bool, error) {
	x, err := p.Index()
	if err != nil {
		return false, err
	}
	lines, err := x.calls(ledger.IDHash(call))
	if err != nil {
		return false, err
	}
	spans, err := x.session(ledger.IDHash(session))
	return slices.ContainsFunc(lines, func(line Span) bool {
		return slices.ContainsFunc(spans, func(s Span) bool { return line.Line >= s.Line && line.Line < s.Line+s.Lines })
	}), err
}

// HasRun is HasCall of a run.
func (p *Part) HasRun(id string) (bool, error) {
	x, err := p.Index()
	if err != nil {
		return false, err
	}
	found, err := x.find(tableRuns, ledger.RunHash(id))
	return len(found) > 0, err
}

// unread says which file cannot be read; a pruned one has nothing any more.
func (p *Part) unread(file string, err error) error {
	if errors.Is(err, ErrPruned) {
		return fmt.Errorf("%w: %w", ErrPruned, fs.ErrNotExist)
	}
	return p.Damage(file, 0, err)
}

// Members yields every file of a tar of the part, RunsFile or StoreFile, with what its name says: a run id or a hash. The
// content is valid until the next.
func (p *Part) Members(file string) iter.Seq2[Member, error] {
	return func(yield func(Member, error) bool) {
		r, err := p.reader(file)
		if err != nil {
			yield(Member{}, p.Damage(file, 0, err))
			return
		}
		section := r.Section(0, r.Size())
		t := tar.NewReader(section)
		for offset := int64(512); ; {
			head, err := t.Next()
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(Member{}, p.Damage(file, 0, err))
				return
			}
			base := filepath.Base(head.Name)
			m := Member{Name: base[:max(strings.LastIndexByte(base, '.'), 0)], Path: head.Name, Offset: offset, Bytes: head.Size, Reader: t}
			if !yield(m, nil) {
				return
			}
			offset += (head.Size+511)/512*512 + 512 // each has one head of one block
		}
	}
}

// Member is a file of a tar.
type Member struct {
	Name   string // run id or hash
	Path   string // in the tar
	Offset int64  // of its content
	Bytes  int64
	io.Reader
}

// Content reads the lines of the part as they are, from one byte to another.
func (p *Part) Content(from, to int64) (io.Reader, error) {
	r, err := p.reader(LedgerFile)
	if err != nil {
		return nil, p.Damage(LedgerFile, 0, err)
	}
	return r.Section(from, to), nil
}

// Hashes calls do with what the table of ids has of every call and run of the part.
func (p *Part) Hashes(do func(uint64)) error {
	x, err := p.Index()
	if err != nil {
		return err
	}
	return x.hashes(do)
}
