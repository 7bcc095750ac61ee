package ledger

import (
	"path/filepath"
	"slices"

	"toolrun/archive/evidence"
)

// maxOwn bounds what is remembered where nothing can be signed.
const maxOwn = 1 << 16

// remember keeps the leaf of the line that was appended at the end of the file: what is signed later is held against it.
func (l *Ledger) remember(line []byte) {
	if len(l.own) >= maxOwn {
		l.own = slices.Delete(l.own, 0, maxOwn/2)
	}
	l.own = append(l.own, evidence.Leaf{Hash: evidence.LeafHash(line), Offset: l.size + l.gone, Length: int64(len(line))})
}

// Path returns the name of the file.
func (l *Ledger) Path() string { return filepath.Join(l.dir, FileName) }

// Signable returns up to which byte of the whole ledger it can be signed now, which is behind a newline, and the lines
// before that which this process wrote since the last Signed.
func (l *Ledger) Signable() (size int64, own []evidence.Leaf, err error) {
	err = l.Locked(func() error {
		if err := l.refresh(); err != nil {
			return err
		}
		size, own = l.size+l.gone, slices.Clone(l.own)
		return nil
	})
	return size, own, err
}

// Signed tells that a checkpoint covers the ledger up to size.
func (l *Ledger) Signed(size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.own = slices.DeleteFunc(l.own, func(leaf evidence.Leaf) bool { return leaf.Offset < size })
}
