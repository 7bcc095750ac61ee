package archive

import (
	"errors"
	"io"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"sync"

	"toolrun/archive/evidence"
	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
	"toolrun/archive/month"
)

// months are the parts of sealed months that were asked for, open.
type months struct {
	folder string

	mu    sync.Mutex // guards what follows
	parts map[month.Ref]*month.Part
	stale []*month.Part // pruned since; somebody may still read them
}

func newMonths(dir string) *months {
	return &months{folder: filepath.Join(dir, ledger.ArchiveName), parts: map[month.Ref]*month.Part{}}
}

// part opens a part. The error is a *ledger.Damage that names its file, or of reading.
func (m *months) part(r month.Ref) (*month.Part, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.parts[r]
	if old != nil && (old.Pruned || !old.WasPruned()) {
		return old, nil
	}
	p, err := month.Open(m.folder, r)
	if err != nil {
		return nil, err
	}
	if old != nil {
		m.stale = append(m.stale, old)
	}
	m.parts[r] = p
	return p, nil
}

func (m *months) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.parts {
		m.stale = append(m.stale, p)
	}
	for _, p := range m.stale {
		p.Close()
	}
	clear(m.parts)
	m.stale = nil
}

// find asks the parts, the newest month first, until one has what is looked for. A part that cannot be read keeps no other
// from being asked; where none has it, the error is of that one, else fs.ErrNotExist.
func (m *months) find(open func(*month.Part) (io.ReadCloser, int64, error)) (io.ReadCloser, int64, error) {
	refs, err := month.List(m.folder)
	if err != nil {
		return nil, 0, err
	}
	missing := error(fs.ErrNotExist)
	for _, ref := range slices.Backward(refs) {
		p, err := m.part(ref)
		if err == nil {
			var r io.ReadCloser
			var n int64
			if r, n, err = open(p); err == nil {
				return r, n, nil
			}
		}
		if !errors.Is(err, fs.ErrNotExist) || errors.Is(missing, fs.ErrNotExist) && errors.Is(err, month.ErrPruned) {
			missing = err
		}
	}
	return nil, 0, missing
}

// object opens an object that a sealed month holds.
func (m *months) object(hash string) (io.ReadCloser, int64, error) {
	return m.find(func(p *month.Part) (io.ReadCloser, int64, error) { return p.OpenObject(hash) })
}

// run opens a trace that a sealed month holds.
func (m *months) run(id string) (io.ReadCloser, int64, error) {
	return m.find(func(p *month.Part) (io.ReadCloser, int64, error) { return p.OpenRun(id) })
}

// Unread yields the parts of which no row is read: those that were pruned, and with Options.Hot all. What their index knows
// was on the record.
func (d *Dir) Unread() iter.Seq[*month.Part] {
	return func(yield func(*month.Part) bool) {
		refs, _ := month.List(d.months.folder) // it only says more of what is not there
		for _, ref := range refs {
			if p, err := d.months.part(ref); err == nil && (p.Pruned || d.hotOnly) && !yield(p) {
				return
			}
		}
	}
}

// UnreadWith is a part of Unread that has a call, nil where none has it. The id is the whole one.
func (d *Dir) UnreadWith(call string) *month.Part {
	for p := range d.Unread() {
		if had, err := p.HasCall(call); err == nil && had {
			return p
		}
	}
	return nil
}

// PrunedIn yields the months of which rows were pruned that a scope reaches, in their order, and how many of each: those of its
// session where it names one, else all.
func (d *Dir) PrunedIn(s Scope) iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		r := d.newSealedReader(s)
		last, rows := "", int64(0)
		for p := range d.Unread() {
			if !p.Pruned || !r.reaches(p) {
				continue
			}
			n := p.Rows
			if s.Session != "" {
				n, _ = p.SessionRows(s.Session) // verify names an index that cannot be read
			}
			if last != p.Ref.Month && rows > 0 {
				if !yield(last, rows) {
					return
				}
				rows = 0
			}
			last, rows = p.Ref.Month, rows+n
		}
		if rows > 0 {
			yield(last, rows)
		}
	}
}

// writeSeal puts the signed note of a part beside its manifest, if it is not there.
func (m *months) writeSeal(ref month.Ref, seal *evidence.MonthSeal) error {
	if have, err := month.ReadSeal(m.folder, ref); err == nil && have == seal.Signed {
		return nil
	}
	return jsonl.Replace(filepath.Join(m.folder, ref.Path(month.SealFile)), []byte(seal.Signed))
}

// Months returns the parts of the sealed months that are there, in their order.
func (d *Dir) Months() ([]month.Ref, error) { return month.List(d.months.folder) }

// Part opens a part of a sealed month. It is closed with the directory. The error is a *ledger.Damage that names its file, or
// of reading.
func (d *Dir) Part(r month.Ref) (*month.Part, error) { return d.months.part(r) }

// Pruned tells whether the part that made a cut was given up.
func (d *Dir) Pruned(c *ledger.Cut) bool {
	p, err := d.months.part(refOf(c))
	return err == nil && p.Pruned
}

// refOf is the part that made a cut.
func refOf(c *ledger.Cut) month.Ref { return month.Ref{Month: c.Month, Part: c.Part} }
