package audit

import (
	"errors"
	"fmt"
	"slices"

	"toolrun/archive"
	"toolrun/archive/evidence"
	"toolrun/archive/ledger"
)

// Row holds one row against what it names: what no row may say of itself, its objects, the lines of its call in the trace of
// its run, and, where that has ended, the seal of the trace. Whether the row is what was signed in its place is for a receipt
// to tell. The error says what does not agree.
func Row(d *archive.Dir, row *ledger.Row) error {
	if err := checkRow(row); err != nil {
		return err
	}
	if row.RunID == "" {
		return errors.New("it names no run: no toolrun wrote it")
	}
	if row.Payloads == "" {
		for _, hash := range row.Objects() {
			if err := d.Store.Verify(hash); err != nil {
				return err
			}
		}
	}
	id := row.ToolCallID.String()
	r, err := oneRun(d, row.RunID, id)
	if err != nil {
		return err
	}
	call, result := r.calls[id], r.results[id]
	if call == nil {
		return fmt.Errorf("%s has no tool_call of it", r.path)
	}
	if result == nil && !r.live {
		return fmt.Errorf("%s has no tool_result of it", r.path)
	}
	ref := &rowRef{name: row.ToolName.String(), inputHash: row.InputHash, exitCode: row.ExitCode, outputBytes: row.OutputBytes, approved: row.ApprovalStatus == ledger.ApprovalApproved}
	if diff := differs(ref, call, result); diff != "" {
		return fmt.Errorf("line %d of %s and the row do not agree: %s", call.No, r.path, diff)
	}
	if r.sealed || r.marked {
		return nil
	}
	return sealed(d, row.RunID, r)
}

// oneRun reads the trace of a run, hot or sealed. What it finds wrong with the lines of the call is the error.
func oneRun(d *archive.Dir, id, call string) (*run, error) {
	var errs []error
	v := &verifier{d: d}
	r := v.readRun(id, func(f Finding) {
		if f.Kind == RunUnreadable || slices.Contains(f.CallIDs, call) {
			errs = append(errs, fmt.Errorf("%s: %s", f.File, f.Text))
		}
	})
	if !r.gone {
		return r, errors.Join(errs...)
	}
	r = newRun(r.path)
	r.sealed = true
	for line, err := range d.Trace(id) {
		var damage *ledger.Damage
		if err != nil && (!errors.As(err, &damage) || damage.Line == 0) { // of the archive, not of a line
			return nil, err
		}
		if err == nil {
			r.add(line)
		}
	}
	return r, nil
}

// sealed holds the trace of a run that has ended against its seals. Where nothing was ever signed there are none.
func sealed(d *archive.Dir, id string, r *run) error {
	key, err := evidence.PublicKey(d.Path())
	if errors.Is(err, evidence.ErrNoKey) {
		return nil
	}
	if err != nil {
		return err
	}
	found := false
	for n := range evidence.Notes(d.Path()) {
		if n.Err != nil || n.Seal == nil || n.Seal.RunID != id || n.Verify(key) != nil {
			continue
		}
		found = true
		if text := r.differs(n.Seal); text != "" {
			return fmt.Errorf("%s: %s", r.path, text)
		}
	}
	if !found {
		return fmt.Errorf("%s: the run has ended and no seal of its file is signed", r.path)
	}
	return nil
}
