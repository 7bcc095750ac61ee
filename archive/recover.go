package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"toolrun/archive/evidence"
	"toolrun/archive/held"
	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
	"toolrun/archive/trace"
	"toolrun/archive/watch"
)

// Recover closes what dead runs left open, by the same appends that normal calls use, and returns how many calls it
// closed. closedBy, a run id or the name of a process, stands in the rows. A run is dead when it has a marker and nobody
// holds the flock on its file; whoever gets the flock closes it, the others pass on. Killed at any step it is a dead
// run as before, a little shorter of what is missing. With nothing to do it costs one reading of live/.
func (d *Dir) Recover(closedBy string) (n int, err error) {
	if d.Ledger == nil {
		return 0, errReadOnly
	}
	entries, err := os.ReadDir(filepath.Join(d.path, liveName))
	if err != nil {
		return 0, fmt.Errorf("recover: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if _, own := d.own.Load(e.Name()); !own {
			ids = append(ids, e.Name())
		}
	}
	return d.recover(ids, closedBy)
}

func (d *Dir) recover(ids []string, closedBy string) (n int, err error) {
	if len(ids) == 0 {
		return 0, nil
	}
	dead, err := d.claimDead(ids)
	defer func() {
		for _, r := range dead {
			r.f.Close() // and with it the flock
		}
	}()
	// One run that cannot be closed does not keep the others from it.
	failed := func(r *deadRun, cause error) { err = errors.Join(err, fmt.Errorf("recover run %s: %w", r.id, cause)) }
	var open []*deadRun
	for _, r := range dead {
		if err := d.readDead(r); err != nil {
			failed(r, err)
			continue
		}
		open = append(open, r)
	}
	if rowsErr := d.findRows(open); rowsErr != nil {
		return 0, errors.Join(err, fmt.Errorf("recover: %w", rowsErr))
	}
	var closed []*deadRun
	for _, r := range open {
		calls, err := d.closeDead(r, closedBy)
		n += calls
		if err != nil {
			failed(r, err)
		} else if r.size > 0 {
			closed = append(closed, r)
		}
	}
	return n, errors.Join(err, d.sealDead(closed))
}

// sealDead signs for runs that were closed and takes their markers away: a run without a marker is sealed, and its rows
// are covered.
func (d *Dir) sealDead(closed []*deadRun) error {
	if len(closed) == 0 {
		return nil
	}
	seals := make([]evidence.Seal, len(closed))
	for i, r := range closed {
		var err error
		if seals[i], err = d.sealOf(r.id); err != nil {
			return fmt.Errorf("recover run %s: %w", r.id, err)
		}
	}
	err := d.Ledger.SyncIDs()
	if err == nil {
		_, err = d.sign(seals)
	}
	if err != nil && !errors.Is(err, ErrContradiction) {
		return fmt.Errorf("recover: %w", err)
	}
	// Killed here: dead runs with nothing open, which the next process seals once more.
	for _, r := range closed {
		err = errors.Join(err, held.Remove(d.path, r.id), watch.Remove(d.path, r.id), d.unmark(r.id))
	}
	return err
}

// deadRun is a run whose flock this process holds.
type deadRun struct {
	id   string
	f    *os.File
	size int64
	open []*trace.Line // calls without their result, in order
	used []string      // every tool_call_id
	rows map[string]*ledger.Row
}

// claimDead takes the flock of each run that nobody holds. It does so under the lock of the ledger, under which runs
// begin: a marker without a file is then of a process that died between the two. The error is of those that it had to
// leave.
func (d *Dir) claimDead(ids []string) (dead []*deadRun, err error) {
	var errs []error
	err = d.Ledger.Locked(func() error {
		for _, id := range ids {
			f, err := os.OpenFile(d.runPath(id), os.O_RDWR|os.O_APPEND, 0)
			if errors.Is(err, fs.ErrNotExist) {
				err = d.unmark(id)
			} else if err == nil {
				var free bool
				if free, err = lockDead(f); free && err == nil {
					dead = append(dead, &deadRun{id: id, f: f, rows: map[string]*ledger.Row{}})
					continue
				}
				f.Close()
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("recover run %s: %w", id, err))
			}
		}
		return nil
	})
	return dead, errors.Join(append(errs, err)...)
}

