package archive

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"toolrun/archive/evidence"
	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
	"toolrun/archive/month"
)

// Names below archive/.
const (
	archiveLock = "archive.lock" // in the data directory; never renamed, never removed, always empty
	besideName  = ".new"         // where a part is made; it is there as long as a sealing goes on, or has died
)

// ErrSealing means that another process seals.
var ErrSealing = errors.New("another process is sealing")

// SealOptions of [Dir.Seal].
type SealOptions struct {
	Keep  time.Duration // a month is due when its last instant is older
	Month string        // only this one; "": all
	// Say is told, in words, what is done; Progress how far a step is.
	Say      func(format string, args ...any)
	Progress func(step string, done, total int64)
	// Urgent does what calls would have to wait for, where all else is done at a low priority; nil: as all else.
	Urgent func(do func() error) error
}

// Seal seals every month that is due and returns what it made. The order, so that a process which is killed anywhere loses
// nothing: the part is written beside and synced; it is read back and compared with what is hot; it gets its names, the
// manifest last; its seal is signed; and only then are its lines, traces and objects taken out of what is hot. Before all
// that it finishes what a process that died had begun.
//
// ErrSealing: another process does so. ErrContradiction and month.ErrUnsigned: nothing is sealed of a ledger that is not
// what was signed.
func (d *Dir) Seal(ctx context.Context, o SealOptions) ([]*month.Manifest, error) {
	if d.Ledger == nil {
		return nil, errReadOnly
	}
	lock, err := jsonl.OpenAppend(filepath.Join(d.path, archiveLock), 0)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	defer jsonl.Unlock(lock) // a process that is being started just now may have the file open too, for a moment
	if free, err := jsonl.Lock(lock, unix.LOCK_EX|unix.LOCK_NB); err != nil || !free {
		return nil, errors.Join(err, ErrSealing)
	}
	if err := mkdir(d.months.folder); err != nil {
		return nil, err
	}
	cuts := filepath.Join(d.path, ledger.CutsName)
	if _, err := os.Lstat(cuts); errors.Is(err, fs.ErrNotExist) {
		// Before the first month has a manifest.
		if _, err := ledger.ReadCuts(d.path); err != nil {
			return nil, err
		}
		if err := ledger.WriteCuts(d.path, nil); err != nil {
			return nil, err
		}
	}
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	s := &sealer{SealOptions: o, d: d, ctx: ctx}
	if err = s.all(); err != nil && ctx.Err() == nil {
		// It would start over anyway, and its space may be what lacks.
		s.Say = func(string, ...any) {}
		_ = s.emptyBeside()
	}
	return s.made, err
}

// sealer is one use of the right to seal.
type sealer struct {
	SealOptions
	d     *Dir
	ctx   context.Context
	made  []*month.Manifest
	dirty bool  // something is hot that is sealed
	free  int64 // bytes of the file system of archive, when a part was begun
}

func (s *sealer) beside() string { return filepath.Join(s.d.months.folder, besideName) }

func (s *sealer) all() error {
	if err := s.resume(); err != nil {
		return err
	}
	if err := s.due(); err != nil {
		return err
	}
	if !s.dirty {
		return nil
	}
	if err := s.clean(); err != nil {
		return fmt.Errorf("take away what is sealed: %w", err)
	}
	return s.removeBeside()
}

// due seals what is due now.
func (s *sealer) due() error {
	hot, err := ledger.OpenHot(s.d.path)
	if err != nil {
		return err
	}
	defer hot.Close()
	p := &sealPlan{ranges: map[string][]ledger.Range{}, runs: map[string][]month.Run{}}
	if err := p.readLines(s.ctx, hot); err != nil {
		return err
	}
	if err := p.readRuns(s.ctx, s.d); err != nil {
		return err
	}
	months := p.months(func(m string) bool {
		return (s.Month == "" || m == s.Month) && isDue(m, s.d.now(), s.Keep)
	})
	if len(months) == 0 {
		return nil
	}
	s.dirty = true
	if err := mkdir(s.beside()); err != nil {
		return err
	}
	for _, m := range months {
		if err := s.seal(hot, m, p.ranges[m], p.runs[m]); err != nil {
			return err
		}
		// Its lines are gone from the ledger, and the places of the others in it are new.
		hot.Close()
		if hot, err = ledger.OpenHot(s.d.path); err != nil {
			return err
		}
	}
	return nil
}

// seal seals one month.
func (s *sealer) seal(hot *ledger.Hot, m string, ranges []ledger.Range, runs []month.Run) error {
	ref, err := s.nextPart(hot, m)
	if err != nil {
		return err
	}
	signed, err := s.signed(ranges)
	if err != nil {
		return err
	}
	defer signed.Close()
	c := &month.Content{Ref: ref, Now: s.d.now(), Hot: hot, Ranges: ranges, Runs: runs, Store: s.d.Store, Signed: signed, Progress: s.Progress}
	if err := s.room(c); err != nil {
		return fmt.Errorf("seal %v: %w", ref, err)
	}
	folder := filepath.Join(s.beside(), m)
	if err := mkdir(folder); err != nil {
		return err
	}
	manifest, err := month.Write(s.ctx, folder, c)
	if errors.Is(err, month.ErrSpace) || errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("seal %v: %w", ref, s.noRoom(c, s.beside(), s.free))
	}
	if err != nil {
		return err
	}
	// Killed up to here: files beside, which the next sealing removes.
	if err := s.readBack(s.beside(), c); err != nil {
		return err
	}
	if err := s.publish(folder, ref); err != nil {
		return fmt.Errorf("seal %v: %w", ref, err)
	}
	if err := s.finish(c, hot); err != nil {
		return fmt.Errorf("seal %v: %w", ref, err)
	}
	s.made = append(s.made, manifest)
	return nil
}

