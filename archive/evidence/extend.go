package evidence

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// extend brings the hashes up to the end of the statement, or makes them anew, and returns the head there, which extends
// the newest one.
func (w *signing) extend(s Statement, anew bool) (Tree, error) {
	ledger, err := s.Open()
	if errors.Is(err, fs.ErrNotExist) {
		return Tree{}, fmt.Errorf("%w: %d rows were signed, and the ledger is gone", ErrContradiction, w.newest.Tree.N)
	}
	if err != nil {
		return Tree{}, err
	}
	defer ledger.Close()
	hashes, err := openHashes(w.dir)
	if err != nil {
		return Tree{}, err
	}
	defer hashes.Close()
	e := &extension{Statement: s, ledger: ledger, hashes: hashes, newest: w.newest.Tree}
	if !anew && e.continues() {
		err = e.scan(hashes.N, hashes.Offset)
	} else {
		w.Logger.Debug("the hashes of the tree are made anew from the ledger")
		err = e.anew()
	}
	if err != nil {
		return Tree{}, err
	}
	if len(e.leaves) > 0 {
		if err := hashes.extend(e.leaves, e.end); err != nil {
			return Tree{}, err
		}
	}
	if hashes.Offset > s.Size {
		return w.newest.Tree, nil // somebody has hashed, and perhaps signed, more than this process has synced
	}
	tree := Compact{n: hashes.N}
	if tree.peaks, err = hashes.peaks(); err != nil {
		return Tree{}, err
	}
	return tree.Tree(), nil
}

// extension is the part of a ledger that the hashes do not have yet.
type extension struct {
	Statement
	ledger Source
	hashes *Hashes
	newest Tree
	leaves []Hash
	end    int64 // of the ledger, behind the last of leaves
}

// continues tells whether the hashes are those of the beginning of this ledger: they give the newest checkpoint, and the
// line at their end is where and what they say. What was changed before it is a verifier's to find.
func (e *extension) continues() bool {
	h := e.hashes
	if h.N == 0 || !h.Vouched(e.newest) {
		return false
	}
	last, err := h.Leaves(h.N-1, h.N)
	if err != nil {
		return false
	}
	line, sealed, err := e.ledger.Before(h.Offset)
	return err == nil && (sealed || LeafHash(line) == last[0])
}

// anew reads the whole ledger. The hashes on disk, which may be the only witness of what the ledger was, are given up only
// where the ledger agrees with the newest checkpoint.
func (e *extension) anew() error {
	if err := e.scan(0, 0); err != nil {
		return err
	}
	n := e.newest.N
	if int64(len(e.leaves)) < n {
		return fmt.Errorf("%w: %d rows were signed, and it has %d lines", ErrContradiction, n, len(e.leaves))
	}
	var tree Compact
	for _, leaf := range e.leaves[:n] {
		tree.Add(leaf)
	}
	if tree.Tree() != e.newest {
		return fmt.Errorf("%w: among its first %d lines are some that were not signed so", ErrContradiction, n)
	}
	return e.hashes.setHeader(0, 0)
}

// scan takes the lines from offset on, of which the hashes have n before it, up to the end of the statement and of what
// was signed. Those that this process wrote it takes from memory, whatever stands in the file by now: so is what they were
// signed, and a verifier finds what was made of them. The others it reads.
func (e *extension) scan(n, offset int64) error {
	e.end = offset
	own := slices.Clone(e.Own)
	slices.SortFunc(own, func(a, b Leaf) int { return cmp.Compare(a.Offset, b.Offset) })
	for _, leaf := range own {
		switch {
		case leaf.Offset+leaf.Length >= e.Size:
			return e.notOwn(leaf)
		case leaf.Offset < offset:
			if err := e.still(leaf); err != nil {
				return err
			}
			continue
		}
		if err := e.read(n, leaf.Offset); err != nil {
			return err
		}
		if e.end != leaf.Offset {
			return e.notOwn(leaf)
		}
		e.take(leaf)
	}
	return e.read(n, e.Size)
}

func (e *extension) take(leaf Leaf) {
	e.leaves = append(e.leaves, leaf.Hash)
	e.end = leaf.Offset + leaf.Length + 1
}

// read takes the lines that begin before until, and further ones as long as fewer are there than were signed.
func (e *extension) read(n, until int64) error {
	start := e.end
	enough := func() bool { return e.end >= until && (until < e.Size || n+int64(len(e.leaves)) >= e.newest.N) }
	if enough() {
		return nil
	}
	for leaf, err := range e.ledger.Leaves(start) {
		if err != nil {
			return err
		}
		e.take(leaf)
		if enough() {
			return nil
		}
	}
	return nil
}

// still demands that a line which this process wrote, and another signed, is in the file as it was.
func (e *extension) still(leaf Leaf) error {
	line, sealed, err := e.ledger.Line(leaf)
	if err != nil {
		return err
	}
	if !sealed && LeafHash(line) != leaf.Hash {
		return e.notOwn(leaf)
	}
	return nil
}

func (e *extension) notOwn(leaf Leaf) error {
	return fmt.Errorf("%w: a row that this process wrote at byte %d is not there any more as it was written", ErrContradiction, leaf.Offset)
}
