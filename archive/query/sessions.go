package query

import (
	"slices"

	"toolrun/archive"
	"toolrun/archive/ledger"
)

// Session is the summary of one session.
type Session struct {
	SessionID string `json:"session_id"`
	Client    string `json:"client"`    // name/version of the last row that told it, "" where none did
	FirstAt   string `json:"first_at"`  // the earliest started_at
	LastAt    string `json:"last_at"`   // the latest ended_at
	Calls     int    `json:"calls"`     // rows: attempts and refusals
	Failures  int    `json:"failures"`  // rows with status error, timeout or retry
	Refusals  int    `json:"refusals"`  // rows with status blocked
	FirstSeq  int64  `json:"first_seq"` // of its first row
	LastSeq   int64  `json:"last_seq"`  // of its last row

	USD *float64 `json:"estimated_cost_usd"` // of the rows whose cost is known; null where none is
}

// Sessions summarises the rows that f lets through, with what was learned of them later, in the order of each session's
// first row. Damaged lines go to damaged, which may be nil.
func Sessions(d *archive.Dir, f Filter, damaged func(error)) ([]Session, error) {
	rows := Scan{Filter: f, Columns: []string{"tool_call_id", "session_id", "status", "started_at", "ended_at", "estimated_cost_usd", "seq", "client"}}.Rows(d)
	byID := map[string]*Session{}
	var order []*Session
	err := each(Joined(d, rows), damaged, func(row *ledger.Row) bool {
		id := row.SessionID.String()
		s := byID[id]
		if s == nil {
			s = &Session{SessionID: id, FirstSeq: row.Seq, FirstAt: row.StartedAt}
			byID[id] = s
			order = append(order, s)
		}
		s.add(row)
		return true
	})
	list := make([]Session, len(order))
	for i, s := range order {
		list[i] = *s
	}
	slices.SortStableFunc(list, func(a, b Session) int { return int(a.FirstSeq - b.FirstSeq) })
	return list, err
}

func (s *Session) add(row *ledger.Row) {
	s.Calls++
	switch row.Status {
	case ledger.StatusBlocked:
		s.Refusals++
	case ledger.StatusError, ledger.StatusTimeout, ledger.StatusRetry:
		s.Failures++
	}
	if row.Client != nil {
		s.Client = row.Client.String()
	}
	if row.EstimatedCostUSD != nil {
		addUSD(&s.USD, *row.EstimatedCostUSD)
	}
	// Times of one form and zone sort as strings.
	s.FirstAt, s.LastAt, s.LastSeq = min(s.FirstAt, row.StartedAt), max(s.LastAt, row.EndedAt), row.Seq
}
