package pairing

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/archive/transcript"
)

// byID pairs by the ids that the client kept: its own, as it sent it, or the one that the result names.
func (p *pairer) byID() {
	own := map[string][]*ledger.Row{} // by the client's id
	ours := map[string]*ledger.Row{}
	for _, row := range p.rec.Rows {
		if p.rec.Session != "" && row.SessionID.String() != p.rec.Session {
			continue
		}
		if row.IsProcess() {
			continue // no call of the agent's
		}
		ours[row.ToolCallID.String()] = row
		if id := textOf(row.ClientCallID); id != "" {
			own[id] = append(own[id], row)
		}
	}
	for _, item := range p.items {
		c := item.Call
		var rows []*ledger.Row
		if c.ID != "" {
			rows = p.nearest(own[c.ID], c, item.From.SessionID)
		}
		if row := ours[namedBy(c.Result)]; rows == nil && row != nil && row.ClientCallID == nil {
			rows = p.attempts(row)
		}
		p.take(item, rows)
	}
}

// nearest are the rows of one call among those that have its id: of its session, else of its time; then of the run of the
// first of these. Ids are the model's, and another session may have used the same.
func (p *pairer) nearest(rows []*ledger.Row, c *transcript.Call, session string) []*ledger.Row {
	keep := func(ok func(*ledger.Row) bool) (kept []*ledger.Row) {
		for _, row := range rows {
			if !p.used[row] && ok(row) {
				kept = append(kept, row)
			}
		}
		return kept
	}
	found := keep(func(row *ledger.Row) bool { return row.SessionID.String() == session && within(row, c) })
	if found == nil {
		found = keep(func(row *ledger.Row) bool { return within(row, c) && !c.At.IsZero() })
	}
	if found == nil && c.At.IsZero() {
		found = keep(func(*ledger.Row) bool { return true })
	}
	return slices.DeleteFunc(found, func(row *ledger.Row) bool { return row.RunID != found[0].RunID })
}

func (p *pairer) take(item *Item, rows []*ledger.Row) {
	for _, row := range rows {
		if !p.used[row] {
			p.used[row] = true
			item.Rows = append(item.Rows, row)
		}
	}
}

// namedBy is the tool_call_id that a result names: in what the client kept of its _meta, or in its facts.
func namedBy(r *transcript.Result) string {
	if r == nil {
		return ""
	}
	if r.CallID != "" {
		return r.CallID
	}
	for _, v := range r.Views {
		if f := factsOf(v.Text); f != nil && f.ToolCallID != "" {
			return string(f.ToolCallID)
		}
	}
	return ""
}

// findScope finds the runs and sessions that the transcript is of: those of the rows that have its ids or its session; else
// those whose rows all lie in its time, and of whose rows one is its tool with its arguments.
func (p *pairer) findScope(list []*transcript.Transcript) {
	p.scope, p.sessions, p.servers = map[string]bool{}, map[string]bool{}, map[string]bool{"box": true, "toolrun": true}
	for _, item := range p.items {
		for _, row := range item.Rows {
			p.scope[row.RunID], p.sessions[row.SessionID.String()] = true, true
			if item.Call.Server != "" {
				p.servers[item.Call.Server] = true
			}
		}
	}
	if p.rec.Session != "" {
		p.sessions[p.rec.Session] = true
	}
	for _, t := range list {
		if t.SessionID != "" {
			p.sessions[t.SessionID] = true
		}
	}
	found := false
	for _, row := range p.rec.Rows {
		if p.rec.Session != "" && row.SessionID.String() != p.rec.Session {
			continue
		}
		if p.sessions[row.SessionID.String()] {
			p.scope[row.RunID], found = true, true
		}
	}
	if !found && p.rec.Session == "" {
		p.scopeByTime(list)
	}
	p.names = map[string]string{}
	for run := range p.scope {
		for _, name := range p.rec.Catalog(run) {
			p.names[fold(name)] = name
		}
	}
	p.learnServers()
}

