package redact

import (
	"bytes"
	"encoding/binary"
)

// anchor is a literal that begins a match, or stands in front of one, and the rule that judges what follows it.
type anchor struct {
	lit   []byte     // 2 bytes at least; lower case if fold is set
	fold  bool       // ASCII letters match in either case
	edge  bool       // no word goes on in front of it, see edge
	after *[256]bool // for a literal of 2 or 3 bytes: what may stand behind it; nil: anything
	front *[256]bool // for the same: what may stand in front of it; nil: after tells more
	rule  rule       // nil: the literal itself is the secret
	need  int        // after this many bytes the index has seen the anchor
}

// verdict is what a rule says of one anchor.
type verdict struct {
	found bool
	span  span
	rest  []span // further spans, behind the first
	more  bool   // cannot be told without more input; never said where the input is final
	from  int    // with more: no span will begin in front of it
	pem   bool   // a private key may begin at span.start
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
const lookBehind = 1 << 10

// index finds anchors. Each anchor is known by two windows of 3 of its bytes, one at an even and one at an odd distance
// from its begin, so that a look at every second window of the input finds it; the rarest windows are taken, so that text
// seldom stops the search. Case is ignored until the anchor itself is compared.
type index struct {
	bits    [1 << (hashBits - 6)]uint64 // by hash of a window: some anchor has it
	start   [1<<bucketBits + 1]uint32   // by the upper bits of the hash: where its refs begin
	refs    []ref
	tails   [256][]*anchor // by first byte: what the end of the input may be a beginning of
	short   []*anchor      // those whose windows reach over their end
	maxNeed int
	held    bool // there is something that no anchor tells, see held
}

const (
	hashBits   = 18 // 32 KiB, which stay in the first cache
	bucketBits = 12
	foldAll    = 0x2020202020202020
)

// ref says that a window stands off bytes behind the begin of an anchor (or one byte in front of it).
type ref struct {
	window uint32
	off    int32
	anchor *anchor
}

func newIndex(anchors []*anchor) *index {
	x := &index{}
	var refs []ref
	for _, a := range anchors {
		n := len(refs)
		if len(a.lit) > 3 {
			even, odd := rarestWindows(a.lit)
			refs = append(refs, ref{triple(a.lit[even:]), int32(even), a}, ref{triple(a.lit[odd:]), int32(odd), a})
		} else {
			refs = append(refs, shortWindows(a)...)
		}
		for _, r := range refs[n:] {
			a.need = max(a.need, int(r.off)+3)
		}
		x.maxNeed = max(x.maxNeed, a.need)
		if a.need > len(a.lit) {
			x.short = append(x.short, a)
		}
		for _, c := range cases(a.lit[0], a.fold) {
			x.tails[c] = append(x.tails[c], a)
		}
	}
	for _, r := range refs {
		h := hash(r.window)
		x.bits[h>>6] |= 1 << (h & 63)
		x.start[h>>(hashBits-bucketBits)+1]++
	}
	for i := range len(x.start) - 1 {
		x.start[i+1] += x.start[i]
	}
	x.refs = make([]ref, len(refs))
	next := x.start
	for _, r := range refs {
		i := &next[hash(r.window)>>(hashBits-bucketBits)]
		x.refs[*i] = r
		*i++
	}
	return x
}

// hit is an anchor in the input, complete or cut off by its end.
type hit struct {
	anchor *anchor
	at     int
	whole  bool
}

// search appends every anchor that begins in b[from:], each once. Where b is final, some of those that
// its end cuts off are left out.
func (x *index) search(hits []hit, b []byte, from int, final bool) []hit {
	i := from
	for {
		if i = x.skip(b, i); i+10 > len(b) {
			break
		}
		for end := i + 8; i < end; i += 2 {
			if v := hash(uint32(b[i]|0x20) | uint32(b[i+1]|0x20)<<8 | uint32(b[i+2]|0x20)<<16); x.bits[v>>6]&(1<<(v&63)) != 0 {
				hits = x.look(hits, b, from, i)
			}
		}
	}
	for ; i+3 <= len(b); i += 2 {
		hits = x.look(hits, b, from, i)
	}
	// Near the end an anchor may have begun whose windows are not there yet.
	if final {
		for _, a := range x.short {
			for i = max(from, len(b)-a.need+1); i+len(a.lit) <= len(b); i++ {
				if a.match(b, i) {
					hits = append(hits, hit{a, i, true})
				}
			}
		}
		return hits
	}
	for i = max(from, len(b)-x.maxNeed+1); i < len(b); i++ {
		for _, a := range x.tails[b[i]] {
			if len(b)-i < a.need && a.match(b, i) {
				hits = append(hits, hit{a, i, len(b)-i >= len(a.lit)})
			}
		}
	}
	return hits
}

// skip returns the first i, by steps of 8, where one of the four windows at b[i:] is that of an anchor, or where b has less
// than 10 bytes more.
func (x *index) skip(b []byte, i int) int {
	for ; i+10 <= len(b); i += 8 {
		t := b[i : i+10 : i+10]
		v, w := binary.LittleEndian.Uint64(t)|foldAll, binary.LittleEndian.Uint64(t[2:])|foldAll
		p, q, r, s := hash(uint32(v)), hash(uint32(v>>16)), hash(uint32(v>>32)), hash(uint32(w>>32))
		if x.bits[p>>6]&(1<<(p&63)) != 0 || x.bits[q>>6]&(1<<(q&63)) != 0 || x.bits[r>>6]&(1<<(r&63)) != 0 || x.bits[s>>6]&(1<<(s&63)) != 0 {
			break
		}
	}
	return i
}

// look appends the anchors that have the window at b[i:].
func (x *index) look(hits []hit, b []byte, from, i int) []hit {
	v := triple(b[i:])
	bucket := hash(v) >> (hashBits - bucketBits)
	for _, r := range x.refs[x.start[bucket]:x.start[bucket+1]] {
		if at := i - int(r.off); r.window == v && at >= from && r.anchor.match(b, at) {
			hits = append(hits, hit{r.anchor, at, len(b)-at >= len(r.anchor.lit)})
		}
	}
	return hits
}

// match tells whether the anchor, or a beginning of it that the end of b cuts off, stands at b[at:].
func (a *anchor) match(b []byte, at int) bool {
	s := b[at:min(len(b), at+len(a.lit))]
	if a.fold {
		for i, c := range s {
			if lower(c) != a.lit[i] {
				return false
			}
		}
	} else if !bytes.Equal(s, a.lit[:len(s)]) {
		return false
	}
	if a.front != nil && at > 0 && !a.front[b[at-1]] {
		return false
	}
	if end := at + len(a.lit); a.after != nil && end < len(b) && !a.after[b[end]] {
		return false
	}
	return !a.edge || edge(b, at)
}
