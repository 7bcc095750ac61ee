// Package pairing holds an agent's transcript against the ledger: which calls that the agent tells of are on the record,
// whether their results are those that toolrun gave, and what is on the one side only.
//
// It says what the two files say and no more. A call is paired by the ids that the client kept; where it kept none, by tool,
// arguments and time. A result agrees when each form of it that the client kept is what the row and the stored output make,
// allowing for what clients wrap around it and leave out of it.
package pairing

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"toolrun/archive/ledger"
	"toolrun/archive/transcript"
)

// Kind is what became of a call.
type Kind string

// Kinds. Those above the line are findings.
const (
	Altered    Kind = "altered"     // a row, and the transcript tells other arguments or another result
	Orphan     Kind = "orphan"      // told with a result, and no row
	Invented   Kind = "invented"    // a name outside the catalog, refused by the client or by toolrun
	Bypassed   Kind = "bypassed"    // machine work by another tool than toolrun's
	Unreported Kind = "unreported"  // a row that the transcript does not have
	IDMismatch Kind = "id_mismatch" // a result whose call was never asked for

	Paired     Kind = "paired"
	Unread     Kind = "unread"            // no row is read, and the record says that there is or was one
	Unmatched  Kind = "unmatched"         // no session of the record can be told to be the transcript's: nothing is known of the call
	Refused    Kind = "refused_by_client" // a tool of the catalog, which the client answered by itself: nothing ran
	Unanswered Kind = "unanswered"        // no result and no row: the session ended before
	Own        Kind = "own"               // a tool of the agent that does not touch the machine
)

// Finding tells whether the kind is something that an honest session does not have.
func (k Kind) Finding() bool {
	switch k {
	case Altered, Orphan, Invented, Bypassed, Unreported, IDMismatch:
		return true
	}
	return false
}

// Kinds is all of them, in the order in which people are told.
var Kinds = []Kind{Paired, Altered, Orphan, Invented, Bypassed, Unreported, IDMismatch, Unread, Unmatched, Refused, Unanswered, Own}

// Item is one call: of the transcript, of the ledger, or of both.
type Item struct {
	Kind   Kind
	Call   *transcript.Call       // nil: unreported, id_mismatch
	From   *transcript.Transcript // of Call
	CallID string                 // the client's id
	Tool   string                 // as the catalog names it, as far as that is known
	Rows   []*ledger.Row          // its attempts, in the order of seq
	Why    string                 // in a sentence; of a paired call what could not be compared
}

// Row is the last attempt, nil where there is none.
func (i *Item) Row() *ledger.Row {
	if len(i.Rows) == 0 {
		return nil
	}
	return i.Rows[len(i.Rows)-1]
}

// Record is the ledger's side.
type Record struct {
	// Rows are all that may belong to the session, in the order of seq: those of the session, those that the transcript
	// names, and those of the time that it tells of.
	Rows []*ledger.Row
	// Session restricts Rows to one session_id, where a person said which; "" does not. Rows of others tell only which of
	// them has a call that this one does not have.
	Session string
	// Unread says why no row of a call is read that was written: of a call with this id, of the time of c and of one of
	// these sessions, or of any where none is known. "" where there is none. Nil: every row is in Rows.
	Unread func(id string, c *transcript.Call, sessions []string) (why string)
	// Catalog gives the names of a run's catalog, nil where they are not known.
	Catalog func(runID string) []string
	// Content gives stored bytes, whole.
	Content func(hash string) ([]byte, error)
	// Drawn gives what the answer of a row showed of stored bytes where its tool had a terminal, else the bytes; ErrNotDrawn
	// where that is not known. Nil: no tool had one.
	Drawn func(row *ledger.Row, content []byte) ([]byte, error)
}

// ErrNotDrawn says that it is not known how a terminal showed some bytes.
var ErrNotDrawn = errors.New("the output was shown as a terminal drew it, which cannot be drawn again: it was not compared")

// shown gives stored bytes as the answer of a row showed them.
func (p *pairer) shown(row *ledger.Row) func(hash string) ([]byte, error) {
	return func(hash string) ([]byte, error) {
		content, err := p.rec.Content(hash)
		if err != nil || p.rec.Drawn == nil {
			return content, err
		}
		return p.rec.Drawn(row, content)
	}
}

