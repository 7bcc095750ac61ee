package main

import (
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"toolrun/archive"
	"toolrun/archive/evidence"
	"toolrun/archive/ledger"
	"toolrun/archive/query"
	"toolrun/archive/trace"
)

//go:embed page.html
var pageHTML string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// page is what report writes and ui serves: one HTML file that loads nothing. Whatever a tool or a client wrote is
// escaped as for a terminal before the template escapes it for HTML.
type page struct {
	Title, Made, Range, Checkpoint string
	Nonce                          string // of its own style and script: no other runs
	Live                           bool
	State                          string // of the record when the page was made, for a live page to ask what is newer
	Total                          tally
	Cost                           string
	Notes                          []string
	Running                        []runningCall
	Sessions                       []*pageSession
}

// pageSession is one session; its rows are there as far as they are among the newest that the page holds.
type pageSession struct {
	ID, Anchor, Client, First, Last string
	Calls, Failures, Refusals       int
	Rows                            []*pageRow
}

// pageRow is one call: a line, its bar on the session's axis of 1000, and the story behind it.
type pageRow struct {
	Anchor, Class, Mark, Turn, Tool, Took, Ending, Exit, Input, Output string
	X, Width                                                           string
	Story                                                              []storyLine
}

type storyLine struct{ Key, Value, Link string }

// runningCall is a call of a living run that has no result yet.
type runningCall struct{ Tool, Since, Session, Call, Arguments string }

// pageOptions are what differs between report and ui.
type pageOptions struct {
	limit int    // calls that are told in full, the newest
	live  bool   // follow the record
	state string // see page.State
	link  func(hash string) string
}

// makePage reads the record. Damaged lines are named on stderr and counted on the page.
func (a *app) makePage(d *archive.Dir, o pageOptions) (*page, *damageSeen, error) {
	p := &page{Title: "toolrun: what ran", Made: ledger.FormatTime(a.now()), Nonce: rand.Text(), Live: o.live, State: o.state}
	seen := &damageSeen{a: a, quiet: o.live}
	sessions := map[string]*pageSession{}
	var newest []*ledger.Row // a ring of the last limit rows
	var usd float64
	priced := 0
	for row, err := range query.Joined(d, query.Rows(d, a.filter())) {
		if err != nil {
			if err := seen.note(err); err != nil {
				return nil, nil, err
			}
			continue
		}
		p.count(sessions, row)
		if row.EstimatedCostUSD != nil {
			usd, priced = usd+*row.EstimatedCostUSD, priced+1
		}
		if len(newest) < o.limit {
			newest = append(newest, row)
		} else {
			newest[(p.Total.calls-1)%o.limit] = row
		}
	}
	slices.SortFunc(newest, func(a, b *ledger.Row) int { return int(a.Seq - b.Seq) })
	for _, row := range newest {
		s := sessions[row.SessionID.String()]
		s.Rows = append(s.Rows, a.pageRow(row, len(s.Rows), s, o.link))
	}
	for _, s := range sessions {
		s.place(newest)
	}
	if priced > 0 {
		p.Cost = fmt.Sprintf("%s USD, of the %s whose cost is known", dollars([]*float64{&usd})[0], count(priced, "call"))
	}
	p.Range = a.pageRange()
	if key, err := evidence.PublicKey(d.Path()); err == nil {
		if c, err := evidence.Newest(d.Path(), key); err == nil && c != nil {
			p.Checkpoint = escape(fmt.Sprintf("%s, %s, root %s", c.Origin, count(int(c.Tree.N), "row"), c.Tree.Hash))
		}
	}
	if left := p.Total.calls - len(newest); left > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("Only the newest %d calls are told in full; %d older ones are counted. More of them: --limit, --since and --until, --session.", len(newest), left))
	}
	if seen.n > 0 {
		p.Notes = append(p.Notes, count(seen.n, "damaged line")+" of the ledger cannot be read; toolrun verify names them.")
	}
	if a.flags.session == "" && a.flags.until.IsZero() {
		p.Running = runningCalls(d)
	}
	return p, seen, nil
}

// count adds a row to the totals and to its session.
func (p *page) count(sessions map[string]*pageSession, row *ledger.Row) {
	id := row.SessionID.String()
	s := sessions[id]
	if s == nil {
		s = &pageSession{ID: escape(id), Anchor: fmt.Sprintf("session-%d", len(sessions)+1), First: row.StartedAt}
		sessions[id] = s
		p.Sessions = append(p.Sessions, s)
	}
	p.Total.add(row)
	one := tally{}
	one.add(row)
	s.Calls, s.Failures, s.Refusals = s.Calls+one.calls, s.Failures+one.failures, s.Refusals+one.refusals
	s.First, s.Last = min(s.First, row.StartedAt), max(s.Last, row.EndedAt)
	if row.Client != nil {
		s.Client = escape(row.Client.String())
	}
}

