package audit

import (
	"cmp"
	"fmt"
	"slices"

	"toolrun/archive/evidence"
)

// comparison names each line that is not where and what it was when it was signed. Lines that are still in their order
// hold the others in place: between two of them, what is new stands for what is gone, one for one.
type comparison struct {
	*verifier
	was []evidence.Hash // the lines as they were signed
	by  Kept            // the checkpoint that they were signed with

	found []bool // of was: it is there, wherever
	next  int    // the first of was behind the last line that kept its order
	fresh []int  // lines since then that were not signed
}

func (c *comparison) run() {
	now := c.places()
	kept := increasing(now)
	for i, p := range now {
		switch {
		case kept[i]:
			c.between(p)
			c.next = p + 1
		case p >= 0:
			c.line(RowMoved, i, fmt.Sprintf("it was signed as line %d", p+1))
		default:
			c.fresh = append(c.fresh, i)
		}
	}
	gone := c.pair(len(c.was))
	if len(gone) > 0 {
		c.cut(c.by, int64(gone[0])+1, int64(gone[len(gone)-1])+1)
	}
	c.newer = c.fresh // rows that were written since
}

// places returns for each line where it was signed, or -1.
func (c *comparison) places() []int {
	places := make(map[evidence.Hash][]int, len(c.was))
	for i, h := range c.was {
		places[h] = append(places[h], i)
	}
	c.found = make([]bool, len(c.was))
	now := make([]int, len(c.leaves))
	for i, h := range c.leaves {
		now[i] = -1
		if p := places[h]; len(p) > 0 {
			now[i], places[h] = p[0], p[1:]
			c.found[p[0]] = true
		}
	}
	return now
}

// between names what changed before the line that was signed as until.
func (c *comparison) between(until int) {
	for _, p := range c.pair(until) {
		file, line := c.at(p)
		f := Finding{Kind: RowRemoved, File: file, Line: line, Text: fmt.Sprintf("what was signed as line %d is gone", p+1)}
		if c.holes == 0 { // then every line is a row, and seq counts them
			seq := int64(p)
			f.Seq = &seq
		}
		c.find(f)
	}
	for _, i := range c.fresh {
		c.line(RowInserted, i, "it was not signed here")
	}
	c.fresh = nil
}

// pair names as edited what is new in the place of what is gone, and returns what else is gone before until; fresh keeps
// what else is new.
func (c *comparison) pair(until int) (gone []int) {
	for ; c.next < until; c.next++ {
		if !c.found[c.next] {
			gone = append(gone, c.next)
		}
	}
	edited := func(i, p int) { c.line(RowEdited, i, fmt.Sprintf("it is not what was signed as line %d", p+1)) }
	// A row that still has its seq is the one that was signed in that place.
	var others []int
	same := map[int]bool{}
	for _, i := range c.fresh {
		p := int(c.lines[i].seq)
		if _, ok := slices.BinarySearch(gone, p); ok && c.lines[i].call != "" && !same[p] {
			same[p] = true
			edited(i, p)
		} else {
			others = append(others, i)
		}
	}
	gone = slices.DeleteFunc(gone, func(p int) bool { return same[p] })
	n := min(len(gone), len(others))
	for i := range n {
		edited(others[i], gone[i])
	}
	c.fresh = others[n:]
	return gone[n:]
}

// line is a finding about line i of the ledger, counted from 0.
func (v *verifier) line(kind string, i int, text string) {
	file, no := v.at(i)
	f := Finding{Kind: kind, File: file, Line: no, CallIDs: v.callsBetween(int64(i), int64(i)+1), Text: text}
	if v.lines[i].call != "" {
		f.Seq = &v.lines[i].seq
	}
	v.find(f)
}

// increasing marks a longest increasing run among the numbers that are not negative.
func increasing(list []int) []bool {
	tails := []int{}                 // indexes into list: the ends of the best runs of each length
	before := make([]int, len(list)) // index of the one before in the run, or -1
	for i, p := range list {
		if p < 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(tails, p, func(t, p int) int { return cmp.Compare(list[t], p) })
		before[i] = -1
		if at > 0 {
			before[i] = tails[at-1]
		}
		if at == len(tails) {
			tails = append(tails, i)
		} else {
			tails[at] = i
		}
	}
	kept := make([]bool, len(list))
	if len(tails) == 0 {
		return kept
	}
	for i := tails[len(tails)-1]; i >= 0; i = before[i] {
		kept[i] = true
	}
	return kept
}
