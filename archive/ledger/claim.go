package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// reserved matches ids of the forms that toolrun itself makes: <run_id[:8]>-<n>, and what ends in #n (a later attempt), !n
// (a refused duplicate) or @<run_id[:8]> (an id that an earlier run used).
var reserved = regexp.MustCompile(`^[0-9a-f]{8}-[0-9]+$|[#!][0-9]+$|@[0-9a-f]{8}$`)

// Claim takes a client's call id for this data directory, for ever, and reports whether it was free: not used by any
// run before and not of a form that toolrun makes itself. An id that was free may stand in a row as it is, and so may
// what toolrun makes of it by a suffix; one that was not gets @<run_id[:8]>. Ids that a run makes need no claim, for the
// first 8 digits of a run id are claimed by [Ledger.ClaimRun].
//
// On an error, ErrUnavailable, nothing was claimed. A claim whose call was never written costs the id its plain form.
func (l *Ledger) Claim(id string) (fresh bool, err error) {
	if reserved.MatchString(id) {
		return false, nil
	}
	return l.claim(id)
}

// ClaimRun takes the first 8 digits of a run id and reports whether no run had them before.
func (l *Ledger) ClaimRun(runID string) (fresh bool, err error) { return l.claim(runKey(runID)) }

// runKey cannot be a client's id: those hold no control characters that a row would show, and this one is never shown.
func runKey(runID string) string { return "\x00run\x00" + runID[:min(8, len(runID))] }

func (l *Ledger) claim(id string) (fresh bool, err error) {
	err = l.Locked(func() error {
		if err := l.openIDs(); err != nil {
			return fmt.Errorf("%w: table of ids: %w", ErrUnavailable, err)
		}
		if l.ids.count*2 > l.ids.slots {
			if err := l.growIDs(); err != nil {
				return fmt.Errorf("%w: grow the table of ids: %w", ErrUnavailable, err)
			}
		}
		fresh, err = l.ids.add(idHash(id))
		if errors.Is(err, errNoIDs) {
			err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return err
	})
	return fresh && err == nil, err
}

// Remember puts ids into the table that are in use whatever the table says: those of a run that a crash ended, whose
// claims a power failure may have taken back.
func (l *Ledger) Remember(ids ...string) error {
	for _, id := range ids {
		if reserved.MatchString(id) {
			continue
		}
		if _, err := l.claim(id); err != nil {
			return err
		}
	}
	return nil
}

// openIDs, under the lock, makes l.ids the table that has the name now, and makes the table where there is none.
func (l *Ledger) openIDs() error {
	if l.ids.current(l.dir) {
		return nil
	}
	l.ids.close()
	ids, err := openIDs(l.dir)
	if errors.Is(err, errNoIDs) {
		var used map[uint64]struct{}
		if used, err = l.usedIDs(); err == nil {
			ids, err = writeIDs(l.dir, used)
		}
	}
	l.ids = ids
	return err
}

func (l *Ledger) growIDs() error {
	used := make(map[uint64]struct{}, l.ids.count+1)
	if err := l.ids.hashes(func(h uint64) { used[h] = struct{}{} }); err != nil {
		return err
	}
	l.ids.close()
	ids, err := writeIDs(l.dir, used)
	l.ids = ids
	return err
}

// RebuildIDs makes the table of ids anew from the ledger, the run files and the sealed months of a data directory.
func RebuildIDs(dir string, sealed func(func(uint64)) error) error {
	lock, err := os.Open(filepath.Join(dir, LockName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nobody ever wrote here
	}
	if err != nil {
		return err
	}
	l := &Ledger{dir: dir, lock: lock, sealed: sealed}
	defer l.Close()
	return l.Locked(func() error {
		used, err := l.usedIDs()
		if err != nil {
			return err
		}
		ids, err := writeIDs(dir, used)
		ids.close()
		return err
	})
}
