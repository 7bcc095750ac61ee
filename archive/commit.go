package archive

import (
	"toolrun/archive/ledger"
	"toolrun/archive/trace"
)

// Commit puts the row of a call of run on the record and gives it its seq. Its objects are in the store and its tool_call
// line is in the run's file; its tool_result line comes after, then the answer. On ErrUnavailable no row exists.
//
// It returns when the row survives the death of toolrun. Where durability is "row" it returns when objects, trace and
// row, in this order, survive a power failure; calls that commit at the same time share the syncs.
func (d *Dir) Commit(run *trace.Run, row *ledger.Row) error {
	if d.Ledger == nil {
		return errReadOnly
	}
	if d.Config.Durability == PerRow {
		// Killed here: a call without a row, closed by the next process.
		if err := d.sync.before(); err != nil {
			return err
		}
	}
	if err := d.Ledger.Append(row); err != nil {
		return err
	}
	d.sync.row(run)
	if d.Config.Durability == PerRow {
		return d.sync.after()
	}
	return nil
}
