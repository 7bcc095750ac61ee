package evidence

import (
	"bufio"
	"crypto/sha256"
	"io"
	"iter"

	"golang.org/x/mod/sumdb/tlog"
)

// LeafHash is the leaf of a line, which comes without its newline: SHA-256(0x00 || line), RFC 6962 section 2.1.
func LeafHash(line []byte) Hash { return tlog.RecordHash(line) }

// Leaf is one line of a ledger.
type Leaf struct {
	Hash   Hash
	Offset int64 // of its first byte
	Length int64 // without the newline
}

// Leaves yields the leaf of every line of r that a newline ends; what follows the last newline is none yet. A line may
// have any length and hold anything. An error of reading is yielded once and ends the iteration.
func Leaves(r io.Reader) iter.Seq2[Leaf, error] {
	return func(yield func(Leaf, error) bool) {
		in := bufio.NewReaderSize(r, 256<<10)
		sum, zero := sha256.New(), []byte{0}
		for leaf := (Leaf{}); ; {
			sum.Reset()
			sum.Write(zero)
			text, err := in.ReadSlice('\n')
			for err == bufio.ErrBufferFull {
				sum.Write(text)
				leaf.Length += int64(len(text))
				text, err = in.ReadSlice('\n')
			}
			if err != nil {
				if err != io.EOF {
					yield(Leaf{}, err)
				}
				return
			}
			sum.Write(text[:len(text)-1])
			leaf.Length += int64(len(text) - 1)
			sum.Sum(leaf.Hash[:0])
			if !yield(leaf, nil) {
				return
			}
			leaf = Leaf{Offset: leaf.Offset + leaf.Length + 1}
		}
	}
}

// Compact is a tree that remembers only what its head needs: O(log n). The zero value is the empty tree.
type Compact struct {
	n     int64
	peaks []Hash // roots of the complete subtrees, from left to right
	fresh []Hash
}

// Add puts a leaf at the end.
func (c *Compact) Add(leaf Hash) { c.add(leaf) }

// add puts a leaf at the end and returns it and the roots of the subtrees that it completes, from the bottom up: what is
// stored of a line. The list is valid until the next call.
func (c *Compact) add(leaf Hash) []Hash {
	c.fresh = append(c.fresh[:0], leaf)
	for i := c.n; i&1 == 1; i >>= 1 {
		last := len(c.peaks) - 1
		leaf = tlog.NodeHash(c.peaks[last], leaf)
		c.peaks = c.peaks[:last]
		c.fresh = append(c.fresh, leaf)
	}
	c.peaks = append(c.peaks, leaf)
	c.n++
	return c.fresh
}

// Tree is the head now.
func (c *Compact) Tree() Tree {
	if c.n == 0 {
		return emptyTree()
	}
	last := len(c.peaks) - 1
	root := c.peaks[last]
	for i := last - 1; i >= 0; i-- {
		root = tlog.NodeHash(c.peaks[i], root)
	}
	return Tree{N: c.n, Hash: root}
}
