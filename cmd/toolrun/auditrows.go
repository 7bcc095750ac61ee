package main

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"toolrun/archive"
	"toolrun/archive/ledger"
	"toolrun/archive/pairing"
	"toolrun/archive/query"
	"toolrun/archive/transcript"
)

// fewSessions is up to how many sessions are read each by itself, which an index makes quick; of more the ledger is read once.
const fewSessions = 4

// candidates are the rows that may belong to the transcripts: those of their sessions, those of their time, and, where they
// tell no time, those with their ids, or, where there are none, those of their tools and arguments; and all rows of the sessions
// of these.
func candidates(d *archive.Dir, groups [][]*transcript.Transcript, session string, seen *damageSeen) ([]*ledger.Row, error) {
	r := rowSet{d: d, seen: seen, rows: map[rowKey]*ledger.Row{}, whole: map[string]bool{}}
	if session != "" {
		err := r.sessions(session)
		return r.sorted(), err
	}
	ids, told, timed := map[string]bool{}, map[string]bool{}, true
	var first, last time.Time
	every := slices.Concat(groups...)
	named := pairing.Named(every)
	for _, group := range groups {
		for _, t := range group {
			if t.SessionID != "" {
				told[t.SessionID] = true
			}
			for _, c := range t.Calls {
				ids[c.ID] = c.ID != ""
				timed = timed && !c.At.IsZero()
			}
		}
		from, to := pairing.Span(group)
		if first.IsZero() || !from.IsZero() && from.Before(first) {
			first = from
		}
		if to.After(last) {
			last = to
		}
	}
	f, is := query.Filter{Since: first, Until: last.Add(time.Millisecond)}, func(*ledger.Row) bool { return true }
	if first.IsZero() || !timed {
		since, until := ledger.FormatTime(first), ledger.FormatTime(last)
		f, is = query.Filter{}, func(row *ledger.Row) bool {
			return ids[text(row.ClientCallID)] || named[row.ToolCallID.String()] || told[row.SessionID.String()] || !first.IsZero() && row.StartedAt >= since && row.StartedAt <= until
		}
	}
	if err := r.read(f, is); err != nil {
		return nil, err
	}
	if len(r.rows) == 0 && first.IsZero() {
		if err := r.read(query.Filter{}, pairing.Alike(every)); err != nil {
			return nil, err
		}
	}
	for _, row := range r.rows {
		told[row.SessionID.String()] = true
	}
	err := r.sessions(slices.Sorted(maps.Keys(told))...)
	return r.sorted(), err
}

// rowsBeside adds to the rows of a session those of others that may belong to the transcripts.
func (a *app) rowsBeside(d *archive.Dir, groups [][]*transcript.Transcript, own []*ledger.Row) ([]*ledger.Row, error) {
	others, err := candidates(d, groups, "", &damageSeen{a: a, quiet: true})
	if err != nil {
		return nil, err
	}
	r := rowSet{rows: map[rowKey]*ledger.Row{}}
	for _, row := range slices.Concat(others, own) {
		r.rows[keyOf(row)] = row
	}
	return r.sorted(), nil
}

// rowKey tells rows apart, also where a seq was forged.
type rowKey struct {
	seq  int64
	call string
}

func keyOf(row *ledger.Row) rowKey { return rowKey{row.Seq, row.ToolCallID.String()} }

// rowSet gathers rows, each once.
type rowSet struct {
	d     *archive.Dir
	seen  *damageSeen
	rows  map[rowKey]*ledger.Row
	whole map[string]bool // sessions of which all rows are there
}

// read adds the rows of a filter. Damage is named the first time only.
func (r *rowSet) read(f query.Filter, is func(*ledger.Row) bool) error {
	list, err := collect(query.Rows(r.d, f), r.seen)
	for _, row := range list {
		if is(row) {
			r.rows[keyOf(row)] = row
		}
	}
	r.seen = &damageSeen{a: r.seen.a, quiet: true}
	return err
}

// sessions adds all rows of sessions.
func (r *rowSet) sessions(ids ...string) error {
	ids = slices.DeleteFunc(ids, func(id string) bool { return r.whole[id] })
	for _, id := range ids {
		r.whole[id] = true
	}
	if len(ids) > fewSessions {
		return r.read(query.Filter{}, func(row *ledger.Row) bool { return r.whole[row.SessionID.String()] })
	}
	for _, id := range ids {
		if err := r.read(query.Filter{Session: id}, func(*ledger.Row) bool { return true }); err != nil {
			return err
		}
	}
	return nil
}

func (r *rowSet) sorted() []*ledger.Row {
	return slices.SortedFunc(maps.Values(r.rows), func(a, b *ledger.Row) int { return cmp.Compare(a.Seq, b.Seq) })
}
