package pairing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"toolrun/archive/internal/late"
	"toolrun/archive/ledger"
	"toolrun/archive/transcript"
)

// learnServers finds under which name the client has toolrun, where it is none of the usual: that of the calls of tools of
// the catalog.
func (p *pairer) learnServers() {
	for _, item := range p.items {
		if p.servers[item.Call.Server] {
			return
		}
	}
	for _, item := range p.items {
		if _, ok := p.names[fold(item.Call.Tool)]; ok && item.Call.Server != "" {
			p.servers[item.Call.Server] = true
		}
	}
}

// judge says what became of a call.
func (p *pairer) judge(item *Item) {
	c := item.Call
	tool, of := p.resolve(c)
	item.Tool = tool
	if row := item.Row(); row != nil {
		p.judgePaired(item, row)
		return
	}
	if p.judgeUnread(item, of) {
		return
	}
	r := c.Result
	if r != nil && (of == catalogs || of == inventedName) && !byItself(r) {
		if session := p.elsewhere(c); session != "" {
			item.Kind, item.Why = Orphan, fmt.Sprintf("session %s has no such call; the ledger has it in session %s", p.rec.Session, session)
			return
		}
	}
	switch {
	case of == others && r != nil && !didNotRun(r):
		item.Kind, item.Why = Bypassed, fmt.Sprintf("a tool of another server, %q: what it did is not on the record", c.Server)
	case of == agents && !builtins[c.Name]:
		item.Kind = Own
	case of == agents || of == others:
		item.Kind, item.Why = Refused, "a tool of the agent that did not run"
		switch {
		case r == nil:
			item.Kind = Unanswered
		case !didNotRun(r):
			item.Kind, item.Why = Bypassed, "a tool of the agent that works on the machine outside of toolrun"
		}
	case of == inventedName && len(p.names) == 0 && p.mayBeOurs(c):
		p.judgeMissing(item) // no catalog is known that the name could be outside of
	case of == inventedName && r != nil && (byItself(r) || saysUnknown(r) || p.mayBeOurs(c)):
		item.Kind, item.Why = Invented, "no such tool in the catalog; the client refused it, and it never reached toolrun"
		if !byItself(r) && !saysUnknown(r) {
			item.Why = "no such tool in the catalog, and yet the transcript has a result of it"
		}
	case of == inventedName && r != nil:
		item.Kind, item.Why = Bypassed, "a tool that toolrun does not have: what it did is not on the record"
	case of == inventedName:
		item.Kind, item.Why = Invented, "no such tool in the catalog; the session ended before an answer"
	default:
		p.judgeMissing(item)
	}
}

// judgeAlone says what a call is by the transcript alone, where no session of the record is known to be its own: which tools
// toolrun had then is not known, so that only one of the agent's own can be told.
func (p *pairer) judgeAlone(item *Item) {
	tool, of := p.resolve(item.Call)
	if of == agents {
		p.judge(item)
		return
	}
	if p.judgeUnread(item, of) {
		item.Tool = tool
		return
	}
	item.Tool, item.Kind, item.Why = tool, Unmatched, "no session of the record is known to be that of the transcript"
}

// judgeUnread tells whether a call was on the record whose row is not read: by the id that its result names, else by the
// client's, which another session may have used as well.
func (p *pairer) judgeUnread(item *Item, of whose) bool {
	if p.rec.Unread == nil || of == agents || of == others {
		return false
	}
	id := cmp.Or(namedBy(item.Call.Result), item.Call.ID)
	if id == "" {
		return false
	}
	var sessions []string
	if len(p.scope) > 0 || p.rec.Session != "" {
		sessions = slices.Collect(maps.Keys(p.sessions))
	}
	why := p.rec.Unread(id, item.Call, sessions)
	if why == "" {
		return false
	}
	item.Kind, item.Why = Unread, why
	return true
}

// unknownTool is how loops of one's own refuse a name, which have no mark for it.
var unknownTool = late.Regexp(`(?i)^(?:error:? )?\W*(?:unknown|no such|unsupported|unregistered|undefined) (?:tool|function)\b|^[^\n]{0,80}\b(?:tool|function)\b[^\n]{0,80}\b(?:not found|does not exist|is not (?:defined|available|registered|known))`)

func saysUnknown(r *transcript.Result) bool {
	return slices.ContainsFunc(r.Views, func(v transcript.View) bool { return unknownTool().MatchString(v.Text) && !saysResult(v.Text) })
}

// mayBeOurs tells whether a call was meant for toolrun, by its server's name or by the look of its result.
func (p *pairer) mayBeOurs(c *transcript.Call) bool {
	if c.Server != "" && p.servers[c.Server] || c.Result == nil {
		return true
	}
	for _, v := range c.Result.Views {
		if looksOurs(v.Text) {
			return true
		}
	}
	return false
}

// judgeMissing is for a tool of the catalog without a row.
func (p *pairer) judgeMissing(item *Item) {
	r := item.Call.Result
	if r == nil {
		item.Kind, item.Why = Unanswered, "no result and no row: the session ended before"
		return
	}
	ours := false
	for _, v := range r.Views {
		ours = ours || looksOurs(v.Text)
	}
	switch {
	case ours:
		item.Kind, item.Why = Orphan, "the transcript has an answer of toolrun, and the ledger has no such call"
	case byItself(r):
		item.Kind, item.Why = Refused, "the client answered by itself: it never reached toolrun"
	default:
		item.Kind, item.Why = Orphan, "the transcript has a result, and the ledger has no such call"
	}
}

// judgePaired holds a call against its row.
func (p *pairer) judgePaired(item *Item, row *ledger.Row) {
	c := item.Call
	item.Kind, item.Tool = Paired, row.ToolName.String()
	if !row.Known {
		item.Kind, item.Why = Invented, "no such tool in the catalog; toolrun refused it"
		return
	}
	if !ends(c, row.ToolName.String()) {
		if _, ok := p.shortened(c.Tool); !ok {
			item.Kind, item.Why = Altered, fmt.Sprintf("the row with this id is of the tool %q", row.ToolName)
			return
		}
	}
	if p.argsAgree(c, row) == no {
		item.Kind, item.Why = Altered, "the arguments are others than those of the row: "+row.InputSummary.String()
		return
	}
	a := agree(c.Result, row, p.shown(row), p.prefixed)
	named := namedBy(c.Result)
	switch {
	case named != "" && !names(item.Rows, named) && a.kind != agreesInPart: // facts may have been cut in the middle of the id
		item.Kind, item.Why = Altered, fmt.Sprintf("the result is that of another call, %s", named)
	case a.kind == differs:
		// A client that was answered late shows the answer to an earlier attempt.
		for _, earlier := range item.Rows[:len(item.Rows)-1] {
			if b := agree(c.Result, earlier, p.shown(earlier), p.prefixed); b.kind != differs {
				item.Why = b.why
				return
			}
		}
		item.Kind, item.Why = Altered, a.why
	case p.unmarked(item, row):
		item.Kind, item.Why = Altered, "the call failed, and the transcript does not mark its result as an error"
	case a.held() && falselyMarked(item, row):
		item.Kind, item.Why = Altered, "the call succeeded, and the transcript marks its result as an error"
	default:
		item.Why = a.why
	}
}

func names(rows []*ledger.Row, id string) bool {
	for _, row := range rows {
		if row.ToolCallID.String() == id {
			return true
		}
	}
	return false
}
