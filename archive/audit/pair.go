package audit

import (
	"fmt"
	"path/filepath"
	"strings"

	"toolrun/archive/ledger"
	"toolrun/archive/trace"
)

// pair holds the rows of each run against its trace.
func (v *verifier) pair() error {
	ids := map[string]struct{}{}
	for id := range v.runs {
		ids[id] = struct{}{}
	}
	for id := range v.rows {
		ids[id] = struct{}{}
	}
	for _, id := range sortedKeys(ids) {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		v.pairRun(id)
	}
	return nil
}

func (v *verifier) pairRun(id string) {
	before, rows := v.runs[id], v.rows[id]
	if before != nil && (before.broken || agree(before, rows)) {
		return
	}
	if id == "" {
		return // rows of another program, which knew no runs
	}
	// They do not agree, or the run is new since: look again, now that the rows were read.
	after := before
	if before == nil || !before.sealed {
		after = v.readRun(id, func(Finding) {})
	}
	if after.gone { // sealed meanwhile, or gone
		if err := v.readMonths(); err != nil {
			return
		}
		if after = v.runs[id]; after == nil {
			if !v.excused(id) {
				calls := sortedKeys(rows)
				v.find(Finding{Kind: RunMissing, File: v.d.RunPath(id), CallIDs: calls, Text: fmt.Sprintf("%d rows name this run, whose file is missing", len(calls))})
			}
			return
		}
	}
	if before == nil {
		before = &run{path: after.path, live: true}
	}
	live := before.live || after.live
	at := func(kind, call string, line int, text string) {
		if kind == NoRow {
			if v.excusedCall(call) {
				return
			}
			v.lost = append(v.lost, call)
		}
		v.find(Finding{Kind: kind, File: after.path, Line: line, CallIDs: []string{call}, Text: text})
	}
	for _, call := range after.order {
		c, result := after.calls[call], after.results[call]
		switch known := before.results[call] != nil; {
		case c == nil:
			at(IDMismatch, call, result.No, "a tool_result whose tool_call was never issued")
		case rows[call] != nil:
			if diff := differs(rows[call], c, result); diff != "" {
				at(RowDiffers, call, c.No, fmt.Sprintf("line %d of %s and this do not agree: %s", rows[call].line, v.relative(rows[call].file), diff))
			}
			if result == nil && !live {
				at(NoResult, call, c.No, "a row but no tool_result; the run is dead and not closed")
			}
		case known && result != nil:
			at(NoRow, call, c.No, "a tool_call and its tool_result, but no row")
		case result == nil && !live:
			at(NoRow, call, c.No, "a tool_call without row and tool_result: the run is dead and not closed")
		}
	}
	for _, call := range sortedKeys(rows) {
		if after.calls[call] == nil && after.results[call] == nil {
			v.find(Finding{Kind: NoCall, File: rows[call].file, Line: rows[call].line, CallIDs: []string{call}, Text: "a row whose tool_call is not in " + filepath.Join(ledger.RunsName, id+".jsonl")})
		}
	}
}

// agree tells whether every call has its row and its result, and they say the same.
func agree(r *run, rows map[string]*rowRef) bool {
	if len(r.calls) != len(rows) || len(r.results) != len(rows) {
		return false
	}
	for id, row := range rows {
		call, result := r.calls[id], r.results[id]
		if call == nil || result == nil || differs(row, call, result) != "" {
			return false
		}
	}
	return true
}

// differs tells where a row and its trace lines do not say the same.
func differs(row *rowRef, call, result *trace.Line) string {
	var list []string
	add := func(is bool, what string) {
		if is {
			list = append(list, what)
		}
	}
	add(call.Name.String() != row.name, "name")
	add(call.ArgsSHA256 != row.inputHash, "args_sha256")
	if call.Held && call.ApprovalStatus != ledger.ApprovalApproved {
		add(row.approved || row.exitCode != nil || row.outputBytes > 0, "approval: it ran, and no line says that somebody allowed it")
	}
	if result != nil {
		same := (result.ExitCode == nil) == (row.exitCode == nil) && (row.exitCode == nil || *result.ExitCode == *row.exitCode)
		add(!same, "exit_code")
		add(result.OutputBytes != row.outputBytes, "output_bytes")
	}
	return strings.Join(list, ", ")
}
