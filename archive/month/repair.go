package month

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"toolrun/archive/internal/jsonl"
	"toolrun/archive/internal/seekable"
)

// RepairIndex makes the index of a part anew, if it is missing or damaged, out of what is in the part. The same content gives
// the same index, so that the manifest has its hash already. Of a pruned part there is nothing to make it of.
func (p *Part) RepairIndex(ctx context.Context) error {
	bad := p.checkFile(ctx, IndexFile)
	if bad == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if p.Pruned {
		return fmt.Errorf("make the index of %v anew: %w: %w", p.Ref, ErrPruned, bad)
	}
	c := &checking{Part: p, ctx: ctx, out: Checked{Objects: map[string]bool{}}, needed: map[string]bool{}}
	for _, step := range []func(){c.lines, c.runs, c.store} {
		step()
	}
	if err := errors.Join(ctx.Err(), errors.Join(c.out.Problems...)); err != nil {
		return fmt.Errorf("make the index of %v anew: %w", p.Ref, err)
	}
	text := c.got.index.encode()
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != p.Files[IndexFile].SHA256 {
		return fmt.Errorf("make the index of %v anew: %w: it would not be the one that the manifest names", p.Ref, seekable.ErrDamaged)
	}
	if err := jsonl.Replace(p.Name(IndexFile), text); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.files[IndexFile]; f != nil {
		f.Close()
	}
	delete(p.files, IndexFile)
	p.index = nil
	return nil
}
