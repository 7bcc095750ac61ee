package redact

import "slices"

// scanner masks what the index and its rules find in buf, as buf grows at its end.
//
// Every anchor is judged exactly once, in the pass that first can. Output stops in front of the first anchor that cannot
// be judged yet; the next pass searches from there again. Matches are kept in order of their begin, and overlapping
// ones become one mark, so that neither the order of rules nor that of passes shows in the result.
type scanner struct {
	index *index
	buf   []byte // the input, from a little before what was not emitted yet
	final bool   // nothing follows buf
	out   int    // buf[:out] is emitted
	pos   int    // anchors that begin in buf[:pos] are judged
	spans []span // matches that were not emitted, by start
	cover int    // the mark for buf[…:cover] is emitted
	open  class  // classes over which emitted matches go on at the end of buf
	pem   pem
	marks int

	pending []candidate // of this pass
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
	return s.flush(safe, emit)
}

// judge searches buf for anchors and returns where the first begins that cannot be judged yet.
func (s *scanner) judge() int {
	hold := len(s.buf)
	s.pending = s.pending[:0]
	s.index.search(s.buf, s.pos, func(a *anchor, at int, whole bool) {
		if !whole {
			if !s.final {
				hold = min(hold, at)
			}
			return
		}
		v := verdict{found: true, span: span{start: at, end: at + len(a.lit)}}
		if a.rule != nil {
			v = a.rule(s.buf, at, s.final)
		}
		if v.more {
			hold = min(hold, at)
		} else if v.found {
			s.pending = append(s.pending, candidate{at, v})
		}
	})
	slices.SortFunc(s.pending, func(a, b candidate) int { return a.at - b.at })
	for _, c := range s.pending {
		switch {
		case c.at >= hold: // the next pass finds it again
		case !c.v.pem:
			s.insert(c.v.span)
		case !s.pem.active || s.pem.pos < c.v.span.start:
			s.pem.advance(s.buf[:c.at], true, s.insert) // an older key ends at BEGIN, if it did not before
			s.pem.begin(c.v.span.start)
		}
	}
	s.pos = hold
	return hold
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
			m.end = m.class.end(s.buf, m.end)
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
	for i := range s.spans {
		s.spans[i].start -= n
		s.spans[i].end -= n
	}
}
