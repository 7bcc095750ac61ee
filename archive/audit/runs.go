package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"toolrun/archive/ledger"
	"toolrun/archive/trace"
)

// run is what one reading of a run's file gave.
type run struct {
	path    string
	live    bool // somebody held the flock before it was read
	broken  bool // it could not be read or does not begin as a trace: its rows are not paired
	order   []string
	calls   map[string]*trace.Line
	results map[string]*trace.Line
}

func (v *verifier) readRuns() error {
	folder := filepath.Join(v.d.Path(), ledger.RunsName)
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for i, e := range entries {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		v.progress("runs", i, len(entries))
		id, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok {
			v.find(Finding{Kind: RunUnreadable, File: filepath.Join(folder, e.Name()), Text: "not the name of a run's file"})
			continue
		}
		r := v.readRun(id, v.find)
		v.runs[id] = r
		v.report.Runs++
		if r.live {
			v.report.LiveRuns++
		}
		for call, line := range r.calls {
			if line.Payloads == "" {
				v.names(call, line.ArgsSHA256)
			}
		}
	}
	v.progress("runs", len(entries), len(entries))
	return nil
}

// readRun reads a run's file and tells find what is wrong with it by itself.
func (v *verifier) readRun(id string, find func(Finding)) *run {
	r := &run{path: v.d.RunPath(id), calls: map[string]*trace.Line{}, results: map[string]*trace.Line{}}
	r.live = v.d.Live(id)
	first := true
	for line, err := range trace.Lines(r.path) {
		var damage *ledger.Damage
		switch {
		case errors.As(err, &damage):
			if !(r.live && errors.Is(err, trace.ErrTorn)) {
				find(Finding{Kind: DamagedLine, File: damage.File, Line: damage.Line, Text: damage.Err.Error()})
			}
		case err != nil:
			find(Finding{Kind: RunUnreadable, File: r.path, Text: err.Error()})
			r.broken = true
		case line.RunID != id:
			find(Finding{Kind: DamagedLine, File: r.path, Line: line.No, Text: fmt.Sprintf("run_id is %q", line.RunID)})
		case first && line.Type != trace.TypeCatalog:
			find(Finding{Kind: RunUnreadable, File: r.path, Line: line.No, Text: fmt.Sprintf("the first line is of type %q, not %q", line.Type, trace.TypeCatalog)})
			fallthrough
		default:
			if r.add(line) {
				find(Finding{Kind: DuplicateCallID, File: r.path, Line: line.No, CallIDs: []string{line.CallID.String()}, Text: "a second " + line.Type + " with this id"})
			}
		}
		first = false
	}
	if first && !r.live {
		find(Finding{Kind: RunUnreadable, File: r.path, Text: "the file has no lines"})
		r.broken = true
	}
	return r
}

// add notes the line of a call and tells whether the call has one of its type already.
func (r *run) add(line *trace.Line) (again bool) {
	id, of := line.CallID.String(), r.calls
	switch line.Type {
	case trace.TypeToolCall:
	case trace.TypeToolResult:
		of = r.results
	default:
		return false
	}
	if of[id] != nil {
		return true
	}
	if r.calls[id] == nil && r.results[id] == nil {
		r.order = append(r.order, id)
	}
	// Only what pairing needs: a run may have many calls, and arguments are long.
	of[id] = &trace.Line{No: line.No, Name: line.Name, ArgsSHA256: line.ArgsSHA256, ExitCode: line.ExitCode, OutputBytes: line.OutputBytes, Payloads: line.Payloads}
	return false
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