// Report is the outcome.
type Report struct {
	Items    []Item        // in the order of the transcript, then what only the ledger has
	Rows     []*ledger.Row // all rows of the session, in the order of seq
	Sessions []string      // their session_ids
	Alike    []string      // where there are none: sessions of which as many calls agree, so that none of them is told
	Findings int
}

// Unmatched tells whether there are calls of which nothing is known, as no session of the record could be told to be theirs.
func (r *Report) Unmatched() bool {
	return slices.ContainsFunc(r.Items, func(i Item) bool { return i.Kind == Unmatched })
}

// Pair holds the transcripts of one session, of one client, against the record.
func Pair(list []*transcript.Transcript, rec Record) *Report {
	p := &pairer{rec: rec, used: map[*ledger.Row]bool{}}
	for _, t := range list {
		p.prefixed = p.prefixed || t.Prefixed()
		for _, c := range t.Calls {
			p.items = append(p.items, &Item{Call: c, From: t, CallID: c.ID})
		}
	}
	p.groupAttempts()
	p.byID()
	p.findScope(list)
	p.byContent()
	for _, item := range p.items {
		if len(p.scope) > 0 {
			p.judge(item)
		} else {
			p.judgeAlone(item)
		}
	}
	for _, t := range list {
		for _, s := range t.Stray {
			p.items = append(p.items, &Item{Kind: IDMismatch, CallID: s.CallID, Why: "a result whose call was never asked for"})
		}
	}
	return p.report()
}

type pairer struct {
	rec      Record
	prefixed bool
	items    []*Item
	used     map[*ledger.Row]bool
	calls    map[runCall][]*ledger.Row // attempts of one call
	names    map[string]string         // of the catalogs in scope, by their folded form
	servers  map[string]bool           // names under which the client has toolrun
	scope    map[string]bool           // run ids
	sessions map[string]bool           // session ids
	alike    []string                  // sessions, none of which is more likely than the others
}

func (p *pairer) report() *Report {
	r := &Report{Alike: p.alike}
	seen := map[string]bool{}
	for _, row := range p.rec.Rows {
		if !p.inScope(row) {
			continue
		}
		r.Rows = append(r.Rows, row)
		if id := row.SessionID.String(); !seen[id] {
			seen[id] = true
			r.Sessions = append(r.Sessions, id)
		}
		if !p.used[row] && !row.IsProcess() {
			p.unreported(row)
		}
	}
	for _, item := range p.items {
		if item.Kind.Finding() {
			r.Findings++
		}
		r.Items = append(r.Items, *item)
	}
	return r
}

// unreported adds a row that the transcript does not have, to the item of the other attempts of its call where there is one: a
// client sees them as one call.
func (p *pairer) unreported(row *ledger.Row) {
	attempts := p.calls[callOf(row)]
	for _, item := range p.items {
		if len(item.Rows) > 0 && slices.ContainsFunc(attempts, func(r *ledger.Row) bool { return r.Attempt != row.Attempt && slices.Contains(item.Rows, r) }) {
			item.Rows = append(item.Rows, row)
			slices.SortFunc(item.Rows, func(a, b *ledger.Row) int { return cmp.Compare(a.Seq, b.Seq) })
			return
		}
	}
	p.items = append(p.items, &Item{Kind: Unreported, CallID: textOf(row.ClientCallID), Tool: row.ToolName.String(), Rows: []*ledger.Row{row}, Why: "a row that the transcript does not have"})
}

// slack is how far the clocks of a client's lines and a row may stand apart: a client writes some of them late.
const slack = 5 * time.Second

// within tells whether the row began between the call and its result; a time that is not told bounds nothing.
func within(row *ledger.Row, c *transcript.Call) bool {
	at, err := time.Parse(time.RFC3339, row.StartedAt)
	if err != nil {
		return true
	}
	if !c.At.IsZero() && at.Before(c.At.Add(-slack)) {
		return false
	}
	return c.Result == nil || c.Result.At.IsZero() || !at.After(c.Result.At.Add(slack))
}
