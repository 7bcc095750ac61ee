// Package query answers questions about rows, hot and sealed alike, as iterators in the order of seq.
package query

import (
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

// Rows yields the rows that f lets through. A damaged line is yielded as a *ledger.Damage and the iteration goes on; after
// any other error it ends.
func Rows(d *archive.Dir, f Filter) iter.Seq2[*ledger.Row, error] { return nil }

// Session is the summary of one session.
type Session struct {
	SessionID string `json:"session_id"`
	Client    string `json:"client"` // name/version, "" where not told
	First     string `json:"first"`  // started_at of its first row
	Last      string `json:"last"`   // ended_at of its last
	Calls     int    `json:"calls"`  // rows: attempts and refusals
	Failures  int    `json:"failures"`
	Refusals  int    `json:"refusals"`
}

// Sessions summarises the rows that f lets through, in the order of their first row. Damaged lines go to damaged, which may
// be nil.
func Sessions(d *archive.Dir, f Filter, damaged func(error)) ([]Session, error) { return nil, nil }

// Find returns the row with this tool_call_id, or nil.
func Find(d *archive.Dir, callID string, damaged func(error)) (*ledger.Row, error) { return nil, nil }

// ParseTime reads an end of a range: RFC 3339, a date (midnight UTC), or an age such as 7d, 12h, 30m before now.
func ParseTime(s string, now time.Time) (time.Time, error) { return time.Time{}, nil }
