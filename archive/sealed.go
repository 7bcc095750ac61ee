package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
	"toolrun/archive/month"
)

// SealedMonth is one part of a sealed month, as archive list shows it.
type SealedMonth struct {
	*month.Manifest
	Pruned   bool
	Content  int64  // bytes of lines, traces and objects as they were
	Bytes    int64  // of the files now
	Verified string // when verify last found all of it good; "" where it never did
}

// Sealed returns the parts of the sealed months, in their order. A part whose manifest cannot be read is an error of its
// own, a *ledger.Damage, and keeps no other from being told.
func (d *Dir) Sealed() (list []SealedMonth, problems []error, err error) {
	refs, err := d.sealedRefs()
	if err != nil {
		return nil, nil, err
	}
	for _, ref := range refs {
		p, err := d.months.part(ref)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		s := SealedMonth{Manifest: p.Manifest, Pruned: p.Pruned}
		for name, f := range p.Files {
			if name != month.IndexFile {
				s.Content += f.Content
			}
			if info, err := os.Lstat(p.Name(name)); err == nil {
				s.Bytes += info.Size()
			}
		}
		s.Verified = p.Verified()
		list = append(list, s)
	}
	return list, problems, nil
}

// sealedRefs are the parts that are there, and those that are not any more and whose lines were taken out of ledger.jsonl.
func (d *Dir) sealedRefs() ([]month.Ref, error) {
	refs, err := month.List(d.months.folder)
	if err != nil {
		return nil, err
	}
	cuts, err := ledger.ReadCuts(d.path)
	if err != nil {
		return nil, err
	}
	for i := range cuts {
		if ref := refOf(&cuts[i]); !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, func(a, b month.Ref) int { return cmp.Or(strings.Compare(a.Month, b.Month), a.Part-b.Part) })
	return refs, nil
}

// NoteVerified notes of parts that all of them was found good now, for Sealed to tell. It is a note for people and no more:
// where it cannot be written there is none.
func (d *Dir) NoteVerified(parts []month.Ref) {
	for _, ref := range parts {
		path := filepath.Join(d.months.folder, ref.Path(month.VerifiedFile))
		err := os.WriteFile(path+".new", []byte(ledger.FormatTime(d.now())+"\n"), 0o600)
		if err == nil {
			err = os.Rename(path+".new", path)
		}
		if err != nil {
			d.log.Info("when it was verified is not noted", "part", ref, "err", err)
		}
	}
}

// dueRows is how many rows Due looks at: some may be of a clock that went wrong.
const dueRows = 4096

// Due tells whether there is likely something to seal: a sealing died, or one of the first rows of ledger.jsonl is of a month
// that is due. It reads no more than those.
func (d *Dir) Due() bool {
	if _, err := os.Lstat(filepath.Join(d.months.folder, besideName)); err == nil {
		return true
	}
	n := 0
	for line := range ledger.Lines(d.path, func(text []byte) (*ledger.Row, error) { return &ledger.Row{StartedAt: ledger.StartedAt(text)}, nil }) {
		if line.Err == nil && isDue(month.Of(line.Row.StartedAt), d.now(), d.Config.Keep) {
			return true
		}
		if n++; n == dueRows {
			break
		}
	}
	return false
}

// ErrNotSealed means that there is no such sealed month.
var ErrNotSealed = errors.New("not a sealed month")

// RestoreMonth writes what a sealed month holds, all its parts, into a new or empty folder: ledger.jsonl, runs and store as
// they lay in the data directory. The month stays sealed. Each file is held against its hash first.
func (d *Dir) RestoreMonth(ctx context.Context, name, to string) error {
	entries, err := os.ReadDir(to)
	switch {
	case err == nil && len(entries) > 0:
		return fmt.Errorf("restore %s: %q is not empty", name, to)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("restore %s: %w", name, err)
	}
	refs, err := d.sealedRefs()
	if err != nil {
		return fmt.Errorf("restore %s: %w", name, err)
	}
	n := 0
	for _, ref := range refs {
		if ref.Month != name {
			continue
		}
		p, err := d.months.part(ref)
		if err == nil {
			err = p.Restore(ctx, to)
		}
		if err != nil {
			return err
		}
		n++
	}
	if n == 0 {
		return fmt.Errorf("restore %s: %w", name, ErrNotSealed)
	}
	return nil
}

// Prunable returns the parts of months that ended before, or at, an instant and still have their content. One that somebody took
// away keeps no other from being given up.
func (d *Dir) Prunable(before time.Time) ([]SealedMonth, error) {
	all, problems, err := d.Sealed()
	problems = slices.DeleteFunc(problems, func(err error) bool { return errors.Is(err, fs.ErrNotExist) })
	if err := errors.Join(err, errors.Join(problems...)); err != nil {
		return nil, err
	}
	var list []SealedMonth
	for _, s := range all {
		if !month.End(s.Month).After(before) && (!s.Pruned || s.left(d)) {
			list = append(list, s)
		}
	}
	return list, nil
}

// left tells whether a prune died before it had removed all.
func (s *SealedMonth) left(d *Dir) bool {
	for _, name := range []string{month.LedgerFile, month.RunsFile, month.StoreFile} {
		if _, err := os.Lstat(filepath.Join(d.months.folder, s.Ref().Path(name))); err == nil {
			return true
		}
	}
	return false
}

// Prune gives up the content of parts. What proves the rows of other months stays. ErrSealing: another process seals or
// prunes.
func (d *Dir) Prune(list []SealedMonth) error {
	if d.Ledger == nil {
		return errReadOnly
	}
	lock, err := jsonl.OpenAppend(filepath.Join(d.path, archiveLock), 0)
	if err != nil {
		return err
	}
	defer lock.Close()
	defer jsonl.Unlock(lock) // a process that is being started just now may have the file open too, for a moment
	if free, err := jsonl.Lock(lock, unix.LOCK_EX|unix.LOCK_NB); err != nil || !free {
		return errors.Join(err, ErrSealing)
	}
	defer d.months.close() // what is open says that it has its content
	if err := d.recallNeeded(context.Background()); err != nil {
		return fmt.Errorf("prune: %w", err)
	}
	for _, s := range list {
		p, err := d.months.part(s.Ref())
		if err == nil {
			err = p.Prune()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