// readBack compares a part with what is hot.
func (s *sealer) readBack(folder string, c *month.Content) error {
	p, err := month.Open(folder, c.Ref)
	if err != nil {
		return err
	}
	defer p.Close()
	s.Progress("read back", 0, 0)
	return month.Compare(s.ctx, p, c)
}

// signed signs the ledger and returns the hashes of the tree that it has then.
func (s *sealer) signed(ranges []ledger.Range) (*evidence.Hashes, error) {
	c, err := s.d.Checkpoint()
	if err != nil {
		return nil, err
	}
	hashes, err := evidence.OpenHashes(s.d.path)
	if err != nil {
		return nil, err
	}
	if n := len(ranges); !hashes.Vouched(c.Tree) || n > 0 && ranges[n-1].Line+ranges[n-1].Lines > c.Tree.N {
		hashes.Close()
		return nil, fmt.Errorf("%w: the hashes are not those of the newest checkpoint", ErrContradiction)
	}
	return hashes, nil
}

// nextPart is the part that is made next of a month. The number of one that is gone is not given again: its seal and its cut
// would be taken for the new one's.
func (s *sealer) nextPart(hot *ledger.Hot, m string) (month.Ref, error) {
	next := month.Ref{Month: m, Part: 1}
	behind := func(name string, part int) {
		if name == m {
			next.Part = max(next.Part, part+1)
		}
	}
	refs, err := month.List(s.d.months.folder)
	for _, r := range refs {
		behind(r.Month, r.Part)
	}
	seals, sealsErr := evidence.Months(s.d.path)
	for _, k := range seals {
		behind(k.Month, k.Part)
	}
	for _, c := range hot.Cuts() {
		behind(c.Month, c.Part)
	}
	return next, errors.Join(err, sealsErr)
}

// publish gives the files of a part their names, the manifest last.
func (s *sealer) publish(folder string, ref month.Ref) error {
	to := filepath.Join(s.d.months.folder, ref.Month)
	if err := mkdir(to); err != nil {
		return err
	}
	for _, name := range []string{month.LedgerFile, month.RunsFile, month.StoreFile, month.IndexFile, month.ManifestFile} {
		if name == month.ManifestFile {
			if err := jsonl.SyncDir(to); err != nil {
				return err
			}
			// Killed here: files without a manifest, which are no part; the next sealing writes over them.
		}
		base := filepath.Base(ref.Path(name))
		if err := jsonl.Calls.Rename(filepath.Join(folder, base), filepath.Join(to, base)); err != nil {
			return &os.LinkError{Op: "rename", Old: filepath.Join(folder, base), New: filepath.Join(to, base), Err: err}
		}
	}
	return jsonl.SyncDir(to)
}

// finish signs the seal of a part that was read back, and takes out of what is hot what is in it. What is done already it
// passes over.
func (s *sealer) finish(c *month.Content, hot *ledger.Hot) error {
	m, hash, err := month.ReadManifest(s.d.months.folder, c.Ref)
	if err != nil {
		return err
	}
	// Killed here: a part that is not signed, which the next sealing compares and signs.
	seal, err := s.sealOf(c.Ref, hash)
	if err == nil && seal == nil {
		seal = &evidence.MonthSeal{Month: c.Month, Part: c.Part, Manifest: hash}
		_, err = s.d.signAll(nil, seal)
	}
	if err != nil {
		return err
	}
	if err := s.d.months.writeSeal(c.Ref, seal); err != nil {
		return err
	}
	s.dirty = true
	if len(c.Ranges) > 0 {
		// Killed here: a signed part, and its lines are hot as well; until they are not, they are read there.
		first, err := firstLeaf(hot, c.Ranges[0])
		if err != nil {
			return err
		}
		if err := s.d.Ledger.Cut(m.Cut(hex.EncodeToString(first.Hash[:]), first.Length), s.Urgent); err != nil {
			return err
		}
	}
	for _, run := range c.Runs {
		// Killed here: traces that are also sealed, which the next sealing removes.
		if err := jsonl.Calls.Unlink(run.Path); err != nil && err != unix.ENOENT {
			return &os.PathError{Op: "remove", Path: run.Path, Err: err}
		}
	}
	return nil
}

// sealOf is the seal of a part that was signed already, or nil.
func (s *sealer) sealOf(ref month.Ref, manifest string) (*evidence.MonthSeal, error) {
	seals, err := evidence.Months(s.d.path)
	if err != nil {
		return nil, err
	}
	for _, m := range seals {
		switch {
		case m.Month != ref.Month || m.Part != ref.Part:
		case m.Manifest == manifest:
			return m, nil
		default:
			return nil, fmt.Errorf("%w: %v was sealed with another manifest", ErrContradiction, ref)
		}
	}
	return nil, nil
}

func firstLeaf(hot *ledger.Hot, r ledger.Range) (evidence.Leaf, error) {
	at, ok := hot.Place(r.Offset)
	if !ok {
		return evidence.Leaf{}, fmt.Errorf("line %d is not in %q", r.Line+1, hot.Path)
	}
	for leaf, err := range evidence.Leaves(io.NewSectionReader(hot, at, r.Bytes)) {
		return leaf, err
	}
	return evidence.Leaf{}, io.ErrUnexpectedEOF
}

// mkdir makes a folder, if it is not there, so that it lasts.
func mkdir(path string) error {
	err := jsonl.Calls.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "mkdir", Path: path, Err: err}
	}
	return jsonl.SyncDir(filepath.Dir(path))
}
