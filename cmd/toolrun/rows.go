package main

import (
	"fmt"
	"strconv"
	"time"

	"toolrun/archive/ledger"
	"toolrun/archive/redact"
)

// mark is one character for how a row ended.
func mark(row *ledger.Row) cell {
	switch row.Status {
	case ledger.StatusSuccess:
		return cell{"✓", green}
	case ledger.StatusTimeout:
		return cell{"⏱", yellow}
	case ledger.StatusRetry:
		return cell{"↻", yellow}
	case ledger.StatusBlocked:
		return cell{"⊘", yellow}
	}
	return cell{"✗", red}
}

// ending is how a row ended, in words: its outcome, or the declared exit of a tool that ended by itself.
func ending(row *ledger.Row) string {
	if row.Outcome == ledger.OutcomeInterrupted && row.ClosedBy != "" {
		return "interrupted, closed later"
	}
	return row.Outcome
}

// exitText is the exit code or the signal of a row, nothing where neither is known.
func exitText(row *ledger.Row) string {
	switch {
	case row.ExitCode != nil:
		return strconv.Itoa(*row.ExitCode)
	case row.Signal != "":
		return string(row.Signal)
	}
	return "-"
}

// turnText is the turn of a row, nothing where it is unknown.
func turnText(row *ledger.Row) string {
	if row.Turn == 0 {
		return "-"
	}
	return strconv.Itoa(row.Turn)
}

func rowDuration(row *ledger.Row) string {
	return duration(time.Duration(row.DurationMS) * time.Millisecond)
}

func text(t *redact.Text) string {
	if t == nil {
		return ""
	}
	return t.String()
}

// leastID is how much of an id is always shown: it finds the call or the session as long as no other begins so.
const leastID = 14

// callTable is one line a call.
func callTable(rows []*ledger.Row) *table {
	t := &table{columns: []column{
		{title: ""}, {title: "turn", right: true}, {title: "tool", gives: true, order: 3, least: 8}, {title: "took", right: true},
		{title: "ending", gives: true, order: 2}, {title: "exit", right: true}, {title: "output", right: true},
		{title: "call", gives: true, least: leastID}, {title: "input", gives: true, order: 1, least: 8, goes: 1}}}
	for _, row := range rows {
		m := mark(row)
		t.add(m, cell{text: turnText(row)}, cell{text: row.ToolName.String()}, cell{text: rowDuration(row)}, cell{ending(row), m.colour},
			cell{text: exitText(row)}, cell{text: size(row.OutputBytes)}, cell{text: row.ToolCallID.String()}, cell{row.InputSummary.String(), dim})
	}
	return t
}

// tally counts what people ask of a set of calls first.
type tally struct{ calls, failures, refusals int }

func (t *tally) add(row *ledger.Row) {
	t.calls++
	switch row.Status {
	case ledger.StatusBlocked:
		t.refusals++
	case ledger.StatusError, ledger.StatusTimeout, ledger.StatusRetry:
		t.failures++
	}
}

func (t tally) String() string {
	return fmt.Sprintf("%s, %d failed, %d refused", count(t.calls, "call"), t.failures, t.refusals)
}

// listRows prints rows in the form that was asked for; table prints them for people.
func (a *app) listRows(rows []*ledger.Row, csv bool, table func() error) error {
	switch {
	case a.flags.json:
		return a.printRows(rows)
	case csv:
		return a.printRowsCSV(rows)
	}
	return table()
}

// printRows writes rows as they stand in the ledger.
func (a *app) printRows(rows []*ledger.Row) error {
	var line []byte
	for _, row := range rows {
		line = append(row.Append(line[:0]), '\n')
		if _, err := a.stdout.Write(escapeJSON(line)); err != nil {
			return err
		}
	}
	return nil
}
