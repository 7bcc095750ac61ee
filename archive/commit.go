package archive

import (
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"toolrun/archive/ledger"
	"toolrun/archive/trace"
)

// Announce puts the call on the record before anything of it runs: its tool_call line, whose input object is in the store.
// Where durability is "row" it returns when both survive a power failure. On an error, ErrUnavailable, nothing may run.
func (d *Dir) Announce(run *trace.Run, c trace.Call) error {
	if d.Ledger == nil {
		return errReadOnly
	}
	if d.Config.Durability == PerRow {
		d.noteShared(c.Row)
		if err := d.sync.before.wait(); err != nil {
			return err
		}
	}
	if err := run.ToolCall(c); err != nil {
		return err
	}
	if d.Config.Durability == PerRow {
		return d.sync.before.wait()
	}
	return nil
}

// Approve puts a person's answer for a held call on the record before anything of it runs; where durability is "row" it
// returns when the line survives a power failure. On an error, ErrUnavailable, nothing may run.
func (d *Dir) Approve(run *trace.Run, a trace.Approval) error {
	if d.Ledger == nil {
		return errReadOnly
	}
	if err := run.Approval(a); err != nil {
		return err
	}
	if d.Config.Durability == PerRow {
		return d.sync.before.wait()
	}
	return nil
}

// Commit puts the row of a call of run on the record and gives it its seq. Its objects are in the store and its tool_call
// line is in the run's file; its tool_result line comes after, then the answer.
//
// It returns nil when the row survives the death of toolrun. Where durability is "row" it returns nil when objects and
// trace, and after them the row, survive a power failure; calls that commit at the same time share the syncs.
//
// Every error is ErrUnavailable, and row.Seq says which: as it was, there is no row, and Commit may be tried again; set,
// the row is on the record like any other and must not be appended again, but its sync failed (only where durability is
// "row") and a power failure may take it back.
func (d *Dir) Commit(run *trace.Run, row *ledger.Row) error {
	if d.Ledger == nil {
		return errReadOnly
	}
	if d.Config.Durability == PerRow {
		d.noteShared(row)
		// Killed here: a call without a row, closed by the next process.
		if err := d.sync.before.wait(); err != nil {
			return err
		}
	}
	if err := d.Ledger.Append(row); err != nil {
		return err
	}
	d.sync.wrote()
	d.checkpoints.wrote()
	if d.Config.Durability == PerRow {
		return d.sync.after.wait()
	}
	return nil
}

// writebackAge is well over what a kernel keeps a dirty page for (vm.dirty_expire_centisecs is 30 s, and it looks every 5).
const writebackAge = time.Minute

// noteShared notes the objects of a row that this process found in the store and did not write: their writer may not have
// synced them yet, and may have died before it did.
func (d *Dir) noteShared(row *ledger.Row) {
	for _, hash := range row.Objects() {
		d.noteRecent(d.Store.Path(hash))
	}
}

// noteRecent notes a file and its folder for the next sync, if the kernel may still hold something back of it.
func (d *Dir) noteRecent(path string) {
	var st unix.Stat_t
	if !d.sync.synced(path) && unix.Stat(path, &st) == nil && time.Since(time.Unix(st.Ctim.Unix())) < writebackAge {
		d.sync.path(path)
		d.sync.path(filepath.Dir(path))
	}
}
