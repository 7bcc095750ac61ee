package month

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"toolrun/archive/evidence"
	"toolrun/archive/internal/seekable"
	"toolrun/archive/ledger"
	"toolrun/archive/trace"
)

// Checked is what Check found in a part.
type Checked struct {
	Leaves      []evidence.Hash // of its lines, in their order; nil where they cannot be read
	Objects     map[string]bool // that it holds, each as its name says
	ObjectBytes int64
	Runs        []CheckedRun
	Problems    []error // *ledger.Damage, each naming a file of the part
	Index       error   // the same of the index, which can be made again; of a pruned part it is among the problems
}

// CheckedRun is a trace of the part, and what it names.
type CheckedRun struct {
	ID string
	TraceFacts
}

// Check holds a part against its manifest, and its index against what is in it, and demands that it is complete: every
// object that its lines and traces name is there, or is noted as lost. It goes on whatever it finds.
func Check(ctx context.Context, p *Part) (*Checked, error) {
	c := &checking{Part: p, ctx: ctx, out: Checked{Objects: map[string]bool{}}, needed: map[string]bool{}}
	if p.Pruned {
		leaves, err := p.Leaves()
		c.problem(err)
		for _, l := range leaves {
			c.out.Leaves = append(c.out.Leaves, l.Hash)
		}
		c.problem(p.checkFile(ctx, IndexFile))
		return &c.out, ctx.Err()
	}
	for _, name := range []string{LedgerFile, RunsFile, StoreFile} {
		c.problem(p.checkFile(ctx, name))
	}
	c.out.Index = p.checkFile(ctx, IndexFile)
	if len(c.out.Problems) == 0 {
		c.lines()
		c.runs()
		c.store()
	}
	if len(c.out.Problems) == 0 && c.out.Index == nil {
		c.out.Index = c.index()
	}
	return &c.out, ctx.Err()
}

type checking struct {
	*Part
	out    Checked
	ctx    context.Context
	got    gathered
	needed map[string]bool
}

func (c *checking) problem(err error) {
	var damage *ledger.Damage
	if err != nil && !errors.As(err, &damage) {
		err = c.Damage(ManifestFile, 0, err)
	}
	if err != nil {
		c.out.Problems = append(c.out.Problems, err)
	}
}

func (c *checking) lines() {
	r, err := c.reader(LedgerFile)
	for i := 0; err == nil && i < r.Frames() && c.ctx.Err() == nil; i++ {
		var block []byte
		if block, err = r.Frame(i, nil); err == nil && len(block) > 0 {
			c.got.add(factsOf(block))
		}
	}
	if err != nil {
		c.problem(c.Damage(LedgerFile, 0, err))
		return
	}
	c.out.Leaves = c.got.leaves
	if n := int64(len(c.out.Leaves)); n != c.Manifest.Lines || c.got.rows != c.Rows {
		c.problem(c.Damage(LedgerFile, 0, fmt.Errorf("%w: %d rows and %d lines, and the manifest says %d and %d", seekable.ErrDamaged, c.got.rows, n, c.Rows, c.Manifest.Lines)))
	}
	if n := c.got.end(); n != c.Sessions {
		c.problem(c.Damage(LedgerFile, 0, fmt.Errorf("%w: %d sessions, and the manifest says %d", seekable.ErrDamaged, n, c.Sessions)))
	}
	for _, o := range c.got.objects {
		c.needed[o.hash] = true
	}
}

func (c *checking) runs() {
	for m, err := range c.Members(RunsFile) {
		if err != nil {
			c.problem(err)
			return
		}
		if c.ctx.Err() != nil {
			return
		}
		facts, err := ReadTrace(c.Name(RunsFile)+":"+m.Path, m)
		if err != nil {
			c.problem(c.Damage(RunsFile, 0, err))
			return
		}
		for _, hash := range facts.Objects {
			c.needed[hash] = true
		}
		c.out.Runs = append(c.out.Runs, CheckedRun{m.Name, facts})
		c.got.index.put(tableRuns, ledger.RunHash(m.Name), uint64(m.Offset), uint64(m.Bytes))
		c.got.index.names = append(c.got.index.names, m.Name)
	}
	if n := int64(len(c.out.Runs)); n != c.Manifest.Runs {
		c.problem(c.Damage(RunsFile, 0, fmt.Errorf("%w: %d traces, and the manifest says %d", seekable.ErrDamaged, n, c.Manifest.Runs)))
	}
}

func (c *checking) store() {
	for m, err := range c.Members(StoreFile) {
		if err == nil {
			err = c.checkObject(m)
		}
		if err != nil {
			c.problem(err)
			return
		}
		if c.ctx.Err() != nil {
			return
		}
		key, _ := objectHash(m.Name)
		c.got.index.put(tableObjects, key, uint64(m.Offset), uint64(m.Bytes))
		c.out.Objects[m.Name] = true
		c.out.ObjectBytes += m.Bytes
	}
	lost := map[string]bool{}
	for _, l := range c.Lost {
		lost[l.Hash] = true
	}
	for hash := range c.needed {
		if _, err := objectHash(hash); err == nil && !c.out.Objects[hash] && !lost[hash] {
			c.problem(c.Damage(StoreFile, 0, fmt.Errorf("%w: object %s, which the month needs, is not in it", seekable.ErrDamaged, hash)))
		}
	}
}

// index demands that the index is that of what was read.
func (c *checking) index() error {
	x, err := c.Index()
	if err != nil {
		return err
	}
	have := make([]byte, c.Files[IndexFile].Bytes)
	if _, err := x.from.from.ReadAt(have, 0); err != nil && err != io.EOF {
		return c.Damage(IndexFile, 0, err)
	}
	if !bytes.Equal(c.got.index.encode(), have) {
		return c.Damage(IndexFile, 0, fmt.Errorf("%w: it is not the index of what is in the month", seekable.ErrDamaged))
	}
	return nil
}

// TraceFacts are what sealing needs of a trace.
type TraceFacts struct {
	End     string   // the latest time in its lines
	Objects []string // that its calls name
	Defines []string // that its catalog names
	Open    int      // calls without their result
}

// ReadTrace reads a trace; name is for messages. Lines that are damaged a verifier names.
func ReadTrace(name string, r io.Reader) (f TraceFacts, err error) {
	open := map[string]bool{}
	for line, err := range trace.LinesFrom(name, r) {
		var damage *ledger.Damage
		if errors.As(err, &damage) {
			continue
		}
		if err != nil {
			return f, err
		}
		f.End = max(f.End, line.TS, line.StartedAt)
		switch line.Type {
		case trace.TypeCatalog:
			var byName map[string]string
			if json.Unmarshal(line.DefinitionSHA256, &byName) == nil {
				for _, hash := range byName {
					f.Defines = append(f.Defines, hash)
				}
			}
		case trace.TypeToolCall:
			if line.Payloads == "" {
				f.Objects = append(f.Objects, line.ArgsSHA256)
			}
			open[line.CallID.String()] = true
		case trace.TypeToolResult:
			delete(open, line.CallID.String())
		}
	}
	f.Open = len(open)
	slices.Sort(f.Defines)
	return f, nil
}
