package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
	"toolrun/archive/month"
	"toolrun/archive/store"
)

// resume finishes what a process that died had begun: a part with a manifest is compared with what is hot, signed and its
// lines cut out; what has none begins anew.
func (s *sealer) resume() error {
	if _, err := os.Lstat(s.beside()); err == nil {
		s.dirty = true
		if err := s.emptyBeside(); err != nil {
			return err
		}
	}
	refs, err := month.List(s.d.months.folder)
	if err != nil {
		return err
	}
	// Several are open only where an older ledger was put back: as they were cut out of it before.
	cuts, err := ledger.ReadCuts(s.d.path)
	if err != nil {
		return err
	}
	order := map[month.Ref]int{}
	for i := range cuts {
		ref := refOf(&cuts[i])
		order[ref] = i - len(cuts)
		if !slices.Contains(refs, ref) {
			if err := s.forgetCut(ref); err != nil { // its lines were put back, for it is gone
				return err
			}
		}
	}
	slices.SortStableFunc(refs, func(a, b month.Ref) int { return order[a] - order[b] })
	for _, ref := range refs {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if err := s.resumePart(ref); err != nil {
			return fmt.Errorf("finish %v: %w", ref, err)
		}
	}
	return nil
}

// resumePart finishes one part, if there is something to finish.
func (s *sealer) resumePart(ref month.Ref) error {
	hot, err := ledger.OpenHot(s.d.path)
	if err != nil {
		return err
	}
	defer hot.Close()
	if hot.Has(ref.Month, ref.Part) {
		return nil
	}
	p, err := s.d.months.part(ref)
	if err != nil {
		return err
	}
	c := &month.Content{Ref: ref, Now: s.d.now(), Hot: hot, Store: s.d.Store, Progress: s.Progress}
	for _, r := range p.Ranges {
		c.Ranges = append(c.Ranges, r.Range)
	}
	seal, err := s.sealOf(ref, p.SHA256)
	if err != nil || seal != nil && len(c.Ranges) == 0 {
		return err // of a part without lines nothing tells that it is done, but it is
	}
	if p.Pruned {
		return s.resumePruned(p, c)
	}
	x, err := p.Index()
	if err != nil {
		return err
	}
	ids, err := x.Runs()
	if err != nil {
		return err
	}
	for _, id := range ids {
		run := month.Run{ID: id, Path: s.d.runPath(id)}
		if _, err := os.Lstat(run.Path); seal != nil && errors.Is(err, fs.ErrNotExist) {
			run.Gone = true
		}
		c.Runs = append(c.Runs, run)
	}
	s.Say("%v: what another process had begun is finished", ref)
	s.dirty = true
	if err := mkdir(s.beside()); err != nil {
		return err
	}
	err = month.Compare(s.ctx, p, c)
	if errors.Is(err, month.ErrDiffers) && seal == nil {
		// Which of the two is right is for a person to say: an older ledger may have been put back, which lacks what is here.
		return fmt.Errorf("%w; nobody has signed it: if the ledger is right, move %q away, and seal again", err, p.Name(month.ManifestFile))
	}
	if err != nil {
		return err
	}
	if err := s.room(c); err != nil {
		return err
	}
	if err := s.finish(c, hot); err != nil {
		return err
	}
	s.made = append(s.made, p.Manifest)
	return nil
}

// emptyBeside removes what a process that died left beside.
func (s *sealer) emptyBeside() error {
	if info, err := os.Lstat(s.beside()); err == nil && !info.IsDir() {
		return fmt.Errorf("%q is not a folder", s.beside()) // and what it leads to is not ours
	}
	months, err := os.ReadDir(s.beside())
	if err != nil {
		return err
	}
	for _, m := range months {
		if !m.IsDir() {
			continue
		}
		folder := filepath.Join(s.beside(), m.Name())
		files, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		if len(files) > 0 {
			s.Say("%s: a sealing that another process had begun starts over", m.Name())
		}
		for _, f := range files {
			if err := jsonl.Calls.Unlink(filepath.Join(folder, f.Name())); err != nil && err != unix.ENOENT {
				return &os.PathError{Op: "remove", Path: filepath.Join(folder, f.Name()), Err: err}
			}
		}
		if err := os.Remove(folder); err != nil {
			return err
		}
	}
	return nil
}

