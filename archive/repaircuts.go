package archive

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"toolrun/archive/evidence"
	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
	"toolrun/archive/month"
)

// repairCuts makes the file of cuts anew out of the manifests, if it is not what they say: the parts whose seals were signed,
// in the order of their seals. All but the last were made; whether that was, the ledger itself tells. Lines of a pruned part
// may be hot again, and then in a further part.
func (d *Dir) repairCuts() error {
	if refs, err := d.Months(); err != nil || len(refs) == 0 {
		return err
	}
	lock, err := os.Open(filepath.Join(d.path, archiveLock))
	if err != nil {
		return err
	}
	defer lock.Close()
	defer jsonl.Unlock(lock) // a process that is being started just now may have the file open too, for a moment
	if free, err := jsonl.Lock(lock, unix.LOCK_EX|unix.LOCK_NB); err != nil || !free {
		return errors.Join(err, ErrSealing)
	}
	cuts, err := d.sealedCuts()
	if err != nil {
		return fmt.Errorf("make %s anew: %w", ledger.CutsName, err)
	}
	have, err := ledger.ReadCuts(d.path)
	same := func(a, b ledger.Cut) bool {
		return a.Month == b.Month && a.Part == b.Part && a.First == b.First && a.FirstBytes == b.FirstBytes && a.NextSeq == b.NextSeq && slices.Equal(a.Ranges, b.Ranges)
	}
	if err == nil && slices.EqualFunc(have, cuts, same) {
		return nil
	}
	return ledger.WriteCuts(d.path, cuts)
}

// sealedCuts are the cuts of the parts whose seals were signed.
func (d *Dir) sealedCuts() (cuts []ledger.Cut, err error) {
	seals, err := evidence.Months(d.path)
	if err != nil {
		return nil, err
	}
	hot, err := ledger.OpenHot(d.path)
	if err == nil { // else nobody knows what is hot
		defer hot.Close()
	}
	for _, seal := range seals {
		if err := d.repairSeal(seal); err != nil {
			return nil, err
		}
		p, err := d.months.part(month.Ref{Month: seal.Month, Part: seal.Part})
		if err != nil {
			return nil, err
		}
		if p.SHA256 != seal.Manifest {
			return nil, fmt.Errorf("%w: %q is not the manifest that was sealed", ErrContradiction, p.Name(month.ManifestFile))
		}
		if len(p.Ranges) == 0 {
			continue
		}
		if p.Pruned && hot != nil {
			back, err := putBack(p, hot)
			if err != nil {
				return nil, err
			}
			if back {
				continue
			}
		}
		first, err := firstOf(p)
		if err != nil {
			return nil, err
		}
		cut := p.Cut(hex.EncodeToString(first.Hash[:]), first.Length)
		cuts = slices.DeleteFunc(cuts, func(c ledger.Cut) bool { return overlap(&c, &cut) }) // of a pruned part
		cuts = append(cuts, cut)
	}
	return cuts, nil
}

// repairSeal puts the signed note of a part beside its manifest again.
func (d *Dir) repairSeal(seal *evidence.MonthSeal) error {
	ref := month.Ref{Month: seal.Month, Part: seal.Part}
	if _, sum, err := month.ReadManifest(d.months.folder, ref); err != nil || sum != seal.Manifest {
		return nil // that is what has to be told
	}
	return d.months.writeSeal(ref, seal)
}

// overlap tells whether two cuts are of the same month and a line is in both.
func overlap(a, b *ledger.Cut) bool {
	return a.Month == b.Month && slices.ContainsFunc(a.Ranges, func(r ledger.Range) bool {
		return slices.ContainsFunc(b.Ranges, func(q ledger.Range) bool { return r.Line < q.Line+q.Lines && q.Line < r.Line+r.Lines })
	})
}

// repairIndexes makes the indexes of sealed months anew that are missing or damaged.
func (d *Dir) repairIndexes() error {
	refs, err := d.Months()
	errs := []error{err}
	for _, ref := range refs {
		p, err := d.months.part(ref)
		if err == nil {
			err = p.RepairIndex(context.Background())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// firstOf is the leaf of the first line of a part.
func firstOf(p *month.Part) (evidence.Leaf, error) {
	if p.Pruned {
		leaves, err := p.Leaves()
		if err != nil {
			return evidence.Leaf{}, err
		}
		return leaves[0], nil
	}
	r, err := p.Content(0, p.Files[month.LedgerFile].Content)
	if err != nil {
		return evidence.Leaf{}, err
	}
	for leaf, err := range evidence.Leaves(r) {
		return leaf, err
	}
	return evidence.Leaf{}, fs.ErrNotExist
}
