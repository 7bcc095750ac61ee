package audit

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"toolrun/archive/evidence"
	"toolrun/archive/ledger"
)

// checkTree holds the lines of the ledger against every checkpoint.
func (v *verifier) checkTree() error {
	sorted := slices.Clone(v.signed.checkpoints)
	slices.SortStableFunc(sorted, func(a, b Kept) int { return cmp.Compare(a.Checkpoint.Tree.N, b.Checkpoint.Tree.N) })
	var tree evidence.Compact
	var good, bad []Kept
	for _, c := range sorted {
		n := tree.Tree().N
		for ; n < c.Checkpoint.Tree.N && n < int64(len(v.leaves)); n++ {
			tree.Add(v.leaves[n])
		}
		if tree.Tree() == c.Checkpoint.Tree {
			good = append(good, c)
		} else {
			bad = append(bad, c)
		}
	}
	for i := v.signed.reach; i < int64(len(v.lines)); i++ {
		v.newer = append(v.newer, int(i))
	}
	if len(bad) > 0 {
		v.explain(good, bad)
		return nil
	}
	return v.checkHashes()
}

// explain names what is not as it was signed: line by line where the stored hashes are those that were signed, else as
// the lines between the last good checkpoint and the first bad one.
func (v *verifier) explain(holds, bad []Kept) {
	if was, by := v.signedLeaves(bad); was != nil {
		(&comparison{verifier: v, was: was, by: by}).run()
		return
	}
	lines, first, last := int64(len(v.leaves)), bad[0], bad[len(bad)-1]
	good := int64(0) // lines that are as they were signed: of checkpoints in one file only, for another may be forged
	for _, c := range holds {
		if c.File == first.File && c.Checkpoint.Tree.N < first.Checkpoint.Tree.N {
			good = c.Checkpoint.Tree.N
		}
	}
	if lines < last.Checkpoint.Tree.N {
		v.cut(last, lines+1, last.Checkpoint.Tree.N)
	}
	end := min(first.Checkpoint.Tree.N, lines)
	if good >= end {
		return // all that is left is as it was
	}
	file, line := v.at(int(good))
	v.find(Finding{Kind: LedgerChanged, File: file, Line: line, CallIDs: v.callsBetween(good, end),
		Text: fmt.Sprintf("%s:%d: of %s some were not signed so", first.File, first.Line, span(good+1, end))})
}

// cut tells that the lines from first to last, as they were signed, are not there.
func (v *verifier) cut(by Kept, first, last int64) {
	file, line := v.at(len(v.leaves))
	v.find(Finding{Kind: LedgerCut, File: file, Line: line, CallIDs: v.lost,
		Text: fmt.Sprintf("%s:%d: %d rows were signed, and %s cut off", by.File, by.Line, by.Checkpoint.Tree.N, isAre(first, last))})
}

func span(first, last int64) string {
	if first >= last {
		return fmt.Sprintf("line %d", last)
	}
	return fmt.Sprintf("lines %d to %d", first, last)
}

func isAre(first, last int64) string {
	if first >= last {
		return span(first, last) + " is"
	}
	return span(first, last) + " are"
}

func (v *verifier) ledgerFile() string { return filepath.Join(v.d.Path(), ledger.FileName) }

// namedCalls is up to how many calls a finding about several lines names.
const namedCalls = 16

// callsBetween are the calls of the lines [from, to), if they are few.
func (v *verifier) callsBetween(from, to int64) (calls []string) {
	for i := from; i < to && to-from <= namedCalls; i++ {
		if id := v.lines[i].call; id != "" {
			calls = append(calls, id)
		}
	}
	return calls
}

// signedLeaves are the leaves as they were signed, if the stored hashes are still those of the longest bad checkpoint that
// they reach; nil where they are not.
func (v *verifier) signedLeaves(bad []Kept) ([]evidence.Hash, Kept) {
	hashes, err := evidence.OpenHashes(v.d.Path())
	if err != nil {
		return nil, Kept{}
	}
	defer hashes.Close()
	for _, c := range slices.Backward(bad) {
		if c.Checkpoint.Tree.N > hashes.N {
			continue
		}
		leaves, err := hashes.Leaves(0, c.Checkpoint.Tree.N)
		if err != nil {
			break
		}
		var tree evidence.Compact
		for _, leaf := range leaves {
			tree.Add(leaf)
		}
		if tree.Tree() == c.Checkpoint.Tree {
			return leaves, c
		}
	}
	return nil, Kept{}
}

// checkHashes holds the stored hashes, which are derived, against the lines.
func (v *verifier) checkHashes() error {
	hashes, err := evidence.OpenHashes(v.d.Path())
	if err != nil {
		return err
	}
	defer hashes.Close()
	bad, err := hashes.Differ(v.leaves)
	if err != nil {
		return err
	}
	if bad >= 0 {
		v.find(Finding{Kind: HashesWrong, File: evidence.HashesName, Text: fmt.Sprintf("the hashes of line %d and perhaps others are wrong; they are derived: verify --repair-derived", bad+1)})
	}
	return nil
}

// checkCover demands that a checkpoint covers every row but those whose run has not ended, or has died and is not closed
// yet: such a run has a marker, which is taken away only after a checkpoint covers its rows.
func (v *verifier) checkCover() error {
	var ended []int // lines
	for _, i := range v.newer {
		if v.marked(v.lines[i].run) {
			v.report.Uncovered++
		} else {
			ended = append(ended, i)
		}
	}
	if len(ended) == 0 {
		return nil
	}
	reach, err := v.coveredSince() // read after the markers were looked at
	if err != nil {
		return err
	}
	open := map[string]int{} // by run, index into findings
	var findings []Finding
	for _, i := range ended {
		if int64(i) < reach {
			continue
		}
		line := v.lines[i]
		at, ok := open[line.run]
		if !ok {
			at = len(findings)
			open[line.run] = at
			file, no := v.at(i)
			findings = append(findings, Finding{Kind: NotCovered, File: file, Line: no})
		}
		findings[at].CallIDs = append(findings[at].CallIDs, line.call)
	}
	for _, f := range findings {
		f.Text = fmt.Sprintf("rows of a run that has ended, %d of them, are covered by no checkpoint", len(f.CallIDs))
		if v.report.Checkpoints == 0 {
			f.Kind = NoCheckpoint
		}
		f.CallIDs = f.CallIDs[:min(len(f.CallIDs), namedCalls)]
		v.find(f)
	}
	return nil
}

// coveredSince is how many lines a checkpoint covers by now, if they are more than were covered when what was signed was
// read: runs may have ended since.
func (v *verifier) coveredSince() (int64, error) {
	key := v.signed.key
	if key == nil {
		var err error
		if key, err = evidence.PublicKey(v.d.Path()); err != nil {
			return 0, nil // said where what was signed was read
		}
	}
	newest, err := evidence.Newest(v.d.Path(), key)
	if err != nil || newest == nil || newest.Tree.N <= v.signed.reach {
		return 0, err
	}
	return newest.Tree.N, nil
}
