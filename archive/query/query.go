// Package query answers questions about rows, hot and sealed alike, as iterators in the order of seq.
//
// Nothing is skipped in silence: a damaged line comes out of every iterator as the error that names it, in its place, and
// the rows after it follow.
package query

import (
	"errors"
	"iter"
	"time"

	"toolrun/archive"
	"toolrun/archive/ledger"
)

// Filter restricts rows. Zero fields do not.
type Filter struct {
	Session string    // session_id
	Tool    string    // tool_name
	Since   time.Time // started_at, included
	Until   time.Time // started_at, excluded
}

// Match tells whether the filter lets the row through. A row whose started_at is no time is in no range.
func (f Filter) Match(row *ledger.Row) bool {
	if f.Session != "" && row.SessionID.String() != f.Session {
		return false
	}
	if f.Tool != "" && row.ToolName.String() != f.Tool {
		return false
	}
	if f.Since.IsZero() && f.Until.IsZero() {
		return true
	}
	at, err := time.Parse(time.RFC3339, row.StartedAt)
	return err == nil && (f.Since.IsZero() || !at.Before(f.Since)) && (f.Until.IsZero() || at.Before(f.Until))
}

// Rows yields the rows of the directory that f lets through. A damaged line is yielded as a *[ledger.Damage] and the
// iteration goes on; after any other error it ends.
func Rows(d *archive.Dir, f Filter) iter.Seq2[*ledger.Row, error] { return Where(d.Rows(), f) }

// Where yields the rows that f lets through, and every error.
func Where(rows iter.Seq2[*ledger.Row, error], f Filter) iter.Seq2[*ledger.Row, error] {
	return func(yield func(*ledger.Row, error) bool) {
		for row, err := range rows {
			if (err != nil || f.Match(row)) && !yield(row, err) {
				return
			}
		}
	}
}

// each calls do with every row until it returns false. Damaged lines go to damaged, which may be nil; any other error
// ends it.
func each(rows iter.Seq2[*ledger.Row, error], damaged func(error), do func(*ledger.Row) bool) error {
	for row, err := range rows {
		var damage *ledger.Damage
		switch {
		case errors.As(err, &damage):
			if damaged != nil {
				damaged(damage)
			}
		case err != nil:
			return err
		case !do(row):
			return nil
		}
	}
	return nil
}

// Find returns the row with exactly this tool_call_id, or nil. It reads to the end, so that damaged is told of every
// damaged line; where two rows have the id, which a verifier reports, it is the last.
func Find(d *archive.Dir, callID string, damaged func(error)) (found *ledger.Row, err error) {
	err = each(d.Rows(), damaged, func(row *ledger.Row) bool {
		if row.ToolCallID.String() == callID {
			found = row
		}
		return true
	})
	return found, err
}

// FindHash returns the rows that name an object, in the order of seq.
func FindHash(d *archive.Dir, hash string, damaged func(error)) (found []*ledger.Row, err error) {
	err = each(d.Rows(), damaged, func(row *ledger.Row) bool {
		if row.InputHash == hash || string(row.OutputHash) == hash || string(row.StderrHash) == hash {
			found = append(found, row)
		}
		return true
	})
	return found, err
}
