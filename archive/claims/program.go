package claims

import (
	"slices"
	"strings"

	"toolrun/archive/ledger"
)

// verbs end the names of the tools by which a program that stays is started, used and ended.
var verbs = wordSet("start send read poll stop list")

// programs tells the rows of programs that stay (of sessions, and in the background) from those of the calls that start and
// use them. How a program ended, its own row says, which is written at its end; the others say how they ended themselves.
type programs struct {
	bases map[string]bool // tools of which a program was started, as they are declared
	known map[string]bool // tool_call_ids of the starts whose program has its row
}

func programsOf(rows []*ledger.Row) *programs {
	p := &programs{bases: map[string]bool{}, known: map[string]bool{}}
	for _, row := range rows {
		base, starts := strings.CutSuffix(row.ToolName.String(), "_start")
		switch {
		case !starts:
		case row.IsProcess():
			p.bases[base] = true
			if row.ParentCallID != nil {
				p.known[row.ParentCallID.String()] = true
			}
		case endless(row):
			p.bases[base] = true
		}
	}
	return p
}

// endless tells whether a call did well without a program of its own.
func endless(row *ledger.Row) bool {
	return row.Status == ledger.StatusSuccess && row.ExitCode == nil && row.Signal == ""
}

// uses is the tool whose program the call started or used; "" of a row that says how a program ended, or that none was started.
func (p *programs) uses(row *ledger.Row) string {
	name := row.ToolName.String()
	i := strings.LastIndexByte(name, '_')
	if i < 0 || !verbs[name[i+1:]] || row.IsProcess() || row.Status == ledger.StatusBlocked || row.ExitCode != nil || row.Signal != "" {
		return ""
	}
	if base := name[:i]; p.bases[base] || endless(row) {
		return base
	}
	return ""
}

// open tells whether the row is that of a start whose program has no row: it runs, as far as the record tells.
func (p *programs) open(row *ledger.Row) bool {
	return p.uses(row) != "" && endless(row) && strings.HasSuffix(row.ToolName.String(), "_start") && !p.known[row.ToolCallID.String()]
}

// evidence are the rows that would have to say what a statement says of one subject: of calls that used a program its row. That
// such a call was made, where no more is said, its own row tells.
func (p *programs) evidence(s *statement, sub subject, rows []*ledger.Row, content Content) []*ledger.Row {
	run := sub.run != nil && slices.ContainsFunc(rows, func(row *ledger.Row) bool { return row.Status != ledger.StatusBlocked && sub.run(row) })
	own, of := map[*ledger.Row]bool{}, map[string]bool{}
	for _, row := range rows {
		if !sub.is(row, content) || run && !sub.run(row) {
			continue
		}
		switch base := p.uses(row); {
		case base == "" || p.open(row) || row.ToolName.String() == sub.tool && s.says == ran && s.exit == "":
			own[row] = true
		case row.ToolName.String() == sub.tool:
			of[base] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(rows), func(row *ledger.Row) bool {
		base, starts := strings.CutSuffix(row.ToolName.String(), "_start")
		return !own[row] && !(starts && of[base] && (row.IsProcess() || p.open(row)))
	})
}

// last is the row of what began last: a program that is open has no place among those that ended.
func (p *programs) last(rows []*ledger.Row) *ledger.Row {
	last := rows[len(rows)-1]
	for _, row := range rows {
		if p.open(row) && row.StartedAt > last.StartedAt {
			last = row
		}
	}
	return last
}

// end is how it ended, in words.
func (p *programs) end(row *ledger.Row) string {
	if p.open(row) {
		return "no end on the record"
	}
	return ended(row)
}
