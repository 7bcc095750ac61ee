package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"toolrun/archive/evidence"
	"toolrun/archive/ledger"
	"toolrun/archive/month"
	"toolrun/archive/store"
)

// sealedMonth is one part of a sealed month, checked by itself.
type sealedMonth struct {
	part   *month.Part     // nil where its manifest cannot be read
	leaves []evidence.Hash // nil where its lines cannot be read
	bad    bool            // something of it was found: what is missing elsewhere may be in it
	index  bool            // only its index is not good
}

// readMonths checks every part that there is, and reads its traces.
func (v *verifier) readMonths() error {
	refs, err := v.d.Months()
	if err != nil {
		return err
	}
	for i, ref := range refs {
		v.Progress("months", i, len(refs))
		if v.month(ref); v.ctx.Err() != nil {
			return v.ctx.Err()
		}
	}
	// A run whose file went away while it was looked for has been sealed.
	for _, id := range v.gone {
		if v.runs[id] == nil && !v.excused(id) {
			v.find(Finding{Kind: RunUnreadable, File: v.d.RunPath(id), Text: "the file went away"})
		}
	}
	v.gone = nil
	return nil
}

// month checks a part, once.
func (v *verifier) month(ref month.Ref) *sealedMonth {
	if m := v.months[ref]; m != nil {
		return m
	}
	m := &sealedMonth{}
	v.months[ref] = m
	part, err := v.d.Part(ref)
	if err != nil {
		kind := MonthBad
		if errors.Is(err, fs.ErrNotExist) {
			kind = MonthMissing
		}
		v.monthFinding(m, kind, err)
		return m
	}
	m.part = part
	checked, err := month.Check(v.ctx, part)
	if err != nil {
		return m
	}
	for _, problem := range checked.Problems {
		v.monthFinding(m, MonthBad, problem)
	}
	if checked.Index != nil {
		bad := m.bad
		v.monthFinding(m, IndexWrong, checked.Index)
		m.bad, m.index = bad, true
	}
	m.leaves = checked.Leaves
	v.report.Months++
	v.report.ObjectBytes += checked.ObjectBytes
	for hash := range checked.Objects {
		v.sealed[hash] = true
	}
	for _, l := range part.Lost {
		v.lostObject(part, l)
	}
	if !m.bad && !part.Pruned {
		v.sealedRuns(m)
	}
	return m
}

// monthFinding notes what is wrong with a file of a part.
func (v *verifier) monthFinding(m *sealedMonth, kind string, err error) {
	m.bad = true
	f := Finding{Kind: kind, Text: err.Error()}
	var damage *ledger.Damage
	if errors.As(err, &damage) {
		f.File, f.Line, f.Text = damage.File, damage.Line, damage.Err.Error()
	}
	v.find(f)
}

// lostObject tells of an object that was not there, or not good, when the month was sealed, and still is not.
func (v *verifier) lostObject(p *month.Part, l month.Lost) {
	size, err := v.d.Store.Check(l.Hash)
	switch {
	case err == nil:
	case errors.Is(err, store.ErrMissing):
		v.find(Finding{Kind: ObjectMissing, File: p.Name(month.StoreFile), Hash: l.Hash, Text: "the object was " + l.Why + " when the month was sealed"})
	default:
		v.find(v.objectFinding(l.Hash, checkedObject{size, err}))
	}
}

// sealedRuns reads the traces of a part.
func (v *verifier) sealedRuns(m *sealedMonth) {
	for member, err := range m.part.Members(month.RunsFile) {
		if err != nil || v.ctx.Err() != nil {
			return // Check has told
		}
		if v.runs[member.Name] != nil {
			continue // it is hot as well, and was read there
		}
		r := newRun(m.part.Name(month.RunsFile) + ":" + member.Path)
		r.sealed, r.size = true, member.Bytes
		v.parseRun(r, member.Name, member, v.find)
		v.runs[member.Name] = r
		v.report.Runs++
		v.report.Bytes += r.size
	}
}

// excused tells whether what is missing of a run may be in a month that was pruned or cannot be read.
func (v *verifier) excused(run string) bool {
	for _, m := range v.months {
		if m.bad || m.part == nil {
			return true
		}
		if m.part.Pruned {
			if has, err := m.part.HasRun(run); err != nil || has {
				return true
			}
		}
	}
	return false
}

// excusedCall is excused of a call's row.
func (v *verifier) excusedCall(call string) bool {
	for _, m := range v.months {
		if m.bad || m.part == nil {
			return true
		}
		if m.part.Pruned {
			if has, err := m.part.HasCall(call); err != nil || has {
				return true
			}
		}
	}
	return false
}

