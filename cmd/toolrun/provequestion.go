package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"toolrun/archive"
	"toolrun/archive/claims"
	"toolrun/archive/evidence"
	"toolrun/archive/ledger"
	"toolrun/archive/query"
)

// question is what prove is asked for in place of a call.
type question struct {
	tool, after string
	exit        int
	exits       bool // exit was asked for
	args        []string
	allowShell  bool

	since    time.Time // of after, where it is a time
	afterSeq int64     // of after, where it is a call; else -1
}

// askedColumns are those that a question is about, and those that are shown of the nearest rows.
var askedColumns = []string{"tool_call_id", "tool_name", "status", "outcome", "exit_code", "signal", "started_at", "seq", "input_hash", "argv", "payloads"}

// nearestRows is how many rows are shown where none fits.
const nearestRows = 5

// fittingRows is how many of the newest rows that fit are tried: of the first that is what was recorded the receipt is made.
const fittingRows = 64

// proveQuestion prints the receipt of the newest call that fits and verifies; where none does, the nearest ones and status 3.
func (a *app) proveQuestion(cmd *cobra.Command, d *archive.Dir, q *question) error {
	for _, arg := range q.args {
		name, pattern, ok := strings.Cut(arg, "=")
		if _, err := path.Match(pattern, ""); !ok || name == "" || err != nil {
			return usagef(cmd, "--arg %q: want NAME=PATTERN, as 'path=tests/*'", arg)
		}
	}
	if err := a.meanSession(d); err != nil {
		return &foundError{fmt.Errorf("nothing proved: %w", err)}
	}
	if err := a.readAfter(d, q); err != nil {
		return err
	}
	rec, seen := newRecord(d), damageSeen{a: a}
	var fit []string // tool_call_ids
	near := nearRows{tool: q.tool}
	for row, err := range (query.Scan{Filter: a.filter(), Columns: askedColumns}).Rows(d) {
		if err != nil {
			if err := seen.note(err); err != nil {
				return err
			}
			continue
		}
		lacks := q.lacks(row, rec)
		if len(lacks) == 0 {
			if fit = append(fit, row.ToolCallID.String()); len(fit) >= 2*fittingRows {
				fit = slices.Clone(fit[fittingRows:])
			}
			continue
		}
		near.add(row, lacks)
	}
	rows, err := wholeRows(d, fit[max(len(fit)-fittingRows, 0):])
	if err != nil {
		return err
	}
	for _, row := range slices.Backward(rows) {
		if lacks := q.lacks(row, rec); len(lacks) > 0 || !a.filter().Match(row) {
			continue // another one with the id of one that fits
		}
		receipt, err := a.receipt(d, row)
		if err == nil {
			return errors.Join(a.printReceipt(receipt), seen.result())
		}
		if !errors.Is(err, errUnverified) && !errors.Is(err, evidence.ErrUnverified) && !errors.Is(err, archive.ErrContradiction) {
			return err
		}
		near.add(row, []string{"it does not verify: " + err.Error()})
	}
	asked := a.filter()
	if q.since.After(asked.Since) {
		asked.Since = q.since
	}
	a.tellPruned(d, asked)
	list := near.nearest()
	if err := a.printNearest(list); err != nil {
		return err
	}
	why := "no such call is on the record"
	if q.tool != "" && !near.ofTool {
		why = fmt.Sprintf("a tool %q is unknown to the record", q.tool)
		if f := a.filter(); f.Session != "" || !f.Since.IsZero() || !f.Until.IsZero() {
			why = fmt.Sprintf("no call of a tool %q is in the session and the time that are asked for", q.tool)
		}
	}
	if len(list) > 0 {
		why += "; the nearest stand above"
	}
	return errors.Join(&foundError{errors.New("nothing proved: " + why)}, seen.result())
}

