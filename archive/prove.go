package archive

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"toolrun/archive/evidence"
	"toolrun/archive/ledger"
)

var (
	// ErrNotCovered means that no checkpoint covers the row yet: sign one.
	ErrNotCovered = errors.New("no checkpoint covers the row yet")
	// ErrNoRow means that the ledger has no row of that call.
	ErrNoRow = errors.New("no row of this call")
)

// Receipt makes the receipt of the row with this tool_call_id against the newest checkpoint. Errors are ErrNoRow,
// ErrNotCovered, evidence.ErrUnverified where the ledger is not what was signed, or of reading.
func (d *Dir) Receipt(callID string) (*evidence.Receipt, error) {
	line, index, err := d.lineOf(callID)
	if err != nil {
		return nil, err
	}
	key, err := evidence.PublicKey(d.path)
	if errors.Is(err, evidence.ErrNoKey) {
		return nil, fmt.Errorf("call %q: %w", callID, ErrNotCovered)
	}
	if err != nil {
		return nil, err
	}
	newest, err := evidence.Newest(d.path, key)
	if err != nil {
		return nil, err
	}
	if newest == nil || newest.Tree.N <= index {
		return nil, fmt.Errorf("call %q: %w", callID, ErrNotCovered)
	}
	r, err := d.fromHashes(newest, index, line, key)
	if r == nil && err == nil {
		r, err = d.fromLedger(newest, index, line, key)
	}
	if err != nil {
		return nil, err
	}
	if err := r.Verify(key); err != nil {
		return nil, fmt.Errorf("the ledger is not what was signed: %w", err)
	}
	return r, nil
}

// lineOf finds the line of a call and its place in the ledger, from 0.
func (d *Dir) lineOf(callID string) (line []byte, index int64, err error) {
	in := []byte(callID)
	plain := !slices.ContainsFunc(in, func(b byte) bool { return b < ' ' || b == '"' || b == '\\' || b > '~' }) // it stands in a line as it is
	for l, err := range d.Lines(Scope{Call: callID}) {
		var damage *ledger.Damage
		if err != nil && !errors.As(err, &damage) {
			return nil, 0, err
		}
		if err != nil || plain && !bytes.Contains(l.Text, in) {
			continue
		}
		if row, err := l.Row(); err == nil && row.ToolCallID.String() == callID {
			return l.exact(), l.Place, nil
		}
	}
	return nil, 0, fmt.Errorf("%w: %q in %s", ErrNoRow, callID, d.path)
}

// fromHashes makes the receipt from the stored hashes, if they are those of the checkpoint; else it returns nil.
func (d *Dir) fromHashes(c *evidence.Checkpoint, index int64, line []byte, key *evidence.Key) (*evidence.Receipt, error) {
	hashes, err := evidence.OpenHashes(d.path)
	if err != nil {
		return nil, err
	}
	defer hashes.Close()
	if !hashes.Vouched(c.Tree) {
		return nil, nil
	}
	r, err := evidence.NewReceipt(key, string(line), index, c, hashes)
	if err != nil || r.Verify(key) != nil {
		return nil, nil
	}
	return r, nil
}

// fromLedger makes the receipt from the whole ledger.
func (d *Dir) fromLedger(c *evidence.Checkpoint, index int64, line []byte, key *evidence.Key) (*evidence.Receipt, error) {
	w, err := d.whole()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	var hashes []evidence.Hash
	read := tlog.HashReaderFunc(func(indexes []int64) ([]evidence.Hash, error) {
		list := make([]evidence.Hash, len(indexes))
		for i, at := range indexes {
			list[i] = hashes[at]
		}
		return list, nil
	})
	n := int64(0)
	for leaf, err := range w.Leaves(0) {
		if err != nil {
			return nil, err
		}
		more, err := tlog.StoredHashesForRecordHash(n, leaf.Hash, read)
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, more...)
		if n++; n == c.Tree.N {
			return evidence.NewReceipt(key, string(bytes.Clone(line)), index, c, read)
		}
	}
	return nil, fmt.Errorf("%w: %d rows were signed, and the ledger has %d lines", evidence.ErrUnverified, c.Tree.N, n)
}

// RepairDerived makes what is derived anew from the record: which lines were taken out of the ledger, the indexes of sealed
// months that are damaged, the hashes of the tree and the table of ids. Nothing else is touched, not even what a crash left. Hashes that a checkpoint vouches for and the ledger does not agree with are kept,
// for they are the witness of what it was: ErrContradiction.
func RepairDerived(path string, o Options) error {
	d, err := open(path, Options{ReadOnly: true, Logger: o.Logger, Now: o.Now})
	if err != nil {
		return unusable(err)
	}
	if err := d.repairCuts(); err != nil {
		return err
	}
	defer d.months.close()
	err = d.repairIndexes()
	err = errors.Join(err, evidence.Rebuild(d.path, d.whole, evidence.Options{Logger: d.log, Now: d.now}))
	return errors.Join(err, ledger.RebuildIDs(d.path, d.sealedIDs))
}
