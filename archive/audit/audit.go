// Package audit checks a whole data directory: every row, every hash, every pair of trace lines.
//
// It goes on to the end whatever it finds, and names each thing by file, line and call. It reads while others write: what
// a live run has not finished is no finding. What was signed is held against what is there: a change, a cut and a swap are
// found, and where somebody signed anew with the same key, they are found against a checkpoint that was kept elsewhere.
package audit

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"toolrun/archive"
	"toolrun/archive/evidence"
	"toolrun/archive/joins"
	"toolrun/archive/ledger"
	"toolrun/archive/month"
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

	RowEdited         = "ROW_EDITED"         // a line that is not what was signed in its place
	RowRemoved        = "ROW_REMOVED"        // a line that was signed is gone, and others behind it are there
	RowInserted       = "ROW_INSERTED"       // a line between others that was not signed
	RowMoved          = "ROW_MOVED"          // a line that was signed in another place
	LedgerCut         = "LEDGER_CUT"         // the last lines that were signed are gone
	LedgerChanged     = "LEDGER_CHANGED"     // some of these lines are not what was signed; it cannot be told which
	CheckpointBad     = "CHECKPOINT_BAD"     // a note of the file of checkpoints, or a checkpoint from elsewhere, that proves nothing
	CheckpointMissing = "CHECKPOINT_MISSING" // one that was kept elsewhere is not in the file of checkpoints
	KeyBad            = "KEY_BAD"            // the public key is missing, damaged or another
	NoCheckpoint      = "NO_CHECKPOINT"      // nothing was signed that should have been
	NotCovered        = "NOT_COVERED"        // rows of a run that has ended and that no checkpoint covers
	RunEdited         = "RUN_EDITED"         // the file of a run that has ended is not what was sealed
	RunUnsealed       = "RUN_UNSEALED"       // the file of a run that has ended has no seal

	MonthMissing  = "MONTH_MISSING"  // a sealed month is gone
	MonthBad      = "MONTH_BAD"      // a file of a sealed month is not what was sealed
	MonthUnsealed = "MONTH_UNSEALED" // a month whose seal was never signed

	// What is derived and can be made again: nothing is lost or forged.
	HashesWrong = "HASHES_WRONG"
	IDsWrong    = "IDS_WRONG"
	CutsWrong   = "CUTS_WRONG"
	IndexWrong  = "INDEX_WRONG"  // of a sealed month
	SealWrong   = "SEAL_WRONG"   // the copy that lies beside a manifest
	JoinDamaged = "JOIN_DAMAGED" // a line of joins.jsonl, which an audit learns again
)

// Derived tells whether the finding is of something that can be made again from the record itself.
func (f Finding) Derived() bool {
	return f.Kind == HashesWrong || f.Kind == IDsWrong || f.Kind == CutsWrong || f.Kind == IndexWrong || f.Kind == SealWrong || f.Kind == JoinDamaged
}

// Finding is one thing that is not as it should be.
type Finding struct {
	Kind    string   `json:"kind"`
	File    string   `json:"file,omitempty"` // relative to the data directory
	Line    int      `json:"line,omitempty"`
	Seq     *int64   `json:"seq,omitempty"` // of the row that stands there, or stood
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
	Bytes        int64     `json:"bytes"`        // all that was read and hashed
	Unreferenced int       `json:"unreferenced"` // objects that nothing names, as a call that a crash ended leaves them
	Months       int       `json:"months"`       // parts of sealed months
	Pruned       int       `json:"pruned"`       // rows of months that were pruned, of which only the leaves are there
	Checkpoints  int       `json:"checkpoints"`  // valid, of this directory
	Seals        int       `json:"seals"`
	Covered      int64     `json:"covered"`   // rows, by the longest checkpoint
	Uncovered    int       `json:"uncovered"` // rows of runs that have not ended or are not closed yet
	Findings     []Finding `json:"findings"`

	Good []month.Ref `json:"-"` // parts in which nothing was found
}

// Progress is told what was done so far of a step: "runs", "ledger", "objects". total is 0 where it is not known.
type Progress func(step string, done, total int)

// Options of [Verify]; the zero value is the directory by itself.
type Options struct {
	Progress Progress
	Key      *evidence.Key // that must have signed; nil: the one that lies in the directory
	Kept     []Kept        // checkpoints and seals that were kept elsewhere
}

