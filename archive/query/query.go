// Package query answers questions about rows, hot and sealed alike, as iterators in the order of seq.
//
// Nothing is skipped in silence: a damaged line comes out of every iterator as the error that names it, in its place, and
// the rows after it follow.
package query

import (
	"bytes"
	"errors"
	"iter"
	"slices"
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
func Rows(d *archive.Dir, f Filter) iter.Seq2[*ledger.Row, error] { return Scan{Filter: f}.Rows(d) }

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
	is := func(f *ledger.Fields) bool { return f.Is(columnCall, callID) }
	err = each(Scan{Keep: is, Call: callID}.Rows(d), damaged, func(row *ledger.Row) bool {
		found = row
		return true
	})
	return found, err
}

// FindLike returns, of the rows that f lets through, those with this tool_call_id, those with this client_call_id, and where
// there are neither those whose tool_call_id begins with it, of these at most the first limit. Only for the last all of the
// sealed months is read.
func FindLike(d *archive.Dir, f Filter, id string, limit int, damaged func(error)) (exact, client, begin []*ledger.Row, err error) {
	is := func(f *ledger.Fields) bool { return f.Is(columnCall, id) || f.Is(columnClient, id) }
	told := map[string]bool{} // damage is told once
	once := func(err error) {
		if damaged != nil && !told[err.Error()] {
			told[err.Error()] = true
			damaged(err)
		}
	}
	err = each(Scan{Filter: f, Keep: is, Call: id}.Rows(d), once, func(row *ledger.Row) bool {
		if row.ToolCallID.String() == id {
			exact = append(exact, row)
		} else {
			client = append(client, row)
		}
		return true
	})
	if err != nil || len(exact)+len(client) > 0 || id == "" {
		return exact, client, nil, err
	}
	begins := func(f *ledger.Fields) bool { return bytes.HasPrefix(f.Text(nil, columnCall), []byte(id)) }
	err = each(Scan{Filter: f, Keep: begins}.Rows(d), once, func(row *ledger.Row) bool {
		if begin = append(begin, row); len(begin) > limit {
			begin = begin[:limit]
		}
		return true
	})
	return nil, nil, begin, err
}

// FindHash returns the rows that name an object, in the order of seq.
func FindHash(d *archive.Dir, hash string, damaged func(error)) (found []*ledger.Row, err error) {
	columns := []ledger.Column{ledger.ColumnOf("input_hash"), ledger.ColumnOf("output_hash"), ledger.ColumnOf("stderr_hash")}
	names := func(f *ledger.Fields) bool {
		return slices.ContainsFunc(columns, func(c ledger.Column) bool { return f.Is(c, hash) })
	}
	err = each(Scan{Keep: names}.Rows(d), damaged, func(row *ledger.Row) bool {
		found = append(found, row)
		return true
	})
	return found, err
}
