package anomaly

import (
	"strings"

	"toolrun/archive/ledger"
)

// session is what the rules remember of one.
type session struct {
	calls, errors int
	usd           float64
	told          map[string]bool // rules that are told once a session

	run, catalog string              // of its last row
	tools        map[string]declared // by name
	tool, input  string              // of its last row
	same         int                 // rows in a row with these
}

// declared is what a session last saw of a tool's declaration: two hashes.
type declared struct{ schema, definition string }

func (s *session) once(rule string) bool {
	if s.told[rule] {
		return false
	}
	if s.told == nil {
		s.told = map[string]bool{}
	}
	s.told[rule] = true
	return true
}

// session are the rules over the rows of a session.
func (c *Checker) session(s *session, row *ledger.Row) {
	l := c.limits
	s.calls++
	if failed(row) && !(row.IsProcess() && row.Outcome == ledger.OutcomeInterrupted) { // it ended with the run, as it must
		s.errors++
	}
	if rate := float64(s.errors) / float64(s.calls); s.calls >= l.SessionCalls && rate > l.SessionErrors && s.once(SessionErrors) && !c.partial(row.SessionID.String()) {
		c.report(SessionErrors, row, rate, l.SessionErrors, "%d of the %d calls so far failed", s.errors, s.calls)
	}
	if usd, known := c.cost(row); known {
		s.usd += usd
		if s.usd > l.SessionCostUSD && s.once(SessionCost) {
			c.report(SessionCost, row, s.usd, l.SessionCostUSD, "the session cost $%.2f by here", s.usd)
		}
	}
	if row.IsProcess() {
		c.drift(s, row)
		return // the call that started it was counted
	}
	if row.IsLook() {
		c.drift(s, row)
		return // it looks until it sees
	}
	if s.tool == row.ToolName.String() && s.input == row.InputHash {
		s.same++
	} else {
		s.tool, s.input, s.same = c.once(row.ToolName.String()), row.InputHash, 1
	}
	if row.Attempt > 1 {
		s.same-- // the catalog asked for it, not the agent
	}
	if s.same == l.SameInput {
		c.report(SameInput, row, float64(s.same), float64(l.SameInput), "the same tool with the same input, %d times in a row", s.same)
	}
	c.drift(s, row)
}

// drift is a catalog, a schema or another part of a definition that changed between two runs of the session.
func (c *Checker) drift(s *session, row *ledger.Row) {
	if s.run != "" && s.run != row.RunID && s.catalog != row.CatalogSHA256 {
		c.report(CatalogChanged, row, 1, 0, "the session went on under another catalog: %.12s, before %.12s", row.CatalogSHA256, s.catalog)
	}
	s.run, s.catalog = c.once(row.RunID), c.once(row.CatalogSHA256)
	if row.SchemaSHA256 == "" {
		return
	}
	name := c.once(row.ToolName.String())
	now := declared{c.once(string(row.SchemaSHA256)), c.once(string(row.DefinitionSHA256))}
	switch before, known := s.tools[name]; {
	case !known || before == now:
	case before.schema != now.schema:
		c.report(SchemaChanged, row, 1, 0, "the session went on under another schema of the tool: %.12s, before %.12s%s", now.schema, before.schema, c.changed(before, now))
	default:
		c.report(DefinitionChanged, row, 1, 0, "the session went on under another definition of the tool: %.12s, before %.12s%s", now.definition, before.definition, c.changed(before, now))
	}
	s.tools[name] = now
}

// changed is what changed in a definition, to follow its hashes; empty where that is not known.
func (c *Checker) changed(before, now declared) string {
	fields := c.changes(before.definition, now.definition)
	if len(fields) == 0 {
		return ""
	}
	return "; " + strings.Join(fields, "; ")
}
