package redact

import (
	"math/bits"
	"slices"
)

// scanner masks what the index and its rules find in buf, as buf grows at its end.
//
// Every anchor is judged exactly once, in the pass that first can: the first one that cannot be judged yet and all behind
// it are searched for again by the next pass. Output stops in front of what such an anchor may mask. Matches are kept in
// order of their begin, and overlapping ones become one mark, so that neither the order of rules nor that of passes shows
// in the result.
type scanner struct {
	index *index
	buf   []byte   // the input, from a little before what was not emitted yet
	final bool     // nothing follows buf
	out   int      // buf[:out] is emitted
	pos   int      // anchors that begin in buf[:pos] are judged
	spans []span   // matches that were not emitted, by start
	cover int      // the mark for buf[…:cover] is emitted
	open  class    // classes over which emitted matches go on at the end of buf
	runs  [16]span // by bit of a class: the last run of its bytes that was looked up
	pem   pem
	marks int

	hits    []hit // of this pass
	pending []candidate
}

// candidate is a verdict and where its anchor begins.
type candidate struct {
	at int
	v  verdict
}

// pass takes notice of what was appended to buf from grown on (and of final) and emits what is certain.
func (s *scanner) pass(grown int, emit func([]byte) error) error {
	if s.open != 0 {
		var still class
		for k := class(1); k != 0; k <<= 1 {
			if s.open&k != 0 {
				end := k.end(s.buf, grown)
				s.cover = max(s.cover, end)
				if end == len(s.buf) {
					still |= k
				}
			}
		}
		s.open = still
	}
	safe := s.judge()
	if s.pem.active {
		safe = min(safe, s.pem.advance(s.buf, s.final, s.insert))
	}
	return s.flush(max(safe, s.out), emit)
}

// judge searches buf for anchors, and returns up to where it is known what is a secret.
func (s *scanner) judge() (safe int) {
	safe = len(s.buf)
	hold := len(s.buf) // where the first anchor begins that cannot be judged yet
	s.pending = s.pending[:0]
	s.hits = s.index.search(s.hits[:0], s.buf, s.pos, s.final)
	for _, h := range s.hits {
		if !h.whole {
			if !s.final {
				hold, safe = min(hold, h.at), min(safe, h.at)
			}
			continue
		}
		v := verdict{found: true, span: span{start: h.at, end: h.at + len(h.anchor.lit)}}
		if h.anchor.rule != nil {
			v = h.anchor.rule(s.buf, h.at, s.final)
		}
		if v.more {
			hold, safe = min(hold, h.at), min(safe, max(h.at, v.from))
		} else if v.found {
			s.pending = append(s.pending, candidate{h.at, v})
		}
	}
	slices.SortFunc(s.pending, func(a, b candidate) int { return a.at - b.at })
	for _, c := range s.pending {
		switch {
		case c.at >= hold: // the next pass finds it again
			safe = min(safe, c.v.begin())
		case !c.v.pem:
			s.insert(c.v.span)
			for _, m := range c.v.rest {
				s.insert(m)
			}
		case !s.pem.active || s.pem.pos < c.v.span.start:
			s.pem.advance(s.buf[:c.at], true, s.insert) // an older key ends at BEGIN, if it did not before
			s.pem.begin(c.v.span.start)
		}
	}
	s.pos = hold
	if s.index.held && !s.final {
		safe = min(safe, held(s.buf))
	}
	return safe
}

// insert keeps a match in order of its begin.
func (s *scanner) insert(m span) {
	i := len(s.spans)
	for i > 0 && s.spans[i-1].start > m.start {
		i--
	}
	s.spans = slices.Insert(s.spans, i, m)
}

// flush emits buf up to safe, with marks in place of matches.
func (s *scanner) flush(safe int, emit func([]byte) error) error {
	done := 0
	for ; done < len(s.spans) && s.spans[done].start < safe; done++ {
		m := s.spans[done]
		if m.class != 0 {
			m.end = s.runEnd(m.class, m.end)
			if m.end == len(s.buf) {
				s.open |= m.class
			}
		}
		if m.start >= s.cover {
			if err := s.plain(m.start, emit); err != nil {
				return err
			}
			s.marks++
			if err := emit(mark); err != nil {
				return err
			}
		}
		s.cover = max(s.cover, m.end)
	}
	s.spans = slices.Delete(s.spans, 0, done)
	return s.plain(safe, emit)
}

// runEnd returns where the run of bytes of the class at buf[from:] ends. Matches that overlap share a run, which is walked
// once.
func (s *scanner) runEnd(k class, from int) int {
	r := &s.runs[bits.TrailingZeros16(uint16(k))]
	if from < r.start || from > r.end || r.end > len(s.buf) {
		r.start, r.end = from, from
	}
	r.end = k.end(s.buf, r.end)
	return r.end
}

var mark = []byte(Mark)

// plain emits buf up to end but for what is covered.
func (s *scanner) plain(end int, emit func([]byte) error) error {
	from := max(s.out, s.cover)
	s.out = end
	if from >= end {
		return nil
	}
	return emit(s.buf[from:end])
}

// compact drops from buf what no rule will look at again.
func (s *scanner) compact() {
	n := min(s.out, s.pos) - lookBehind
	if n <= 0 {
		return
	}
	s.buf = s.buf[:copy(s.buf, s.buf[n:])]
	s.out -= n
	s.pos -= n
	s.cover = max(s.cover-n, 0)
	s.pem.shift(n)
	s.runs = [16]span{}
	for i := range s.spans {
		s.spans[i].start -= n
		s.spans[i].end -= n
	}
}
