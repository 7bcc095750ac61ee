package runner

import (
	"errors"
	"fmt"
	"sync"

	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/archive/trace"
	"toolrun/catalog/canon"
)

// This file is all that the runner writes to the archive, in the order of a call's life.

// unavailable says to the caller that the record cannot be written.
func unavailable(err error) error {
	if errors.Is(err, ErrLedgerUnavailable) {
		return err // the archive has said so
	}
	return fmt.Errorf("%w: %w", ErrLedgerUnavailable, err)
}

// putInput stores the input object and returns its name; with payloads "hash" only its name is kept.
func (r *Runner) putInput(input redact.JSON) (hash string, err error) {
	if r.cfg.Payloads == PayloadsHash {
		return canon.SHA256Hex(input.Raw()), nil
	}
	return r.cfg.Archive.Store.Put(input)
}

// putArgv gives what a row says of argv. One that is too long is stored; with payloads "hash" only its name is kept.
func (r *Runner) putArgv(argv redact.JSON) (redact.JSON, error) {
	if r.cfg.Payloads == PayloadsHash {
		return ledger.ArgvHash(canon.SHA256Hex(argv.Raw())), nil
	}
	if len(argv.Raw()) <= ledger.MaxArgvBytes {
		return argv, nil
	}
	hash, err := r.cfg.Archive.Store.Put(argv)
	return ledger.ArgvHash(hash), err
}

// newObject is where a stream's redacted bytes go.
func (r *Runner) newObject() object {
	if r.cfg.Payloads == PayloadsHash {
		return newHashOnly()
	}
	return r.cfg.Archive.Store.New()
}

// announce writes the session line, once a session and run.
func (r *Runner) announce(s *session, id redact.Text, o Origin) error {
	return s.announce(func() error {
		return r.cfg.Run.Session(trace.Session{SessionID: id, Client: boundedOrNil(r.cfg.Rules, o.Client), Protocol: o.Protocol})
	})
}

// putCall writes the tool_call line. Killed after it: a call without a row, which the next process closes as interrupted.
func (r *Runner) putCall(row *ledger.Row, arguments redact.JSON, held bool) error {
	if r.cfg.Payloads == PayloadsHash {
		arguments = redact.JSON{}
	}
	return r.cfg.Archive.Announce(r.cfg.Run, trace.Call{Row: row, Arguments: arguments, Held: held})
}

// commit writes the row and then the tool_result line. Killed before the row: as after putCall. Killed between the two:
// the next process writes the tool_result. On an error there is no row yet, and the debt is paid before the next call.
func (r *Runner) commit(row *ledger.Row, head redact.Text) error {
	d := &debt{row: row, head: head}
	err := r.pay(d)
	if !d.paid {
		r.debts.add(d)
		r.log.Error("a call is not wholly on the record yet", "tool_call_id", row.ToolCallID.String(), "err", err)
	}
	if row.Seq == noSeq {
		return err
	}
	return d.unsynced // the row stands
}

// noSeq marks a row that is not in the ledger, whose rows count from 0.
const noSeq = -1

// debt is a call that ended and whose row or tool_result could not be written.
type debt struct {
	row      *ledger.Row
	head     redact.Text
	unsynced error // the row is in the ledger, but did not reach the disk as durability asks
	paid     bool
}

// pay writes what is missing of a call, each line once.
func (r *Runner) pay(d *debt) error {
	if d.row.Seq == noSeq {
		if err := r.cfg.Archive.Commit(r.cfg.Run, d.row); err != nil {
			if d.row.Seq == noSeq {
				return err
			}
			d.unsynced = err
		}
	}
	if err := r.cfg.Run.ToolResult(trace.Result{Row: d.row, Head: d.head}); err != nil {
		return err
	}
	d.paid = true
	return nil
}

// debts are owed by this run, in the order of the calls' ends. While there are any, no tool starts.
type debts struct {
	mu   sync.Mutex
	list []*debt
}

func (ds *debts) add(d *debt) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.list = append(ds.list, d)
}

// settle pays what is owed, as far as it can.
func (r *Runner) settle() error {
	r.debts.mu.Lock()
	defer r.debts.mu.Unlock()
	for len(r.debts.list) > 0 {
		if err := r.pay(r.debts.list[0]); err != nil {
			return err
		}
		r.debts.list = r.debts.list[1:]
	}
	return nil
}