// scopeByTime is for clients that name neither calls nor sessions.
func (p *pairer) scopeByTime(list []*transcript.Transcript) {
	first, last := span(list)
	if first.IsZero() {
		p.scopeByResults()
		return
	}
	runs := map[string][]*ledger.Row{}
	for _, row := range p.rec.Rows {
		runs[row.RunID] = append(runs[row.RunID], row)
	}
	for run, rows := range runs {
		inside := !slices.ContainsFunc(rows, func(row *ledger.Row) bool {
			return row.StartedAt < ledger.FormatTime(first.Add(-slack)) || row.StartedAt > ledger.FormatTime(last.Add(slack))
		})
		one := slices.ContainsFunc(rows, func(row *ledger.Row) bool {
			return slices.ContainsFunc(p.items, func(item *Item) bool {
				return ends(item.Call, row.ToolName.String()) && within(row, item.Call) && p.argsAgree(item.Call, row) == yes
			})
		})
		if inside && one {
			p.scope[run] = true
			for _, row := range rows {
				p.sessions[row.SessionID.String()] = true
			}
		}
	}
}

// scopeByResults is for messages without ids, session and times: the session with which more than half of the calls that have a
// result agree, and more of them than with any other.
func (p *pairer) scopeByResults() {
	agreeing, answered := map[string]int{}, 0
	for _, item := range p.items {
		if item.Call.Result == nil {
			continue
		}
		answered++
		found := map[string]bool{}
		for _, row := range p.rec.Rows {
			if id := row.SessionID.String(); !found[id] && ends(item.Call, row.ToolName.String()) && p.argsAgree(item.Call, row) == yes && agree(item.Call.Result, row, p.shown(row), p.prefixed).held() {
				found[id] = true
				agreeing[id]++
			}
		}
	}
	most := 1
	for _, n := range agreeing {
		most = max(most, n)
	}
	if 2*most <= answered {
		return
	}
	maps.DeleteFunc(agreeing, func(_ string, n int) bool { return n < most })
	if len(agreeing) > 1 {
		p.alike = slices.Sorted(maps.Keys(agreeing))
		return
	}
	for _, row := range p.rec.Rows {
		if id := row.SessionID.String(); agreeing[id] > 0 {
			p.scope[row.RunID], p.sessions[id] = true, true
		}
	}
}

func (p *pairer) inScope(row *ledger.Row) bool {
	return p.scope[row.RunID] && p.sessions[row.SessionID.String()] && (p.rec.Session == "" || row.SessionID.String() == p.rec.Session)
}

// byContent pairs what ids did not, in order: by tool, arguments and time; then by tool and time alone, so that a call with
// other arguments is altered, and not one that is missing on either side.
func (p *pairer) byContent() {
	pass := func(fits func(*Item, *ledger.Row) bool) {
		for _, item := range p.items {
			if len(item.Rows) > 0 {
				continue
			}
			tool, whose := p.resolve(item.Call)
			if whose != catalogs && whose != inventedName {
				continue
			}
			for _, row := range p.rec.Rows {
				if !p.inScope(row) || p.used[row] || row.IsProcess() || fold(row.ToolName.String()) != fold(tool) || row.ClientCallID != nil {
					continue
				}
				if tries := p.attempts(row); tries != nil && within(tries[0], item.Call) && within(row, item.Call) && fits(item, row) {
					p.take(item, append(tries, p.replays(item, row)...))
					break
				}
			}
		}
	}
	pass(func(item *Item, row *ledger.Row) bool {
		return p.argsAgree(item.Call, row) != no && agree(item.Call.Result, row, p.shown(row), p.prefixed).kind != differs
	})
	pass(func(item *Item, row *ledger.Row) bool { return p.argsAgree(item.Call, row) != no })
	pass(func(item *Item, _ *ledger.Row) bool {
		r := item.Call.Result
		return r != nil && !(r.Refused && byItself(r)) && p.elsewhere(item.Call) == ""
	})
}

// elsewhere is the session that has a call of which the session that a person named has no row; "" where none is known to.
func (p *pairer) elsewhere(c *transcript.Call) string {
	if p.rec.Session == "" {
		return ""
	}
	named := namedBy(c.Result)
	for _, row := range p.rec.Rows {
		session, id := row.SessionID.String(), textOf(row.ClientCallID)
		if session == p.rec.Session || row.IsProcess() || !ends(c, row.ToolName.String()) || !within(row, c) {
			continue
		}
		switch {
		case named != "":
			if row.ToolCallID.String() == named {
				return session
			}
		case id != "":
			if id == c.ID {
				return session
			}
		case p.argsAgree(c, row) == yes && agree(c.Result, row, p.shown(row), p.prefixed).held():
			return session
		}
	}
	return ""
}

