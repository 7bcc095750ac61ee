package audit

import "fmt"

// readLedger checks every line by itself and in its order, and takes its leaf.
func (v *verifier) readLedger() error {
	var (
		ids     = map[string]int{} // line of each tool_call_id
		next    = int64(0)
		damaged = int64(0) // lines since the last row, each of which may have been one
	)
	for line := range v.checkedLines() {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		if line.unread != nil {
			damaged += line.unread.Lines
			if seq := line.unread.lastSeq; seq >= 0 {
				next, damaged = max(next, seq+1), 0
			}
			continue
		}
		if line.Err != nil {
			if err := v.damaged(line.Err); err != nil {
				return err
			}
			damaged++
			v.holes++
			if line.whole {
				v.lines, v.leaves = append(v.lines, lineRef{}), append(v.leaves, line.leaf)
			}
			continue
		}
		row, id := line.Row, line.Row.ToolCallID.String()
		at := func(kind, text string) {
			v.find(Finding{Kind: kind, File: line.File, Line: line.No, Seq: &row.Seq, CallIDs: []string{id}, Text: text})
		}
		if row.Seq < next || row.Seq > next+damaged {
			at(SeqGap, fmt.Sprintf("seq %d where %d was due", row.Seq, next))
		}
		next, damaged = row.Seq+1, 0
		if first, ok := ids[id]; ok {
			at(DuplicateCallID, fmt.Sprintf("tool_call_id %q stands in line %d too", id, first))
		}
		ids[id] = line.No
		if line.bad != nil {
			at(BadRow, line.bad.Error())
		}
		v.addRow(row, id, &line)
		v.lines, v.leaves = append(v.lines, lineRef{id, row.RunID, row.Seq}), append(v.leaves, line.leaf)
		if v.report.Rows++; v.report.Rows%1000 == 0 {
			v.Progress("ledger", v.report.Rows, 0)
		}
	}
	v.Progress("ledger", v.report.Rows, v.report.Rows)
	return nil
}