// wholeRows are the rows with these tool_call_ids, in the order of seq.
func wholeRows(d *archive.Dir, ids []string) (rows []*ledger.Row, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	column := ledger.ColumnOf("tool_call_id")
	is := func(f *ledger.Fields) bool {
		return slices.ContainsFunc(ids, func(id string) bool { return f.Is(column, id) })
	}
	for row, err := range (query.Scan{Keep: is}).Rows(d) {
		var damage *ledger.Damage
		if err != nil && !errors.As(err, &damage) { // which was named
			return nil, err
		}
		if err == nil {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// readAfter reads --after: a time, else a call.
func (a *app) readAfter(d *archive.Dir, q *question) error {
	q.afterSeq = -1
	if q.after == "" {
		return nil
	}
	at, timeErr := query.ParseTime(q.after, a.now())
	if timeErr == nil {
		q.since = at
		return nil
	}
	rows, _, err := a.find(d, q.after)
	if err != nil {
		return &foundError{fmt.Errorf("--after: %w, and %w", err, timeErr)}
	}
	q.afterSeq = rows[len(rows)-1].Seq
	return nil
}

// lacks says what keeps a row from being the answer, the weightiest first; nothing where it is one.
func (q *question) lacks(row *ledger.Row, rec *record) (list []string) {
	if q.tool != "" && row.ToolName.String() != q.tool {
		list = append(list, "it is of "+row.ToolName.String())
	}
	if row.Status == ledger.StatusBlocked {
		list = append(list, "it was refused, and nothing ran")
	}
	for _, arg := range q.args {
		if !fitsArgument(row, rec, arg) {
			list = append(list, "no argument fits "+arg)
		}
	}
	if at, err := time.Parse(time.RFC3339, row.StartedAt); !q.since.IsZero() && (err != nil || at.Before(q.since)) {
		list = append(list, "it began before "+ledger.FormatTime(q.since))
	}
	if row.Seq <= q.afterSeq {
		list = append(list, "it stands before "+q.after)
	}
	if q.exits && row.Status != ledger.StatusBlocked {
		switch {
		case row.ExitCode == nil || *row.ExitCode != q.exit:
			list = append(list, "it ended with "+row.Outcome+", exit "+exitText(row))
		case !q.allowShell && claims.Masked(row):
			list = append(list, "its exit code may have been masked by its shell (--allow-shell takes it)")
		}
	}
	return list
}

// fitsArgument tells whether the stored arguments have one of this name that fits: a string, a number or a boolean, or an
// element of an array of these. A dot leads into an object. What is masked fits nothing.
func fitsArgument(row *ledger.Row, rec *record, arg string) bool {
	name, pattern, _ := strings.Cut(arg, "=")
	if row.Payloads != "" {
		return false
	}
	text, err := rec.content(row.InputHash)
	if err != nil {
		return false
	}
	var value any
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.UseNumber()
	if dec.Decode(&value) != nil {
		return false
	}
	for _, key := range strings.Split(name, ".") {
		object, ok := value.(map[string]any)
		if !ok {
			return false
		}
		if value, ok = object[key]; !ok {
			return false
		}
	}
	list, isArray := value.([]any)
	if !isArray {
		list = []any{value}
	}
	return slices.ContainsFunc(list, func(v any) bool {
		var s string
		switch v := v.(type) {
		case string:
			s = v
		case json.Number:
			s = v.String()
		case bool:
			s = strconv.FormatBool(v)
		default:
			return false
		}
		ok, err := path.Match(pattern, s)
		return err == nil && ok
	})
}

// nearRow is a row that is not the answer.
type nearRow struct {
	row   *ledger.Row
	lacks []string
}

// nearRows are those that come nearest to the answer: of the named tool, where there are any.
type nearRows struct {
	tool   string // "": none is named
	ofTool bool   // there are rows of it
	list   []nearRow
}

func (n *nearRows) add(row *ledger.Row, lacks []string) {
	is := n.tool != "" && row.ToolName.String() == n.tool
	switch {
	case is && !n.ofTool:
		n.ofTool, n.list = true, nil
	case !is && n.ofTool:
		return
	}
	if n.list = append(n.list, nearRow{row, lacks}); len(n.list) >= 4*nearestRows {
		n.list = n.nearest()
	}
}

// nearest are those that lack least, newest first among equals.
func (n *nearRows) nearest() []nearRow {
	slices.SortStableFunc(n.list, func(x, y nearRow) int {
		if n := len(x.lacks) - len(y.lacks); n != 0 {
			return n
		}
		return int(y.row.Seq - x.row.Seq)
	})
	return n.list[:min(len(n.list), nearestRows)]
}

// printNearest lists them on stderr: stdout is for a receipt, and there is none. With --json they go to stdout.
func (a *app) printNearest(list []nearRow) error {
	if a.flags.json {
		for _, n := range list {
			if err := printJSON(a.stdout, map[string]any{"type": "nearest", "tool_call_id": n.row.ToolCallID.String(), "seq": n.row.Seq, "tool_name": n.row.ToolName.String(),
				"status": n.row.Status, "exit_code": n.row.ExitCode, "started_at": n.row.StartedAt, "lacks": n.lacks}); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		return nil
	}
	t := &table{columns: []column{{title: "call"}, {title: "tool"}, {title: "began"}, {title: "exit", right: true}, {title: "but", gives: true}}}
	for _, n := range list {
		t.text(n.row.ToolCallID.String(), n.row.ToolName.String(), n.row.StartedAt, exitText(n.row), strings.Join(n.lacks, "; "))
	}
	return t.print(a.stderr, screenOf(a.stderr, a.getenv))
}