// runCall is a call of which there may be several attempts, which the client sees as one.
type runCall struct{ run, id string }

func callOf(row *ledger.Row) runCall {
	id := row.ToolCallID.String()
	if row.Attempt > 1 {
		id = strings.TrimSuffix(id, fmt.Sprint("#", row.Attempt))
	}
	return runCall{row.RunID, id}
}

// groupAttempts puts the attempts of each call together.
func (p *pairer) groupAttempts() {
	p.calls = map[runCall][]*ledger.Row{}
	for _, row := range p.rec.Rows {
		p.calls[callOf(row)] = append(p.calls[callOf(row)], row)
	}
}

// attempts are the rows of a call up to its last attempt, row; nil where that is not the last.
func (p *pairer) attempts(row *ledger.Row) (list []*ledger.Row) {
	for _, other := range p.calls[callOf(row)] {
		switch {
		case other.Attempt > row.Attempt:
			return nil
		case other.Attempt < row.Attempt:
			list = append(list, other)
		}
	}
	return append(list, row)
}

// replays are the rows of the same call, sent again by its client: the server had died in it.
func (p *pairer) replays(item *Item, row *ledger.Row) (more []*ledger.Row) {
	if row.Outcome != ledger.OutcomeInterrupted || item.Call.At.IsZero() {
		return nil
	}
	for _, other := range p.rec.Rows {
		if other.Seq > row.Seq && !p.used[other] && p.sessions[other.SessionID.String()] && other.ToolName == row.ToolName && other.InputHash == row.InputHash && other.RunID != row.RunID && within(other, item.Call) {
			p.scope[other.RunID] = true
			more = append(more, other)
			if other.Outcome != ledger.OutcomeInterrupted {
				break
			}
		}
	}
	return more
}

// answer to a question that may have none.
type answer int

const (
	no answer = iota
	yes
	unknown
)

// argsAgree compares the arguments as the transcript tells them with those that are stored: where a secret stood, anything
// agrees.
func (p *pairer) argsAgree(c *transcript.Call, row *ledger.Row) answer {
	if row.Payloads != "" {
		return unknown
	}
	stored, err := p.rec.Content(row.InputHash)
	if err != nil {
		return unknown
	}
	var a, b any
	if decodeNumbers(stored, &b) != nil {
		return unknown
	}
	if _, object := b.(map[string]any); !object {
		return unknown // a text in which a key stands twice
	}
	switch args := c.Args; {
	case args == nil && row.Outcome == ledger.OutcomeInvalidArguments:
		return unknown // they were no JSON
	case args == nil:
		a = map[string]any{}
	case decodeNumbers(args, &a) != nil:
		return unknown
	}
	if same(a, b) {
		return yes
	}
	return no
}

func decodeNumbers(text []byte, v *any) error {
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.UseNumber()
	return dec.Decode(v)
}

// same compares a value with one that is stored.
func same(told, stored any) bool {
	switch s := stored.(type) {
	case string:
		if s == redact.Mark {
			return true
		}
		t, ok := told.(string)
		return ok && sameText(t, s)
	case json.Number:
		t, ok := told.(json.Number)
		return ok && sameNumber(t, s)
	case []any:
		t, ok := told.([]any)
		return ok && slices.EqualFunc(t, s, same)
	case map[string]any:
		t, ok := told.(map[string]any)
		if !ok || len(t) != len(s) {
			return false
		}
		for key, v := range s {
			w, has := t[key]
			if !has || !same(w, v) {
				return false
			}
		}
		return true
	}
	return told == stored
}

// sameText: between the marks stands what was told.
func sameText(told, stored string) bool {
	pieces := strings.Split(stored, redact.Mark)
	if len(pieces) == 1 {
		return told == stored
	}
	rest, ok := strings.CutPrefix(told, pieces[0])
	if !ok {
		return false
	}
	for _, piece := range pieces[1 : len(pieces)-1] {
		i := strings.Index(rest, piece)
		if i < 0 {
			return false
		}
		rest = rest[i+len(piece):]
	}
	return strings.HasSuffix(rest, pieces[len(pieces)-1])
}

func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, err1 := a.Float64()
	y, err2 := b.Float64()
	return err1 == nil && err2 == nil && x == y
}

func textOf(t *redact.Text) string {
	if t == nil {
		return ""
	}
	return t.String()
}
