package month

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"toolrun/archive/evidence"
	"toolrun/archive/internal/jsonl"
	"toolrun/archive/internal/seekable"
)

// leavesMagic begins the leaves of a pruned part: then for each line its length without the newline, 4 bytes big-endian,
// and its leaf hash.
const leavesMagic = "toollvs1"

const leafBytes = 4 + len(evidence.Hash{})

// Prune gives up the content of a part: lines, traces and objects. What proves the rows that are left stays: the manifest,
// the seal, the index, and the leaves of the tree, which are written first.
func (p *Part) Prune() error {
	for _, name := range contentFiles {
		if info, err := os.Lstat(p.Name(name)); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("prune %v: %q is not a regular file: what it leads to would stay", p.Ref, p.Name(name))
		}
	}
	if !p.Pruned {
		if err := p.writeLeaves(); err != nil {
			return fmt.Errorf("prune %v: %w", p.Ref, err)
		}
	}
	// Killed here: nothing is given up yet. Without the lines it is pruned, and what is not removed then is removed by the next
	// prune.
	for _, name := range contentFiles {
		if err := jsonl.Calls.Unlink(p.Name(name)); err != nil && err != unix.ENOENT {
			return fmt.Errorf("prune %v: %w", p.Ref, &os.PathError{Op: "remove", Path: p.Name(name), Err: err})
		}
		if err := jsonl.SyncDir(filepath.Dir(p.Name(name))); err != nil {
			return fmt.Errorf("prune %v: %w", p.Ref, err)
		}
	}
	return nil
}

// contentFiles are the files that pruning removes, the lines first.
var contentFiles = []string{LedgerFile, RunsFile, StoreFile}

func (p *Part) writeLeaves() error {
	r, err := p.reader(LedgerFile)
	if err != nil {
		return p.Damage(LedgerFile, 0, err)
	}
	text, n := []byte(leavesMagic), int64(0)
	for leaf, err := range evidence.Leaves(r.Section(0, r.Size())) {
		if err != nil {
			return p.Damage(LedgerFile, 0, err)
		}
		text = binary.BigEndian.AppendUint32(text, uint32(leaf.Length))
		text = append(text, leaf.Hash[:]...)
		n++
	}
	if n != p.Manifest.Lines {
		return p.Damage(LedgerFile, 0, fmt.Errorf("%w: %d lines, and the manifest says %d", seekable.ErrDamaged, n, p.Manifest.Lines))
	}
	return jsonl.Replace(p.Name(leavesFile), text)
}

// Leaves are the leaves of the lines of a pruned part, in their order; offsets count in the part's ledger.
func (p *Part) Leaves() ([]evidence.Leaf, error) {
	want := int64(len(leavesMagic)) + p.Manifest.Lines*int64(leafBytes)
	text, err := jsonl.ReadRegular(p.Name(leavesFile), want+1)
	if err != nil {
		return nil, p.Damage(leavesFile, 0, err)
	}
	rest, ok := bytes.CutPrefix(text, []byte(leavesMagic))
	if !ok || int64(len(text)) != want {
		return nil, p.Damage(leavesFile, 0, fmt.Errorf("%w: not the leaves of %d lines", seekable.ErrDamaged, p.Manifest.Lines))
	}
	leaves, at := make([]evidence.Leaf, 0, p.Manifest.Lines), int64(0)
	for ; len(rest) > 0; rest = rest[leafBytes:] {
		leaf := evidence.Leaf{Offset: at, Length: int64(binary.BigEndian.Uint32(rest))}
		copy(leaf.Hash[:], rest[4:])
		at += leaf.Length + 1
		leaves = append(leaves, leaf)
	}
	return leaves, nil
}

// CompareLeaves is Compare of a part that was pruned: of its lines nothing is there but the leaves.
func CompareLeaves(p *Part, c *Content) error {
	leaves, err := p.Leaves()
	if err != nil {
		return err
	}
	differs := fmt.Errorf("hold %v against its leaves: %w: lines of %q", p.Ref, ErrDiffers, c.Hot.Path)
	for _, r := range c.Ranges {
		at, ok := c.Hot.Place(r.Offset)
		if !ok {
			return differs
		}
		for leaf, err := range evidence.Leaves(io.NewSectionReader(c.Hot, at, r.Bytes)) {
			if err != nil {
				return err
			}
			if len(leaves) == 0 || leaf.Hash != leaves[0].Hash {
				return differs
			}
			leaves = leaves[1:]
		}
	}
	if len(leaves) > 0 {
		return differs
	}
	return nil
}

// Restore writes what a part holds into a folder as it lay in the data directory: its lines are appended to ledger.jsonl,
// traces and objects come into runs and store. Each file is held against its hash in the manifest first.
func (p *Part) Restore(ctx context.Context, dir string) error {
	if p.Pruned {
		return fmt.Errorf("restore %v: %w", p.Ref, ErrPruned)
	}
	for _, name := range []string{LedgerFile, RunsFile, StoreFile} {
		if err := p.checkFile(ctx, name); err != nil {
			return fmt.Errorf("restore %v: %w", p.Ref, err)
		}
	}
	r, err := p.reader(LedgerFile)
	if err != nil {
		return fmt.Errorf("restore %v: %w", p.Ref, p.Damage(LedgerFile, 0, err))
	}
	if err := restoreFile(filepath.Join(dir, "ledger.jsonl"), os.O_APPEND, r.Section(0, r.Size())); err != nil {
		return fmt.Errorf("restore %v: %w", p.Ref, err)
	}
	for _, file := range []string{RunsFile, StoreFile} {
		for m, err := range p.Members(file) {
			if err == nil && m.Path != runName(m.Name) && (len(m.Name) != 64 || m.Path != objectName(m.Name)) || err == nil && !filepath.IsLocal(m.Path) {
				err = p.Damage(file, 0, fmt.Errorf("%w: it holds %q", seekable.ErrDamaged, m.Path))
			}
			if err == nil {
				err = restoreFile(filepath.Join(dir, m.Path), os.O_TRUNC, m)
			}
			if err != nil {
				return fmt.Errorf("restore %v: %w", p.Ref, err)
			}
		}
	}
	return nil
}

func restoreFile(path string, flag int, from io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flag, 0o600)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 256<<10)
	if _, err = io.Copy(out, from); err == nil {
		err = out.Flush()
	}
	return errors.Join(err, f.Close())
}
