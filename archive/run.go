package archive

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"toolrun/archive/evidence"
	"toolrun/archive/internal/jsonl"
	"toolrun/archive/trace"
)

var errReadOnly = errors.New("the data directory was opened read-only")

// NewRunID returns a random UUID (version 4, RFC 9562) whose first 8 digits no other run of this directory has, and
// takes them: call ids are made of them.
func (d *Dir) NewRunID() (string, error) {
	if d.Ledger == nil {
		return "", errReadOnly
	}
	for {
		id, err := uuid.NewRandom()
		if err != nil {
			return "", fmt.Errorf("make a run id: %w", err)
		}
		fresh, err := d.Ledger.ClaimRun(id.String())
		if errors.Is(err, ErrUnavailable) {
			// Nothing can be written now. The run may begin later; that two runs share 8 digits is one in 4 billion.
			d.log.Warn("run id not registered", "err", err)
			return id.String(), nil
		}
		if err != nil {
			return "", err
		}
		if fresh {
			return id.String(), nil
		}
	}
}

// Begin puts a run on the record: the marker live/<run_id> first, then its file with the first line and the flock, both
// under the lock of the ledger, so that nobody takes it for dead in between. Where there is no space now, the run begins
// with its first line that can be written: until then its methods return ErrUnavailable and no tool can run.
func (d *Dir) Begin(h trace.Header) (*trace.Run, error) {
	if d.Ledger == nil {
		return nil, errReadOnly
	}
	if h.RunID == "" {
		id, err := d.NewRunID()
		if err != nil {
			return nil, err
		}
		h.RunID = id
	}
	var run *trace.Run
	run = trace.New(d.runPath(h.RunID), h, d.now, trace.Hooks{Ready: d.Ledger.Ready, Space: d.Ledger.Spend, Wrote: d.sync.wrote, Around: func(create func() error) error {
		return d.Ledger.Locked(func() error {
			if err := d.mark(h.RunID); err != nil {
				return fmt.Errorf("%w: %w", ErrUnavailable, err)
			}
			if d.Config.Durability == PerRow {
				if err := jsonl.SyncDir(filepath.Join(d.path, liveName)); err != nil {
					return err
				}
			}
			// Killed here: a marker without a file, which the next process removes.
			if err := create(); err != nil {
				return jsonl.Unavailable(err)
			}
			d.sync.begun(run)
			return nil
		})
	}})
	switch err := run.Begin(); {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		d.log.Warn("the run cannot be recorded yet: tools do not run until it can", "err", err)
	case err != nil:
		run.Close()
		return nil, fmt.Errorf("begin run: %w", err)
	}
	d.own.Store(h.RunID, run)
	return run, nil
}

// End ends a run in order: its last line with the names that nobody called, everything synced, its file sealed and the
// ledger signed, the marker removed, the flock given up. Calls that are still open are closed as those of a dead run are;
// then there is no last line.
//
// Where nothing can be signed for want of space the run is left to the next process as a dead one, to be signed for then.
// On ErrContradiction it has ended, and its rows are not covered.
func (d *Dir) End(run *trace.Run, unused []string) error {
	defer d.own.Delete(run.ID())
	if run.Open() > 0 {
		d.sync.forget(run)
		err := run.Close()
		_, closing := d.recover([]string{run.ID()}, run.ID())
		return wrapEnd(errors.Join(err, closing))
	}
	err := run.Unused(unused)
	if err == nil {
		err = d.Ledger.SyncIDs()
	}
	if err == nil {
		bytes, sum := run.Sum()
		_, err = d.sign([]evidence.Seal{{RunID: run.ID(), Bytes: bytes, SHA256: sum}})
	}
	if err == nil || errors.Is(err, ErrContradiction) {
		// Killed before this: a dead run with nothing open, which the next process seals once more.
		err = errors.Join(err, d.unmark(run.ID()))
	}
	d.sync.forget(run)
	return wrapEnd(errors.Join(err, run.Close()))
}

func wrapEnd(err error) error {
	if err != nil {
		return fmt.Errorf("end run: %w", err)
	}
	return nil
}

func (d *Dir) runPath(id string) string    { return filepath.Join(d.path, runsName, id+".jsonl") }
func (d *Dir) markerPath(id string) string { return filepath.Join(d.path, liveName, id) }

func (d *Dir) mark(id string) error {
	f, err := jsonl.OpenAppend(d.markerPath(id), 0)
	if err != nil {
		return err
	}
	return f.Close()
}

func (d *Dir) unmark(id string) error {
	if err := jsonl.Calls.Unlink(d.markerPath(id)); err != nil && err != unix.ENOENT {
		return &os.PathError{Op: "remove", Path: d.markerPath(id), Err: err}
	}
	return nil
}
