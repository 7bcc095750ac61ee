// Package audit checks a whole data directory: every row, every hash, every pair of trace lines.
//
// It goes on to the end whatever it finds, and names each thing by file, line and call. It reads while others write: what
// a live run has not finished is no finding. It finds damage and carelessness; that somebody rewrote the ledger and all
// that agrees with it is not found by it.
package audit

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"toolrun/archive"
	"toolrun/archive/ledger"
)

// Kinds of a finding.
const (
	DamagedLine     = "DAMAGED_LINE"      // a line that is no row, or no line of a trace
	BadRow          = "BAD_ROW"           // a value that no row may have
	SeqGap          = "SEQ_GAP"           // seq does not go on by one
	DuplicateCallID = "DUPLICATE_CALL_ID" // two rows with one tool_call_id
	ObjectMissing   = "OBJECT_MISSING"
	ObjectEmpty     = "OBJECT_EMPTY" // zero bytes where there should be some: lost in a power failure
	ObjectCorrupt   = "OBJECT_CORRUPT"
	RunMissing      = "RUN_MISSING"    // rows name a run that has no file
	RunUnreadable   = "RUN_UNREADABLE" // a run's file cannot be read or does not begin as one
	NoCall          = "NO_TOOL_CALL"   // a row without its tool_call line in the file of its run
	NoRow           = "NO_ROW"         // a tool_call or a pair of lines without its row
	NoResult        = "NO_TOOL_RESULT" // a row without its tool_result line
	IDMismatch      = "ID_MISMATCH"    // a tool_result whose call was never issued
	RowDiffers      = "ROW_DIFFERS"    // the row and its trace lines do not say the same
)

// Finding is one thing that is not as it should be.
type Finding struct {
	Kind    string   `json:"kind"`
	File    string   `json:"file,omitempty"` // relative to the data directory
	Line    int      `json:"line,omitempty"`
	CallIDs []string `json:"tool_call_ids,omitempty"`
	Hash    string   `json:"hash,omitempty"`
	Text    string   `json:"text"`
}

// Report is what Verify looked at and found.
type Report struct {
	Rows         int       `json:"rows"`
	Runs         int       `json:"runs"`
	LiveRuns     int       `json:"live_runs"`
	Objects      int       `json:"objects"` // that are named
	ObjectBytes  int64     `json:"object_bytes"`
	Unreferenced int       `json:"unreferenced"` // objects that nothing names, as a call that a crash ended leaves them
	Findings     []Finding `json:"findings"`
}

// Progress is told what was done so far of a step: "runs", "ledger", "objects". total is 0 where it is not known.
type Progress func(step string, done, total int)

// Verify checks the directory to its end, whatever it finds. The error is of reading at all, or of ctx.
func Verify(ctx context.Context, d *archive.Dir, progress Progress) (*Report, error) {
	if progress == nil {
		progress = func(string, int, int) {}
	}
	v := &verifier{
		ctx: ctx, d: d, progress: progress,
		report: &Report{Findings: []Finding{}},
		runs:   map[string]*run{}, rows: map[string]map[string]*rowRef{}, objects: map[string][]string{},
	}
	// Traces first, rows after, traces again where they do not agree: a live run writes the row before the result.
	for _, step := range []func() error{v.readRuns, v.readLedger, v.pair, v.checkObjects} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("verify %q: %w", d.Path(), err)
		}
	}
	return v.report, nil
}

type verifier struct {
	ctx      context.Context
	d        *archive.Dir
	progress Progress
	report   *Report
	runs     map[string]*run
	rows     map[string]map[string]*rowRef // by run and call
	objects  map[string][]string           // calls that name an object
}

// rowRef is what pairing needs of a row.
type rowRef struct {
	line        int
	name        string
	inputHash   string
	exitCode    *int
	outputBytes int64
}

func (v *verifier) find(f Finding) {
	if rel, err := filepath.Rel(v.d.Path(), f.File); err == nil && filepath.IsAbs(f.File) {
		f.File = rel
	}
	v.report.Findings = append(v.report.Findings, f)
}

// damaged notes a line that cannot be read; any other error it gives back.
func (v *verifier) damaged(err error) error {
	var damage *ledger.Damage
	if !errors.As(err, &damage) {
		return err
	}
	v.find(Finding{Kind: DamagedLine, File: damage.File, Line: damage.Line, Text: damage.Err.Error()})
	return nil
}

func (v *verifier) readLedger() error {
	var (
		ids     = map[string]int{} // line of each tool_call_id
		next    = int64(0)
		damaged = int64(0) // lines since the last row, each of which may have been one
	)
	for line := range ledger.Lines(v.d.Path(), ledger.CheckLine) {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		if line.Err != nil {
			if err := v.damaged(line.Err); err != nil {
				return err
			}
			damaged++
			continue
		}
		row, id := line.Row, line.Row.ToolCallID.String()
		at := func(kind, text string) {
			v.find(Finding{Kind: kind, File: line.File, Line: line.No, CallIDs: []string{id}, Text: text})
		}
		if row.Seq < next || row.Seq > next+damaged {
			at(SeqGap, fmt.Sprintf("seq %d where %d was due", row.Seq, next))
		}
		next, damaged = row.Seq+1, 0
		if first, ok := ids[id]; ok {
			at(DuplicateCallID, fmt.Sprintf("tool_call_id %q stands in line %d too", id, first))
		}
		ids[id] = line.No
		if err := checkRow(row); err != nil {
			at(BadRow, err.Error())
		}
		v.addRow(row, id, line.No)
		if v.report.Rows++; v.report.Rows%1000 == 0 {
			v.progress("ledger", v.report.Rows, 0)
		}
	}
	v.progress("ledger", v.report.Rows, v.report.Rows)
	return nil
}

func (v *verifier) addRow(row *ledger.Row, id string, line int) {
	if v.rows[row.RunID] == nil {
		v.rows[row.RunID] = map[string]*rowRef{}
	}
	v.rows[row.RunID][id] = &rowRef{line, row.ToolName.String(), row.InputHash, row.ExitCode, row.OutputBytes}
	v.names(id, row.Objects()...)
}

// names notes that a call names objects.
func (v *verifier) names(id string, hashes ...string) {
	for _, hash := range hashes {
		if sha256Hex.MatchString(hash) {
			v.objects[hash] = append(v.objects[hash], id)
		}
	}
}
