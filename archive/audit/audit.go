// Package audit checks a whole data directory: every row, every hash, every pair of trace lines.
package audit

import (
	"context"

	"toolrun/archive"
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
	RunUnreadable   = "RUN_UNREADABLE" // a run's file cannot be read or has no first line
	NoCall          = "NO_TOOL_CALL"   // a row without its tool_call line in the file of its run
	NoRow           = "NO_ROW"         // a tool_call, with or without result, and no row
	NoResult        = "NO_TOOL_RESULT" // a row without its tool_result line
	IDMismatch      = "ID_MISMATCH"    // a tool_result whose call was never issued
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
	Rows, Runs, Objects int
	ObjectBytes         int64
	Unreferenced        int // objects that no row and no trace names
	Findings            []Finding
}

// Progress is called from time to time with what was done so far of a step: "ledger", "runs", "objects".
type Progress func(step string, done, total int)

// Verify checks the directory to its end, whatever it finds. The error is of reading, or of ctx.
func Verify(ctx context.Context, d *archive.Dir, progress Progress) (*Report, error) { return nil, nil }