// checkMonths holds the parts against their seals: each is signed, and names the one before it, so that a missing one shows.
func (v *verifier) checkMonths() error {
	before := evidence.FirstMonth
	seals := map[month.Ref]*evidence.MonthSeal{}
	for _, k := range v.signed.months {
		ref := month.Ref{Month: k.Month.Month, Part: k.Month.Part}
		if k.File != evidence.CheckpointsName {
			if s := seals[ref]; s == nil || s.Signed != k.Month.Signed {
				v.find(Finding{Kind: CheckpointMissing, File: k.File, Line: k.Line, Text: fmt.Sprintf("this seal of %v was signed here, and %s does not hold it", ref, evidence.CheckpointsName)})
			}
			continue
		}
		if k.Month.Before != before {
			v.find(Finding{Kind: CheckpointBad, File: k.File, Line: k.Line, Text: fmt.Sprintf("the seal of %v does not name the seal of a month before it", ref)})
		}
		before, seals[ref] = k.Month.Hash(), k.Month
		v.checkMonth(ref, k)
	}
	for ref, m := range v.months {
		if m.part != nil && seals[ref] == nil && v.taken[ref] {
			v.find(Finding{Kind: MonthUnsealed, File: m.part.Name(month.ManifestFile), Text: "its lines were taken out of the ledger, and no seal of it is signed"})
		} else if m.part != nil && seals[ref] == nil && v.stray(m.part) {
			v.find(Finding{Kind: MonthUnsealed, File: m.part.Name(month.ManifestFile), Text: "no seal of it is signed, and its lines are not in ledger.jsonl"})
		}
	}
	return nil
}

// stray tells whether a part is none that a sealing has just begun: its lines are not hot.
func (v *verifier) stray(p *month.Part) bool {
	if p.Pruned || len(p.Ranges) == 0 {
		return false
	}
	first := p.Ranges[0].Line
	if first < 0 || first >= int64(len(v.lines)) {
		return true
	}
	file, _ := v.at(int(first))
	return file != v.ledgerFile()
}

// checkMonth holds one part against its seal.
func (v *verifier) checkMonth(ref month.Ref, k Kept) {
	m := v.month(ref) // one that was sealed since the parts were listed is read now
	switch {
	case m.part == nil: // said already
	case m.part.SHA256 != k.Month.Manifest:
		m.bad = true
		v.find(Finding{Kind: MonthBad, File: m.part.Name(month.ManifestFile), Text: fmt.Sprintf("%s:%d: it is not the manifest that was sealed", k.File, k.Line)})
	case v.taken[ref]: // which comes after the seal was put beside it
		if note, err := month.ReadSeal(filepath.Join(v.d.Path(), ledger.ArchiveName), ref); err != nil || note != k.Month.Signed {
			v.find(Finding{Kind: SealWrong, File: m.part.Name(month.SealFile), Text: fmt.Sprintf("it is not the seal of %s:%d; it is derived: verify --repair-derived", k.File, k.Line)})
		}
	}
}

// checkCuts holds the file of cuts, which is derived, against the manifests.
func (v *verifier) checkCuts(cuts []ledger.Cut) {
	for _, c := range cuts {
		ref := month.Ref{Month: c.Month, Part: c.Part}
		v.taken[ref] = true
		m := v.month(ref)
		if m.part == nil {
			continue
		}
		if want := m.part.Cut(c.First, c.FirstBytes); !slices.Equal(want.Ranges, c.Ranges) || want.NextSeq != c.NextSeq {
			v.find(Finding{Kind: CutsWrong, File: ledger.CutsName, Text: fmt.Sprintf("what was taken out for %v is not what its manifest says; it is derived: verify --repair-derived", ref)})
		}
	}
}

// piece is where in a file some lines of the whole ledger are.
type piece struct {
	from int // index of its first line
	file string
	no   int // of that line in the file, from 0
}

// at is where line i of the whole ledger is, for a finding.
func (v *verifier) at(i int) (file string, line int) {
	hot := 0 // lines of ledger.jsonl
	for n, p := range v.pieces {
		end := len(v.lines)
		if n+1 < len(v.pieces) {
			end = v.pieces[n+1].from
		}
		if i < end {
			return p.file, p.no + i - p.from + 1
		}
		if p.file == v.ledgerFile() {
			hot = p.no + end - p.from
		}
	}
	return v.ledgerFile(), hot + i - len(v.lines) + 1
}

// unreadLines stand for the lines of a piece that cannot be read: their leaves are those that the stored hashes have, so that
// the others can be held against what was signed.
func (v *verifier) unreadLines(p ledger.Piece, m *sealedMonth) {
	leaves := make([]evidence.Hash, p.Lines)
	switch {
	case int64(len(m.leaves)) >= p.No+p.Lines:
		leaves = m.leaves[p.No : p.No+p.Lines]
	default:
		if hashes, err := evidence.OpenHashes(v.d.Path()); err == nil {
			if stored, err := hashes.Leaves(p.Line, p.Line+p.Lines); err == nil {
				leaves = stored
			}
			hashes.Close()
		}
	}
	v.leaves = append(v.leaves, leaves...)
	v.lines = append(v.lines, make([]lineRef, p.Lines)...)
	v.unread += int(p.Lines)
	if m.part != nil && m.part.Pruned {
		v.report.Pruned += int(p.Lines)
	}
}

// reader reads a piece of a part, if its lines are there and good.
func (m *sealedMonth) reader(p ledger.Piece) io.Reader {
	if m.part == nil || m.part.Pruned || int64(len(m.leaves)) < p.No+p.Lines {
		return nil
	}
	r, err := m.part.Content(p.At, p.At+p.Bytes)
	if err != nil {
		return nil
	}
	return r
}

// lastSeq is the last seq of the rows of a piece, -1 where it is not known.
func (m *sealedMonth) lastSeq(p ledger.Piece) int64 {
	if m.part != nil {
		for _, r := range m.part.Ranges {
			if r.Line == p.Line {
				return r.LastSeq
			}
		}
	}
	return -1
}