// pageRow tells one row. d is not asked for its objects: a page of a thousand calls would hash a thousand files.
func (a *app) pageRow(row *ledger.Row, n int, s *pageSession, link func(string) string) *pageRow {
	class := map[colour]string{green: "ok", red: "bad", yellow: "odd"}[mark(row).colour]
	r := &pageRow{
		Anchor: fmt.Sprintf("%s-call-%d", s.Anchor, row.Seq), Class: class, Mark: mark(row).text, Turn: turnText(row),
		Tool: escape(row.ToolName.String()), Took: rowDuration(row), Ending: escape(ending(row)), Exit: escape(exitText(row)),
		Input: escape(row.InputSummary.String()), Output: size(row.OutputBytes),
	}
	hashes := map[string]string{"input_hash": row.InputHash, "output_hash": string(row.OutputHash), "stderr_hash": string(row.StderrHash)}
	for _, line := range (story{row: row, again: a.sameRecord}).table(nil).rows {
		told := storyLine{Key: line[0].text, Value: line[1].text}
		if hash := hashes[told.Key]; hash != "" && link != nil && row.Payloads != "hash" {
			told.Link = link(hash)
		}
		r.Story = append(r.Story, told)
	}
	return r
}

// place puts the rows of a session on one axis: from the first of them to the end of the last.
func (s *pageSession) place(all []*ledger.Row) {
	bySeq := map[string]*ledger.Row{}
	for _, row := range all {
		bySeq[fmt.Sprintf("%s-call-%d", s.Anchor, row.Seq)] = row
	}
	var from, to time.Time
	start := func(r *pageRow) time.Time {
		at, _ := time.Parse(time.RFC3339, bySeq[r.Anchor].StartedAt)
		return at
	}
	took := func(r *pageRow) time.Duration { return time.Duration(bySeq[r.Anchor].DurationMS) * time.Millisecond }
	for i, r := range s.Rows {
		if i == 0 || start(r).Before(from) {
			from = start(r)
		}
		if end := start(r).Add(took(r)); end.After(to) {
			to = end
		}
	}
	span := max(to.Sub(from), time.Millisecond)
	for _, r := range s.Rows {
		x := 1000 * float64(start(r).Sub(from)) / float64(span)
		r.X = fmt.Sprintf("%.2f", min(x, 998))
		r.Width = fmt.Sprintf("%.2f", max(1000*float64(took(r))/float64(span), 2))
	}
}

// pageRange says what was asked for, where not everything was.
func (a *app) pageRange() string {
	var parts []string
	if a.flags.session != "" {
		parts = append(parts, "session "+escape(a.flags.session))
	}
	if !a.flags.since.IsZero() {
		parts = append(parts, "since "+ledger.FormatTime(a.flags.since))
	}
	if !a.flags.until.IsZero() {
		parts = append(parts, "until "+ledger.FormatTime(a.flags.until))
	}
	return strings.Join(parts, ", ")
}

// runningCalls are the calls of living runs that have no result yet, oldest first.
func runningCalls(d *archive.Dir) (list []runningCall) {
	for _, id := range slices.Sorted(maps.Keys(d.Markers())) {
		if !d.Live(id) {
			continue
		}
		open := map[string]runningCall{}
		for line, err := range trace.Lines(d.RunPath(id)) {
			var damage *ledger.Damage
			if errors.As(err, &damage) {
				continue
			}
			if err != nil {
				break // the run has just ended: nothing of it runs
			}
			switch call := line.CallID.String(); line.Type {
			case trace.TypeToolCall:
				arguments := []rune(string(line.Arguments.Raw()))
				open[call] = runningCall{escape(line.Name.String()), line.TS, escape(line.SessionID.String()), escape(call), escape(string(arguments[:min(len(arguments), 200)]))}
			case trace.TypeToolResult:
				delete(open, call)
			}
		}
		list = slices.AppendSeq(list, maps.Values(open))
	}
	slices.SortFunc(list, func(a, b runningCall) int { return strings.Compare(a.Since+a.Call, b.Since+b.Call) })
	return list
}

// write renders the page.
func (p *page) write(w io.Writer) error { return pageTemplate.Execute(w, p) }