// Verify checks the directory to its end, whatever it finds. The error is of reading at all, or of ctx.
func Verify(ctx context.Context, d *archive.Dir, o Options) (*Report, error) {
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	v := &verifier{
		Options: o, ctx: ctx, d: d,
		report: &Report{Findings: []Finding{}},
		later:  map[string]bool{},
		runs:   map[string]*run{}, rows: map[string]map[string]*rowRef{}, objects: map[string][]string{},
		months: map[month.Ref]*sealedMonth{}, sealed: map[string]bool{}, taken: map[month.Ref]bool{},
	}
	v.markers = d.Markers()
	v.check = newObjectCheck(ctx, d.Store)
	defer v.check.workers.Wait()
	defer v.check.end()
	// Traces first, rows after, traces again where they do not agree: a live run writes the row before the result. What was
	// signed is read between them: it covers no more rows than are read then, and seals all runs that had ended before.
	for _, step := range []func() error{
		v.readRuns, v.readMonths, v.readSigned, v.readLedger, v.checkMonths, v.pair, v.checkTree, v.checkCover, v.checkSeals, v.checkIDs, v.checkObjects, v.checkJoins,
	} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("verify %q: %w", d.Path(), err)
		}
	}
	v.report.Covered = min(v.signed.reach, int64(len(v.lines)))
	for ref, m := range v.months {
		if m.part != nil && !m.bad && !m.index {
			v.report.Good = append(v.report.Good, ref)
		}
	}
	return v.report, nil
}

type verifier struct {
	Options
	ctx     context.Context
	d       *archive.Dir
	report  *Report
	markers map[string]bool // runs that had a marker when it began
	later   map[string]bool // whether another run has one
	runs    map[string]*run
	signed  signed
	lines   []lineRef
	leaves  []evidence.Hash               // of the same lines
	newer   []int                         // lines that no checkpoint covers
	holes   int                           // lines that are no rows
	rows    map[string]map[string]*rowRef // by run and call
	objects map[string][]string           // calls that name an object
	check   *objectCheck
	lost    []string // calls without a row that should have one

	months map[month.Ref]*sealedMonth
	taken  map[month.Ref]bool // parts whose lines were taken out of the ledger
	sealed map[string]bool    // objects that sealed months hold
	gone   []string           // runs whose file went away while it was looked for
	pieces []piece            // where the lines are, in their order
	unread int                // lines of sealed months that cannot be read, or were pruned
}

// lineRef is a line of the ledger; call and run are empty where it is no row.
type lineRef struct {
	call, run string
	seq       int64
}

// marked tells whether the run has a marker, or had one when the verifier began: it has not ended, or nobody has closed
// it yet. A line that names no run is as if of any.
func (v *verifier) marked(run string) bool {
	if run == "" {
		return len(v.markers) > 0 || len(v.d.Markers()) > 0
	}
	if v.markers[run] {
		return true
	}
	marked, known := v.later[run] // a run that has no marker when its lines are read gets none any more
	if !known {
		marked = v.d.Marked(run)
		v.later[run] = marked
	}
	return marked
}

// rowRef is what pairing needs of a row.
type rowRef struct {
	file        string
	line        int
	name        string
	inputHash   string
	exitCode    *int
	outputBytes int64
	approved    bool
}

// relative is a name as findings have it.
func (v *verifier) relative(path string) string {
	if rel, err := filepath.Rel(v.d.Path(), path); err == nil && filepath.IsAbs(path) {
		return rel
	}
	return path
}

func (v *verifier) find(f Finding) {
	f.File = v.relative(f.File)
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

func (v *verifier) addRow(row *ledger.Row, id string, line *checkedLine) {
	if v.rows[row.RunID] == nil {
		v.rows[row.RunID] = map[string]*rowRef{}
	}
	v.rows[row.RunID][id] = &rowRef{line.File, line.No, row.ToolName.String(), row.InputHash, row.ExitCode, row.OutputBytes, row.ApprovalStatus == ledger.ApprovalApproved}
	if !line.sealed { // a month holds its own, and Check has asked for them
		v.names(id, row.Objects()...)
	}
}

// names notes that a call names objects.
func (v *verifier) names(id string, hashes ...string) {
	for _, hash := range hashes {
		if !isHash(hash) {
			continue
		}
		if v.objects[hash] == nil {
			v.check.add(hash)
		}
		v.objects[hash] = append(v.objects[hash], id)
	}
}

// checkJoins names the damaged lines of joins.jsonl. Nobody signed the others.
func (v *verifier) checkJoins() error {
	_, err := joins.Load(v.d.Path(), func(err error) {
		var bad *ledger.Damage
		if errors.As(err, &bad) {
			v.find(Finding{Kind: JoinDamaged, File: joins.FileName, Line: bad.Line, Text: bad.Err.Error() + ": to be cut out by hand; toolrun audit learns anew what it said"})
		}
	})
	return err
}
