package query

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"toolrun/archive"
	"toolrun/archive/ledger"
)

// SessionsLike returns the session with exactly this id, else those whose id begins with it, in the order of their first
// rows. Damaged lines are passed over.
func SessionsLike(d *archive.Dir, id string) (ids []string, err error) {
	exact := false
	err = each(Scan{Filter: Filter{Session: id}, Columns: []string{"session_id"}}.Rows(d), nil, func(row *ledger.Row) bool {
		exact = row.SessionID.String() == id
		return !exact
	})
	if exact || err != nil {
		return []string{id}, err
	}
	begins := func(f *ledger.Fields) bool { return bytes.HasPrefix(f.Text(nil, columnSession), []byte(id)) }
	seen := map[string]bool{}
	err = each(Scan{Keep: begins, Columns: []string{"session_id"}}.Rows(d), nil, func(row *ledger.Row) bool {
		if session := row.SessionID.String(); !seen[session] {
			seen[session] = true
			ids = append(ids, session)
		}
		return true
	})
	return ids, err
}

// Attempts returns all attempts of the call of which row is one, in their order; of a call that was tried once, row alone.
func Attempts(d *archive.Dir, row *ledger.Row) ([]*ledger.Row, error) {
	if row.Attempt <= 1 && row.Status != ledger.StatusRetry {
		return []*ledger.Row{row}, nil
	}
	first := row.ToolCallID.String()
	if row.Attempt > 1 {
		first = strings.TrimSuffix(first, "#"+strconv.Itoa(row.Attempt))
	}
	is := func(f *ledger.Fields) bool {
		id, ok := bytes.CutPrefix(f.Text(nil, columnCall), []byte(first))
		return ok && (len(id) == 0 || id[0] == '#')
	}
	var all []*ledger.Row
	err := each(Scan{Filter: Filter{Session: row.SessionID.String()}, Keep: is}.Rows(d), nil, func(other *ledger.Row) bool {
		if other.RunID == row.RunID {
			all = append(all, other)
		}
		return true
	})
	slices.SortStableFunc(all, func(a, b *ledger.Row) int { return a.Attempt - b.Attempt })
	return all, err
}

// Place tells in which file and line a row stands; "" where no line is found that is as toolrun writes it.
func Place(d *archive.Dir, row *ledger.Row) (file string, line int) {
	text := row.Append(nil)
	begin := text[:bytes.Index(text, []byte(`,"session_id":`))]
	var buffer []byte
	for block, err := range d.Blocks(archive.Scope{Call: row.ToolCallID.String()}, archive.Position{}, func() []byte { return buffer }) {
		if err != nil {
			continue // whoever found the row has told of it
		}
		buffer = block.Text
		if !bytes.Contains(block.Text, begin) {
			continue
		}
		for _, l := range block.Lines() {
			if !bytes.HasPrefix(l.Text, begin) {
				continue
			}
			if at, err := l.Row(); err == nil && at.Seq == row.Seq {
				return l.File, l.No
			}
		}
	}
	return "", 0
}
