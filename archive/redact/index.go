package redact

import (
	"bytes"
	"encoding/binary"
)

// anchor is a literal that begins a match, or stands in front of one, and the rule that judges what follows it.
type anchor struct {
	lit  []byte // lower case if fold is set
	fold bool   // ASCII letters match in either case
	rule rule   // nil: the literal itself is the secret
	need int    // after this many bytes the index has seen the anchor
}

// verdict is what a rule says of one anchor.
type verdict struct {
	found bool
	more  bool // cannot be told without more input; never said where the input is final
	span  span
	pem   bool // a private key may begin at span.start
}

// rule judges the anchor at b[at:], which is there as a whole. It may look back over lookBehind bytes and forward over
// a bounded window, it reports no span that begins before the anchor, and once it has said something other than more,
// no continuation of b would make it say something else.
type rule func(b []byte, at int, final bool) verdict

// span is a stretch to be masked: up to end and on over the bytes of class.
type span struct {
	start, end int
	class      class
}

// lookBehind is how much of the input before an anchor a rule may look at.
const lookBehind = 64

// index finds anchors. Each anchor is known by two pairs of its bytes, one at an even and one at an odd distance from
// its begin, so that a look at every second pair of the input finds it; the rarest pairs are taken, so that text seldom
// stops the search.
type index struct {
	table   [1 << 16]uint16 // pair, first byte low → bucket, 0: none
	buckets [][]ref
	tails   [256][]*anchor // by first byte: what the end of the input may be a beginning of
	maxNeed int
}

// ref says that a pair stands off bytes behind the begin of an anchor.
type ref struct {
	a   *anchor
	off int
}

func newIndex(anchors []*anchor) *index {
	x := &index{buckets: make([][]ref, 1)}
	for _, a := range anchors {
		even, odd := rarestPairs(a.lit)
		a.need = max(even, odd) + 2
		x.maxNeed = max(x.maxNeed, a.need)
		x.add(a, even)
		x.add(a, odd)
		for _, c := range cases(a.lit[0], a.fold) {
			x.tails[c] = append(x.tails[c], a)
		}
	}
	return x
}

func (x *index) add(a *anchor, off int) {
	for _, lo := range cases(a.lit[off], a.fold) {
		for _, hi := range cases(a.lit[off+1], a.fold) {
			slot := &x.table[uint16(lo)|uint16(hi)<<8]
			if *slot == 0 {
				*slot = uint16(len(x.buckets))
				x.buckets = append(x.buckets, nil)
			}
			x.buckets[*slot] = append(x.buckets[*slot], ref{a, off})
		}
	}
}

// search calls hit for every anchor that begins in b[from:], complete or cut off by the end of b, in no order and
// perhaps twice.
func (x *index) search(b []byte, from int, hit func(a *anchor, at int, whole bool)) {
	look := func(i int, bucket uint16) {
		for _, r := range x.buckets[bucket] {
			if at := i - r.off; at >= from {
				if n := r.a.match(b[at:]); n > 0 {
					hit(r.a, at, n == len(r.a.lit))
				}
			}
		}
	}
	i := from
	for ; i+8 <= len(b); i += 8 {
		v := binary.LittleEndian.Uint64(b[i:])
		p, q, r, s := x.table[uint16(v)], x.table[uint16(v>>16)], x.table[uint16(v>>32)], x.table[v>>48]
		if p|q|r|s == 0 {
			continue
		}
		look(i, p)
		look(i+2, q)
		look(i+4, r)
		look(i+6, s)
	}
	for ; i+2 <= len(b); i += 2 {
		look(i, x.table[binary.LittleEndian.Uint16(b[i:])])
	}
	// Near the end an anchor may have begun whose pairs are not there yet.
	for i = max(from, len(b)-x.maxNeed+1); i < len(b); i++ {
		for _, a := range x.tails[b[i]] {
			if len(b)-i < a.need && a.match(b[i:]) > 0 {
				hit(a, i, len(b)-i >= len(a.lit))
			}
		}
	}
}

// match returns the length of the anchor where b begins with it, the length of b where b is a beginning of it, else 0.
func (a *anchor) match(b []byte) int {
	n := min(len(b), len(a.lit))
	if !a.fold {
		if !bytes.Equal(b[:n], a.lit[:n]) {
			return 0
		}
		return n
	}
	for i, c := range a.lit[:n] {
		if lower(b[i]) != c {
			return 0
		}
	}
	return n
}

// rarestPairs returns the even and the odd offset in lit, which has 3 bytes at least, where the rarest pairs stand.
func rarestPairs(lit []byte) (even, odd int) {
	best := [2]int{-1, -1}
	for i := 0; i+2 <= len(lit) && i < 16; i++ {
		if k := &best[i%2]; *k < 0 || frequency(lit[i])*frequency(lit[i+1]) < frequency(lit[*k])*frequency(lit[*k+1]) {
			*k = i
		}
	}
	return best[0], best[1]
}

// frequency ranks bytes by how often they stand in logs and source.
func frequency(c byte) int {
	switch {
	case bytes.IndexByte([]byte(" etaoinsr"), c) >= 0:
		return 12
	case bytes.IndexByte([]byte("lhdcumfpg\t\n0"), c) >= 0:
		return 8
	case 'a' <= c && c <= 'z', '1' <= c && c <= '9', bytes.IndexByte([]byte("./-_=\"(),:"), c) >= 0:
		return 5
	case 'A' <= c && c <= 'Z':
		return 3
	}
	return 2
}

func cases(c byte, fold bool) []byte {
	if fold && 'a' <= c && c <= 'z' {
		return []byte{c, c - 'a' + 'A'}
	}
	return []byte{c}
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
