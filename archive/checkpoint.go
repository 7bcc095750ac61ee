package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"toolrun/archive/evidence"
	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
)

// ErrContradiction means that the ledger is not what was signed before: nothing new is signed, and a verifier names it.
var ErrContradiction = evidence.ErrContradiction

// checkpointer signs what is new in the ledger: when a run ends, and while runs go on, an interval after the first row
// that is not covered.
type checkpointer struct {
	d *Dir

	mu     sync.Mutex // guards what follows
	newest *evidence.Checkpoint
	timer  *time.Timer // set while one is due
	closed bool
	due    sync.WaitGroup // checkpoints of the timer
}

// wrote notes that the ledger has grown.
func (c *checkpointer) wrote() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil || c.closed {
		return
	}
	c.due.Add(1)
	c.timer = time.AfterFunc(c.d.Config.Checkpoints.Interval, func() {
		defer c.due.Done()
		c.mu.Lock()
		c.timer = nil
		c.mu.Unlock()
		if _, err := c.d.Checkpoint(); err != nil {
			c.d.log.Error("no checkpoint was signed", "err", err)
		}
	})
}

func (c *checkpointer) close() {
	c.mu.Lock()
	c.closed = true
	if c.timer != nil && c.timer.Stop() {
		c.due.Done()
	}
	c.mu.Unlock()
	c.due.Wait()
}

// Checkpoint signs the ledger as it is now and returns the newest checkpoint. ErrContradiction: nothing was signed, and
// nothing will be until somebody has found out what happened to the ledger.
func (d *Dir) Checkpoint() (*evidence.Checkpoint, error) {
	if d.Ledger == nil {
		return nil, errReadOnly
	}
	return d.sign(nil)
}

// Newest is the newest checkpoint that this process signed, nil where it signed none.
func (d *Dir) Newest() *evidence.Checkpoint {
	if d.checkpoints == nil {
		return nil
	}
	d.checkpoints.mu.Lock()
	defer d.checkpoints.mu.Unlock()
	return d.checkpoints.newest
}

// sign syncs everything that the checkpoint will cover, whoever wrote it, and signs, with the seals of runs that have
// ended. Then the checkpoint goes where config.toml says.
func (d *Dir) sign(seals []evidence.Seal) (*evidence.Checkpoint, error) { return d.signAll(seals, nil) }

// signAll is sign with the seal of a month, if there is one.
func (d *Dir) signAll(seals []evidence.Seal, month *evidence.MonthSeal) (*evidence.Checkpoint, error) {
	size, own, err := d.Ledger.Signable()
	if err != nil {
		return nil, err
	}
	if err := d.noteOthers(size, own); err != nil {
		return nil, err
	}
	if err := d.sync.flush(); err != nil {
		return nil, err
	}
	c, err := evidence.Sign(d.path, evidence.Statement{
		Open: d.whole, Size: size, Own: own, Month: month,
		Seals: func(first bool) ([]evidence.Seal, error) {
			if !first {
				return seals, nil
			}
			earlier, err := d.earlierRuns(seals)
			return append(earlier, seals...), err
		},
	}, evidence.Options{Logger: d.log, Now: d.now, Locked: d.Ledger.Locked})
	if err != nil {
		return nil, fmt.Errorf("sign a checkpoint: %w", err)
	}
	d.Ledger.Signed(size)
	d.checkpoints.mu.Lock()
	again := d.checkpoints.newest != nil && d.checkpoints.newest.Note == c.Note
	d.checkpoints.newest = c
	d.checkpoints.mu.Unlock()
	if !again || month != nil {
		d.publish(c)
	}
	return c, nil
}

// noteOthers notes for the next sync what rows of other processes name, those rows that no checkpoint covers yet: their
// writers may not have synced it, and may have died before they did.
func (d *Dir) noteOthers(size int64, own []evidence.Leaf) error {
	hashes, err := evidence.OpenHashes(d.path)
	if err != nil {
		return err
	}
	defer hashes.Close()
	from, others := hashes.Offset, size-hashes.Offset
	mine := make(map[int64]bool, len(own))
	for _, leaf := range own {
		if leaf.Offset >= from {
			mine[leaf.Offset] = true
			others -= leaf.Length + 1
		}
	}
	if others <= 0 {
		return nil
	}
	hot, err := ledger.OpenHot(d.path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer hot.Close()
	for _, p := range hot.Pieces() {
		if p.Cut != nil || p.Offset+p.Bytes <= from {
			continue // what was sealed is synced
		}
		at := max(from, p.Offset)
		if err := d.noteLines(io.LimitReader(hot.Reader(p, at), size-at), at, mine); err != nil {
			return err
		}
	}
	return nil
}

// noteLines does so for what r holds of the ledger from a byte on.
func (d *Dir) noteLines(r io.Reader, from int64, mine map[int64]bool) error {
	for line, err := range jsonl.Lines(r) {
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if mine[from+line.Offset] {
			continue
		}
		row, err := ledger.ParseRow(line.Text)
		if err != nil {
			continue // a verifier names it
		}
		d.noteShared(row)
		if _, mine := d.own.Load(row.RunID); !mine && row.RunID != "" {
			d.noteRecent(d.runPath(row.RunID))
		}
	}
	return nil
}

// earlierRuns seals the runs that ended before anything was signed here, as they are: there is nothing to hold them
// against.
func (d *Dir) earlierRuns(besides []evidence.Seal) ([]evidence.Seal, error) {
	known := map[string]bool{}
	for _, s := range besides {
		known[s.RunID] = true
	}
	entries, err := os.ReadDir(filepath.Join(d.path, runsName))
	if err != nil {
		return nil, err
	}
	var seals []evidence.Seal
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok || known[id] || d.Marked(id) {
			continue
		}
		seal, err := d.sealOf(id)
		if err != nil {
			d.log.Warn("an earlier run is not sealed", "run_id", id, "err", err)
			continue
		}
		seals = append(seals, seal)
	}
	return seals, nil
}

// sealOf reads the file of a run that has ended.
func (d *Dir) sealOf(id string) (evidence.Seal, error) {
	f, err := os.Open(d.runPath(id))
	if err != nil {
		return evidence.Seal{}, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	return evidence.Seal{RunID: id, Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}
