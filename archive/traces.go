package archive

import (
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"toolrun/archive/ledger"
	"toolrun/archive/month"
	"toolrun/archive/trace"
)

// Trace yields every line of a run's trace, hot or sealed, as it was when the iteration began. A damaged line is yielded as
// a *[ledger.Damage] and the iteration goes on; after any other error, which is fs.ErrNotExist where there is no such
// trace, it ends.
func (d *Dir) Trace(id string) iter.Seq2[*trace.Line, error] {
	return func(yield func(*trace.Line, error) bool) {
		name, r, err := d.openTrace(id)
		if err != nil {
			yield(nil, err)
			return
		}
		defer r.Close()
		trace.LinesFrom(name, r)(yield)
	}
}

// openTrace opens a trace. One that is sealed meanwhile is in its month before it is taken away.
func (d *Dir) openTrace(id string) (name string, r io.ReadCloser, err error) {
	path := d.runPath(id)
	f, err := os.Open(path)
	if err == nil {
		info, err := f.Stat()
		if err != nil {
			f.Close()
			return "", nil, err
		}
		return path, readCloser{io.LimitReader(f, info.Size()), f}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) || d.hotOnly {
		return "", nil, err
	}
	r, _, err = d.months.run(id)
	if errors.Is(err, fs.ErrNotExist) {
		err = &os.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return path, r, err
}

type readCloser struct {
	io.Reader
	io.Closer
}

// Runs returns the ids of all traces, hot and sealed, sorted.
func (d *Dir) Runs() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(d.path, runsName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".jsonl"); ok {
			ids = append(ids, id)
		}
	}
	if !d.hotOnly {
		err := d.eachPart(func(p *month.Part) error {
			x, err := p.Index()
			if err != nil {
				return err
			}
			sealed, err := x.Runs()
			ids = append(ids, sealed...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// eachPart calls do with every part of a sealed month that can be opened; damage it passes over.
func (d *Dir) eachPart(do func(*month.Part) error) error {
	refs, err := month.List(d.months.folder)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		p, err := d.months.part(ref)
		if err == nil {
			err = do(p)
		}
		var damage *ledger.Damage
		if err != nil && !errors.As(err, &damage) {
			return err
		}
	}
	return nil
}

// sealedIDs calls add with what the table of ids has of every call and run of the sealed months.
func (d *Dir) sealedIDs(add func(uint64)) error {
	return d.eachPart(func(p *month.Part) error { return p.Hashes(add) })
}