// removeBeside says that nothing is left to be done.
func (s *sealer) removeBeside() error {
	if err := s.emptyBeside(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Remove(s.beside()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// clean takes away what is hot and also sealed: traces, and objects that nothing hot needs any more.
func (s *sealer) clean() error {
	if err := s.cleanRuns(); err != nil {
		return err
	}
	c := &cleaning{d: s.d, ctx: s.ctx, needed: map[string]bool{}}
	var listed []string
	for hash := range s.d.Store.All() {
		if hash != "" {
			listed = append(listed, hash)
		}
	}
	// Read after the list was made: what came into the store since is not in it.
	if err := c.readNeeded(); err != nil {
		return err
	}
	sealed, err := s.justSealed()
	if err != nil {
		return err
	}
	for i, hash := range listed {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if c.needed[hash] || !s.sealedWhole(hash, sealed) {
			continue
		}
		if err := jsonl.Calls.Unlink(s.d.Store.Path(hash)); err != nil && err != unix.ENOENT {
			return &os.PathError{Op: "remove", Path: s.d.Store.Path(hash), Err: err}
		}
		s.Progress("objects", int64(i+1), int64(len(listed)))
	}
	// A call may have stored the same bytes again meanwhile, and found them there. Until it is told here, its object opens out of
	// the sealed month.
	err = s.d.recallNeeded(s.ctx)
	var damage *ledger.Damage
	if errors.As(err, &damage) {
		return nil // of a month sealed long ago, which a verifier names
	}
	return err
}

// justSealed are the objects of the parts that this sealing made, with their lengths. They are read in one go: to look for
// one is to unpack what stands beside it.
func (s *sealer) justSealed() (map[string]int64, error) {
	sealed := map[string]int64{}
	for _, m := range s.made {
		p, err := s.d.months.part(m.Ref())
		if err != nil {
			return nil, err
		}
		for object, err := range p.Members(month.StoreFile) {
			if err == nil {
				err = s.ctx.Err()
			}
			if err != nil {
				return nil, err
			}
			sealed[object.Name] = object.Bytes
		}
	}
	return sealed, nil
}

// sealedWhole tells whether a sealed month holds the object in full length.
func (s *sealer) sealedWhole(hash string, sealed map[string]int64) bool {
	info, err := os.Lstat(s.d.Store.Path(hash))
	if err != nil {
		return false
	}
	if n, ok := sealed[hash]; ok {
		return n == info.Size()
	}
	r, n, err := s.d.months.object(hash)
	if err != nil {
		return false
	}
	r.Close()
	return n == info.Size()
}

func (s *sealer) cleanRuns() error {
	entries, err := os.ReadDir(filepath.Join(s.d.path, runsName))
	if err != nil {
		return err
	}
	hot := map[string]bool{}
	for _, e := range entries {
		hot[e.Name()] = true
	}
	return s.d.eachPart(func(p *month.Part) error {
		x, err := p.Index()
		if err != nil {
			return err
		}
		ids, err := x.Runs()
		if err != nil {
			return err
		}
		for _, id := range ids {
			path := s.d.runPath(id)
			if !hot[filepath.Base(path)] || s.d.Marked(id) || !sameLength(p, id, path) {
				continue
			}
			if err := jsonl.Calls.Unlink(path); err != nil && err != unix.ENOENT {
				return &os.PathError{Op: "remove", Path: path, Err: err}
			}
		}
		return nil
	})
}

// sameLength tells whether the part holds the trace as long as it is at path.
func sameLength(p *month.Part, id, path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	r, n, err := p.OpenRun(id)
	if err != nil {
		return false
	}
	r.Close()
	return n == info.Size()
}

// recallNeeded puts back into the store what something hot names and only a sealed month holds. A *ledger.Damage, that of a
// month which should hold some of it, it returns when all else is there again.
func (d *Dir) recallNeeded(ctx context.Context) error {
	c := &cleaning{d: d, ctx: ctx, needed: map[string]bool{}}
	if err := c.readNeeded(); err != nil {
		return err
	}
	damaged := error(nil)
	for hash := range c.needed {
		if _, err := os.Lstat(d.Store.Path(hash)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var damage *ledger.Damage
		switch err := d.Store.Recall(hash); {
		case err == nil || errors.Is(err, store.ErrMissing):
		case errors.As(err, &damage):
			damaged = err
		default:
			return err
		}
	}
	return damaged
}

// cleaning is what is hot and names objects.
type cleaning struct {
	d      *Dir
	ctx    context.Context
	needed map[string]bool
}

func (c *cleaning) readNeeded() error {
	hot, err := ledger.OpenHot(c.d.path)
	if err != nil {
		return err
	}
	defer hot.Close()
	for _, p := range hot.Pieces() {
		if p.Cut != nil {
			continue
		}
		for raw, err := range jsonl.Lines(hot.Reader(p, p.Offset)) {
			if err != nil {
				return err
			}
			if row, err := ledger.ParseRow(raw.Text); err == nil {
				c.need(row.Objects())
			}
		}
	}
	entries, err := os.ReadDir(filepath.Join(c.d.path, runsName))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		run, _, err := readRun(e.Name(), filepath.Join(c.d.path, runsName, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // of a run that died before its first line
		}
		if err != nil {
			return err
		}
		c.need(slices.Concat(run.Objects, run.Defines))
	}
	return nil
}

func (c *cleaning) need(hashes []string) {
	for _, hash := range hashes {
		c.needed[hash] = true
	}
}
