package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"toolrun/archive/anomaly"
	"toolrun/archive/ledger"
)

// Files in the data directory by which check tells each thing once.
const (
	checkName     = "check.json"
	checkLockName = "check.lock"
)

// checkPlace is up to where check has told; FORMAT.md has its keys. The lock is held as long as it is open, so that two
// checks at a time tell nothing twice.
type checkPlace struct {
	NextSeq int64    `json:"next_seq"` // rows from here on are new
	At      string   `json:"at"`       // started_at of the last row before
	From    int64    `json:"from"`     // lines of the ledger before it are too old to be compared with
	Costly  []string `json:"costly"`   // sessions whose cost was told: it may be learned after their last row
	Open    []string `json:"open"`     // calls without an end that were told
	Damage  []string `json:"damage"`   // FILE:LINE that were told

	path string
	lock *os.File
	next *checkPlace // what keep writes
}

// isNew tells whether a row was not looked at before; with a nil place, all were.
func (p *checkPlace) isNew(seq int64) bool { return p != nil && seq >= p.NextSeq }

// known tells whether anything was told before.
func (p *checkPlace) known() bool { return p != nil && p.At != "" }

// isAt tells whether a row is the last one that was looked at. A ledger without it is another one, such as a backup that was
// restored: its next rows would pass for told.
func (p *checkPlace) isAt(row *ledger.Row) bool {
	return p.known() && row.Seq == p.NextSeq-1 && row.StartedAt == p.At
}

// forget makes it a place before everything.
func (p *checkPlace) forget() { *p = checkPlace{path: p.path, lock: p.lock} }

// from is where reading begins.
func (p *checkPlace) from() int64 {
	if p == nil {
		return 0
	}
	return p.From
}

func openCheckPlace(data string) (*checkPlace, error) {
	lock, err := os.OpenFile(filepath.Join(data, checkLockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: with --since it needs to write nothing", err)
	}
	p := &checkPlace{path: filepath.Join(data, checkName), lock: lock}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", lock.Name(), err), lock.Close())
	}
	text, err := os.ReadFile(p.path)
	if err == nil {
		err = json.Unmarshal(text, p)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("read %s: %w; remove it to be told everything again", p.path, err), lock.Close())
	}
	return p, nil
}

func (p *checkPlace) close() { p.lock.Close() }

// filter leaves what was not told before, and prepares what keep writes; last is the last row.
func (p *checkPlace) filter(found []anomaly.Anomaly, damage []string, last *ledger.Row) ([]anomaly.Anomaly, []string) {
	p.next = &checkPlace{NextSeq: p.NextSeq, At: p.At}
	if last != nil {
		p.next.NextSeq, p.next.At = max(p.NextSeq, last.Seq+1), last.StartedAt
	}
	fresh := found[:0:0]
	for _, f := range found {
		switch {
		case f.Rule == anomaly.SessionCost:
			p.next.Costly = append(p.next.Costly, f.SessionID)
			if slices.Contains(p.Costly, f.SessionID) {
				continue
			}
		case f.Seq < 0:
			p.next.Open = append(p.next.Open, f.CallID)
			if slices.Contains(p.Open, f.CallID) {
				continue
			}
		case !p.isNew(f.Seq):
			continue
		}
		fresh = append(fresh, f)
	}
	p.next.Damage = damage
	var new []string
	for _, line := range damage {
		if !slices.Contains(p.Damage, line) {
			new = append(new, line)
		}
	}
	return fresh, new
}

// keep remembers that all of it was told.
func (p *checkPlace) keep() error {
	text, err := json.Marshal(p.next)
	if err != nil {
		return err
	}
	return replaceFile(p.path, append(text, '\n'))
}
