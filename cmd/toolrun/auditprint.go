package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"toolrun/archive/claims"
	"toolrun/archive/ledger"
	"toolrun/archive/pairing"
)

// auditTotal is the line of a transcript in audit --json.
type auditTotal struct {
	Type     string         `json:"type"` // "transcript"
	Paths    []string       `json:"paths"`
	Format   string         `json:"format"`
	Session  string         `json:"transcript_session"`
	Sessions []string       `json:"session_ids"` // of the rows
	Counts   map[string]int `json:"counts"`      // by kind
	InPart   int            `json:"in_part"`     // of the paired: the agent, or the record, kept a part of the result only, which agrees
	Claims   int            `json:"claims"`
	Findings int            `json:"findings"`
	Joined   int            `json:"joined"`
}

// auditCall is the line of a call.
type auditCall struct {
	Type         string   `json:"type"` // "call"
	Kind         string   `json:"kind"`
	Finding      bool     `json:"finding"`
	Turn         int      `json:"turn"`
	Tool         string   `json:"tool_name"`
	ClientCallID string   `json:"client_call_id"`
	ToolCallIDs  []string `json:"tool_call_ids"`
	Seq          []int64  `json:"seq"`
	Why          string   `json:"why"`
}

// auditClaim is the line of a claim.
type auditClaim struct {
	Type     string       `json:"type"` // "claim"
	Sentence string       `json:"sentence"`
	Mark     string       `json:"mark"`
	Finding  bool         `json:"finding"`
	Why      string       `json:"why"`
	Rows     []claimedRow `json:"rows"`
}

type claimedRow struct {
	ToolCallID string `json:"tool_call_id"`
	Tool       string `json:"tool_name"`
	Status     string `json:"status"`
	ExitCode   *int   `json:"exit_code"`
}

func (x *audited) total(joined int) auditTotal {
	first := x.list[0]
	t := auditTotal{Type: "transcript", Format: first.Format, Session: first.SessionID, Sessions: append([]string{}, x.report.Sessions...), Counts: map[string]int{}, Claims: len(x.claims), Findings: x.findings(), Joined: joined}
	for _, one := range x.list {
		if !slices.Contains(t.Paths, one.Path) { // a database has many sessions
			t.Paths = append(t.Paths, one.Path)
		}
	}
	for _, item := range x.report.Items {
		t.Counts[string(item.Kind)]++
		if item.Kind == pairing.Paired && item.Why != "" {
			t.InPart++
		}
	}
	return t
}

func (a *app) printAudit(x *audited, all bool, joined int) error {
	if a.flags.json {
		return a.printAuditJSON(x, joined)
	}
	total := x.total(joined)
	var parts []string
	for _, kind := range pairing.Kinds {
		if n := total.Counts[string(kind)]; n > 0 {
			part := ""
			if kind == pairing.Paired && total.InPart > 0 {
				part = fmt.Sprintf(" (%d compared in part)", total.InPart)
			}
			parts = append(parts, fmt.Sprintf("%d %s%s", n, strings.ReplaceAll(string(kind), "_", " "), part))
		}
	}
	if len(parts) == 0 {
		parts = []string{"no calls"}
	}
	if err := a.say("%s %s · %s", total.Format, strings.Join(total.Paths, " "), strings.Join(parts, ", ")); err != nil {
		return err
	}
	t := &table{columns: []column{{}, {title: "what"}, {title: "turn", right: true}, {title: "tool"}, {title: "exit", right: true}, {title: "call"}, {title: "why", gives: true}}}
	for i := range x.report.Items {
		if item := &x.report.Items[i]; all || item.Kind.Finding() {
			t.add(auditCells(item)...)
		}
	}
	if len(t.rows) > 0 {
		if err := t.print(a.stdout, a.screen()); err != nil {
			return err
		}
	}
	return a.printClaims(x)
}

func auditCells(item *pairing.Item) []cell {
	mark := cell{"✓", green}
	switch {
	case item.Kind.Finding():
		mark = cell{"✗", red}
	case item.Kind != pairing.Paired:
		mark = cell{"·", dim}
	}
	turn, exit, call := "-", "-", item.CallID
	if item.Call != nil && item.Call.Turn > 0 {
		turn = strconv.Itoa(item.Call.Turn)
	}
	if row := item.Row(); row != nil {
		exit, call = exitText(row), row.ToolCallID.String()
	}
	return []cell{mark, {strings.ReplaceAll(string(item.Kind), "_", " "), mark.colour}, {text: turn}, {text: item.Tool}, {text: exit}, {text: call}, {text: item.Why}}
}

func (a *app) printClaims(x *audited) error {
	if len(x.claims) == 0 {
		return nil
	}
	if err := a.say("the final message says"); err != nil {
		return err
	}
	t := &table{columns: []column{{}, {}, {}, {gives: true}}}
	for _, c := range x.claims {
		mark := map[claims.Mark]cell{claims.Supported: {"✓", green}, claims.Contradicted: {"✗", red}, claims.WithoutEvidence: {"?", yellow}, claims.NotJudged: {"?", dim}}[c.Mark]
		t.add(mark, cell{string(c.Mark), mark.colour}, cell{text: c.Sentence}, cell{c.Why, dim})
		for _, row := range c.Rows {
			t.add(cell{}, cell{}, cell{text: "  " + row.ToolName.String() + " " + row.ToolCallID.String()}, cell{"exit " + exitText(row) + ", " + row.Status, dim})
		}
	}
	return t.print(a.stdout, a.screen())
}

func (a *app) printAuditJSON(x *audited, joined int) error {
	if err := printJSON(a.stdout, x.total(joined)); err != nil {
		return err
	}
	for _, item := range x.report.Items {
		line := auditCall{Type: "call", Kind: string(item.Kind), Finding: item.Kind.Finding(), Tool: item.Tool, ClientCallID: item.CallID, ToolCallIDs: []string{}, Seq: []int64{}, Why: item.Why}
		if item.Call != nil {
			line.Turn = item.Call.Turn
		}
		for _, row := range item.Rows {
			line.ToolCallIDs, line.Seq = append(line.ToolCallIDs, row.ToolCallID.String()), append(line.Seq, row.Seq)
		}
		if err := printJSON(a.stdout, line); err != nil {
			return err
		}
	}
	for _, c := range x.claims {
		line := auditClaim{"claim", c.Sentence, string(c.Mark), c.Mark.Finding(), c.Why, claimedRows(c.Rows)}
		if err := printJSON(a.stdout, line); err != nil {
			return err
		}
	}
	return nil
}

func claimedRows(rows []*ledger.Row) []claimedRow {
	list := []claimedRow{}
	for _, row := range rows {
		list = append(list, claimedRow{row.ToolCallID.String(), row.ToolName.String(), row.Status, row.ExitCode})
	}
	return list
}
