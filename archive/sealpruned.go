package archive

import (
	"io"
	"os"
	"slices"

	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
	"toolrun/archive/month"
)

// resumePruned is resumePart of a part that was pruned. Its lines are hot again where somebody put back an older ledger. With
// traces or objects they are rows as any others, which come late and make a further part. From the ledger alone they are what
// was given up, and are taken out again.
func (s *sealer) resumePruned(p *month.Part, c *month.Content) error {
	if back, err := putBack(p, c.Hot); err != nil || !back {
		return err
	}
	alone, err := s.alone(p, c)
	if err != nil {
		return err
	}
	if !alone {
		return s.forgetCut(p.Ref)
	}
	if err := month.CompareLeaves(p, c); err != nil {
		return err
	}
	if err := s.room(c); err != nil {
		return err
	}
	s.Say("%v: its lines, which were pruned, are in an older ledger that was put back: they are taken out again", p.Ref)
	return s.finish(c, c.Hot)
}

// putBack tells whether the first line of a pruned part is in its place in ledger.jsonl.
func putBack(p *month.Part, hot *ledger.Hot) (bool, error) {
	if len(p.Ranges) == 0 {
		return false, nil
	}
	leaves, err := p.Leaves()
	if err != nil {
		return false, err
	}
	first, err := firstLeaf(hot, p.Ranges[0].Range)
	return err == nil && first.Hash == leaves[0].Hash, nil // else another part has it, or the ledger is shorter
}

// alone tells whether of a pruned part only lines are hot: no trace, and not every object that they name.
func (s *sealer) alone(p *month.Part, c *month.Content) (bool, error) {
	x, err := p.Index()
	if err != nil {
		return false, err
	}
	ids, err := x.Runs()
	if err != nil {
		return false, err
	}
	for _, id := range ids {
		if _, err := os.Lstat(s.d.runPath(id)); err == nil {
			return false, nil
		}
	}
	lost := map[string]bool{} // before it was sealed
	for _, l := range p.Lost {
		lost[l.Hash] = true
	}
	for _, r := range c.Ranges {
		at, ok := c.Hot.Place(r.Offset)
		if !ok {
			continue // they are not hot, and cannot be late; whether they are what was given up, CompareLeaves tells
		}
		for raw, err := range jsonl.Lines(io.NewSectionReader(c.Hot, at, r.Bytes)) {
			if err == nil {
				err = s.ctx.Err()
			}
			if err != nil {
				return false, err
			}
			row, err := ledger.ParseRow(raw.Text)
			if err != nil {
				continue
			}
			for _, hash := range row.Objects() {
				if !lost[hash] && !s.d.Store.Has(hash) {
					return true, nil
				}
			}
		}
	}
	return false, nil
}

// forgetCut takes a cut out of the file of cuts, unless it was made.
func (s *sealer) forgetCut(ref month.Ref) error {
	hot, err := ledger.OpenHot(s.d.path)
	if err != nil {
		return err
	}
	defer hot.Close()
	cuts, err := ledger.ReadCuts(s.d.path)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(cuts), func(c ledger.Cut) bool { return refOf(&c) == ref })
	if len(left) == len(cuts) || hot.Has(ref.Month, ref.Part) {
		return nil
	}
	return ledger.WriteCuts(s.d.path, left)
}
