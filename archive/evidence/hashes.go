package evidence

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/tlog"
	"golang.org/x/sys/unix"

	"toolrun/archive/internal/jsonl"
)

// The file: a header of 32 bytes, then the hashes of the tree in the order of tlog.StoredHashIndex, 32 bytes each, two a
// line on average. The header: magic, number of lines, offset in ledger.jsonl behind the last of them, and the first 8
// bytes of the SHA-256 of these three; numbers are 8 bytes, little-endian.
const (
	hashesMagic  = "toolhsh1"
	hashesHeader = 32
)

var errNoHashes = errors.New("no usable hashes")

// Hashes is the file of hashes, open. It is derived from the ledger and believed only as far as a checkpoint vouches for
// it. Whoever writes holds the right to sign.
type Hashes struct {
	N      int64 // lines that are in it
	Offset int64 // of the ledger, behind them

	f *os.File
}

// OpenHashes opens the hashes of a data directory to be read. A missing or unusable file is empty: N is 0.
func OpenHashes(dir string) (*Hashes, error) {
	f, err := os.Open(filepath.Join(dir, HashesName))
	if errors.Is(err, os.ErrNotExist) {
		return &Hashes{}, nil
	}
	if err != nil {
		return nil, err
	}
	h := &Hashes{f: f}
	return h, h.readHeader()
}

// openHashes opens them to be extended. Not O_APPEND, by which Linux would let pwrite append.
func openHashes(dir string) (*Hashes, error) {
	path := filepath.Join(dir, HashesName)
	fd, err := jsonl.Calls.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	h := &Hashes{f: os.NewFile(uintptr(fd), path)}
	if err := h.readHeader(); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// Close closes the file.
func (h *Hashes) Close() error {
	if h.f == nil {
		return nil
	}
	return h.f.Close()
}

// readHeader leaves N at 0 where the file is none of ours, or its last change was torn.
func (h *Hashes) readHeader() error {
	info, err := h.f.Stat()
	if err != nil {
		return err
	}
	var head [hashesHeader]byte
	if info.Size() < hashesHeader {
		return nil
	}
	if _, err := h.f.ReadAt(head[:], 0); err != nil {
		return err
	}
	n, offset := int64(binary.LittleEndian.Uint64(head[8:])), int64(binary.LittleEndian.Uint64(head[16:]))
	if head != header(n, offset) || n < 0 || n > info.Size() || place(tlog.StoredHashCount(n)) > info.Size() {
		return nil
	}
	h.N, h.Offset = n, offset
	return nil
}

func header(n, offset int64) (head [hashesHeader]byte) {
	copy(head[:], hashesMagic)
	binary.LittleEndian.PutUint64(head[8:], uint64(n))
	binary.LittleEndian.PutUint64(head[16:], uint64(offset))
	sum := sha256.Sum256(head[:24])
	copy(head[24:], sum[:8])
	return head
}

// place is where in the file a stored hash is.
func place(index int64) int64 { return hashesHeader + index*tlog.HashSize }

// ReadHashes makes Hashes a [tlog.HashReader].
func (h *Hashes) ReadHashes(indexes []int64) ([]Hash, error) {
	list := make([]Hash, len(indexes))
	have := tlog.StoredHashCount(h.N)
	for i, index := range indexes {
		if index < 0 || index >= have {
			return nil, fmt.Errorf("%w: hash %d of %d", errNoHashes, index, have)
		}
		if _, err := h.f.ReadAt(list[i][:], place(index)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Vouched tells whether the first t.N lines are those of the tree t as far as the stored hashes go. Only the nodes along
// its right edge are looked at.
func (h *Hashes) Vouched(t Tree) bool {
	if t.N > h.N {
		return false
	}
	root, err := tlog.TreeHash(t.N, h)
	return err == nil && root == t.Hash
}

// Head is the head of the tree over the first n lines, as the stored hashes have it.
func (h *Hashes) Head(n int64) (Tree, error) {
	root, err := tlog.TreeHash(n, h)
	return Tree{N: n, Hash: root}, err
}

// Leaves reads the leaves from up to but not including to, both at most N. They belong to the tree whose root they give,
// which [Compact] computes.
func (h *Hashes) Leaves(from, to int64) ([]Hash, error) {
	leaves := make([]Hash, 0, to-from)
	const piece = 1 << 15
	var buf []byte
	first, end := tlog.StoredHashIndex(0, from), tlog.StoredHashCount(to)
	for i := from; i < to; i++ {
		at := tlog.StoredHashIndex(0, i) - first
		if at >= int64(len(buf)/tlog.HashSize) {
			first += at
			at = 0
			buf = append(buf[:0], make([]byte, min(piece, end-first)*tlog.HashSize)...)
			if _, err := h.f.ReadAt(buf, place(first)); err != nil {
				return nil, err
			}
		}
		leaves = append(leaves, Hash(buf[at*tlog.HashSize:(at+1)*tlog.HashSize]))
	}
	return leaves, nil
}

// Differ holds the stored hashes against those that the leaves give and returns the first line, from 0, of which one is
// wrong, or -1. Lines that either does not have are left out.
func (h *Hashes) Differ(leaves []Hash) (int64, error) {
	n := min(h.N, int64(len(leaves)))
	tree := Compact{}
	var file io.Reader = bufio.NewReaderSize(io.NewSectionReader(h.f, hashesHeader, math.MaxInt64-hashesHeader), 1<<18)
	if n == 0 {
		return -1, nil
	}
	for line, leaf := range leaves[:n] {
		for _, want := range tree.add(leaf) {
			var stored Hash
			if _, err := io.ReadFull(file, stored[:]); err != nil {
				return 0, err
			}
			if stored != want {
				return int64(line), nil
			}
		}
	}
	return -1, nil
}

// extend writes the hashes that more lines bring, in place, and then the header. Killed in between, the header says what
// it said before and the hashes behind it are written again.
func (h *Hashes) extend(leaves []Hash, offset int64) error {
	peaks, err := h.peaks()
	if err != nil {
		return err
	}
	tree := Compact{n: h.N, peaks: peaks}
	at := place(tlog.StoredHashCount(h.N))
	var out bytes.Buffer
	for i, leaf := range leaves {
		for _, hash := range tree.add(leaf) {
			out.Write(hash[:])
		}
		if out.Len() >= 1<<20 || i == len(leaves)-1 {
			if err := h.pwrite(out.Bytes(), at); err != nil {
				return err
			}
			at += int64(out.Len())
			out.Reset()
		}
	}
	return h.setHeader(tree.n, offset)
}

// peaks reads the roots of the complete subtrees, from left to right.
func (h *Hashes) peaks() ([]Hash, error) {
	var indexes []int64
	for level := 62; level >= 0; level-- {
		if h.N>>level&1 == 1 {
			indexes = append(indexes, tlog.StoredHashIndex(level, h.N>>level-1))
		}
	}
	return h.ReadHashes(indexes)
}

func (h *Hashes) setHeader(n, offset int64) error {
	head := header(n, offset)
	if err := h.pwrite(head[:], 0); err != nil {
		return err
	}
	h.N, h.Offset = n, offset
	return nil
}

func (h *Hashes) pwrite(p []byte, at int64) error {
	n, err := jsonl.Calls.Pwrite(int(h.f.Fd()), p, at)
	if err == nil && n != len(p) {
		err = unix.ENOSPC
	}
	if err != nil {
		return fmt.Errorf("%w: write %q: %w", jsonl.ErrUnavailable, h.f.Name(), err)
	}
	return nil
}