// lockDead takes the flock unless a run or another recovery holds it. A verifier's shared lock it waits for.
func lockDead(f *os.File) (bool, error) {
	if free, err := jsonl.Lock(f, unix.LOCK_EX|unix.LOCK_NB); free || err != nil {
		return free, err
	}
	if free, err := jsonl.Lock(f, unix.LOCK_SH|unix.LOCK_NB); !free || err != nil {
		return false, err
	}
	return jsonl.Lock(f, unix.LOCK_EX)
}

// readDead repairs the end of the file and reads which calls are open.
func (d *Dir) readDead(r *deadRun) error {
	err := d.Ledger.Locked(func() error {
		size, tail, err := jsonl.Repair(d.path, r.f, d.now(), func(line []byte) bool { _, err := trace.ParseLine(line); return err == nil })
		if tail != nil {
			d.log.Warn("trace repaired", "what", tail.String())
		}
		r.size = size
		return err
	})
	if err != nil {
		return err
	}
	open := map[string]*trace.Line{}
	for line, err := range trace.LinesOf(r.f, r.size) {
		var damage *ledger.Damage
		switch {
		case errors.As(err, &damage):
			d.log.Warn("damaged line in a dead run", "err", damage)
		case err != nil:
			return err
		case line.Type == trace.TypeToolCall:
			r.used = append(r.used, line.CallID.String())
			line.Raw = nil
			open[line.CallID.String()] = line
		case line.Type == trace.TypeApproval:
			if call := open[line.CallID.String()]; call != nil {
				call.ApprovalStatus, call.By = line.ApprovalStatus, line.By
			}
		case line.Type == trace.TypeToolResult:
			delete(open, line.CallID.String())
		}
	}
	r.open = slices.SortedFunc(maps.Values(open), func(a, b *trace.Line) int { return a.No - b.No })
	return nil
}

// findRows looks in the ledger for rows of the runs that have open calls.
func (d *Dir) findRows(dead []*deadRun) error {
	byID := map[string]*deadRun{}
	for _, r := range dead {
		if len(r.open) > 0 {
			byID[r.id] = r
		}
	}
	if len(byID) == 0 {
		return nil
	}
	for row, err := range d.Rows() {
		var damage *ledger.Damage
		if err != nil && !errors.As(err, &damage) {
			return err
		}
		if row != nil && byID[row.RunID] != nil {
			byID[row.RunID].rows[row.ToolCallID.String()] = row
		}
	}
	return nil
}

// closeDead writes what is missing of a run, for each open call the row, then the tool_result, and syncs it. The marker
// stays until the run is sealed.
func (d *Dir) closeDead(r *deadRun, closedBy string) (n int, err error) {
	if r.size == 0 {
		// Its process died before the first line: there never was a run.
		if err := jsonl.Calls.Unlink(r.f.Name()); err != nil && err != unix.ENOENT {
			return 0, err
		}
		return 0, d.unmark(r.id)
	}
	// A power failure may have taken back what the run had claimed.
	if err := d.Ledger.Remember(r.used...); err != nil {
		return 0, err
	}
	ids := make([]string, len(r.open))
	for i, call := range r.open {
		ids[i] = call.CallID.String()
	}
	run := trace.Resume(r.id, r.f, r.size, ids, d.now, trace.Hooks{Space: d.Ledger.Spend})
	d.sync.begun(run)
	defer d.sync.forget(run)
	for _, call := range r.open {
		row := r.rows[call.CallID.String()]
		if row == nil {
			row = d.closingRow(r.id, call, closedBy)
			if err := d.Commit(run, row); err != nil {
				return n, err
			}
		} else {
			row = later(row, closedBy)
		}
		// Killed here: the row is there, and the next process writes but the tool_result.
		if err := run.ToolResult(trace.Result{Row: row, Head: d.head(row)}); err != nil {
			return n, err
		}
		n++
	}
	return n, d.sync.flush()
}
