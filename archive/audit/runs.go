package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
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
	sealed  bool // it is in a sealed month
	marked  bool // it had a marker before it was read
	gone    bool // its file is not there
	unread  bool // it could not be read to its end
	broken  bool // it could not be read or does not begin as a trace: its rows are not paired
	size    int64
	sha256  string // of the file, where it had no marker
	order   []string
	defines []string // hashes of the definitions that its catalog names
	calls   map[string]*trace.Line
	results map[string]*trace.Line
}

func (v *verifier) readRuns() error {
	folder := filepath.Join(v.d.Path(), ledger.RunsName)
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var ids []string
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok {
			v.find(Finding{Kind: RunUnreadable, File: filepath.Join(folder, e.Name()), Text: "not the name of a run's file"})
			continue
		}
		ids = append(ids, id)
	}
	type reading struct {
		*run
		findings []Finding
	}
	read := func(id string) (r reading) {
		r.run = v.readRun(id, func(f Finding) { r.findings = append(r.findings, f) })
		return r
	}
	for i, r := range inOrder(v.ctx, ids, read) {
		for _, f := range r.findings {
			v.find(f)
		}
		if r.gone {
			v.gone = append(v.gone, ids[i])
			continue
		}
		v.runs[ids[i]] = r.run
		v.report.Runs++
		v.report.Bytes += r.size
		if r.live {
			v.report.LiveRuns++
		}
		for call, line := range r.calls {
			if line.Payloads == "" {
				v.names(call, line.ArgsSHA256)
			}
		}
		v.defines(r.defines)
		if i%100 == 0 {
			v.Progress("runs", i, len(entries))
		}
	}
	v.Progress("runs", len(entries), len(entries))
	return v.ctx.Err()
}

func newRun(path string) *run {
	return &run{path: path, calls: map[string]*trace.Line{}, results: map[string]*trace.Line{}}
}

// readRun reads a run's file and tells find what is wrong with it by itself. One that is not there is gone.
func (v *verifier) readRun(id string, find func(Finding)) *run {
	r := newRun(v.d.RunPath(id))
	r.marked = v.d.Marked(id)
	r.live = r.marked && v.d.Live(id)
	f, err := os.Open(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		r.gone = true
		return r
	}
	if err != nil {
		r.unreadable(err, find)
		return r
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		r.unreadable(err, find)
		return r
	}
	r.size = info.Size()
	v.parseRun(r, id, io.NewSectionReader(f, 0, r.size), find)
	return r
}

func (r *run) unreadable(err error, find func(Finding)) {
	find(Finding{Kind: RunUnreadable, File: r.path, Text: err.Error()})
	r.broken, r.unread = true, true
}

// parseRun reads the lines of a trace.
func (v *verifier) parseRun(r *run, id string, from io.Reader, find func(Finding)) {
	sum := sha256.New()
	if !r.marked {
		from = io.TeeReader(from, sum)
	}
	first := true
	for line, err := range trace.LinesFrom(r.path, from) {
		var damage *ledger.Damage
		switch {
		case errors.As(err, &damage):
			if !(r.live && errors.Is(err, trace.ErrTorn)) {
				find(Finding{Kind: DamagedLine, File: damage.File, Line: damage.Line, Text: damage.Err.Error()})
			}
		case err != nil:
			r.unreadable(err, find)
		case line.RunID != id:
			find(Finding{Kind: DamagedLine, File: r.path, Line: line.No, Text: fmt.Sprintf("run_id is %q", line.RunID)})
		case first && line.Type != trace.TypeCatalog:
			find(Finding{Kind: RunUnreadable, File: r.path, Line: line.No, Text: fmt.Sprintf("the first line is of type %q, not %q", line.Type, trace.TypeCatalog)})
			fallthrough
		default:
			if line.Type == trace.TypeCatalog {
				r.defines = hashesOf(line)
			}
			if line.Type == trace.TypeToolCall && argumentsDiffer(line) {
				find(Finding{Kind: RowDiffers, File: r.path, Line: line.No, CallIDs: []string{line.CallID.String()}, Text: "arguments and args_sha256 do not agree"})
			}
			if r.add(line) {
				find(Finding{Kind: DuplicateCallID, File: r.path, Line: line.No, CallIDs: []string{line.CallID.String()}, Text: "a second " + line.Type + " with this id"})
			}
		}
		first = false
	}
	if first && !r.marked { // else a run that is just beginning, or that died then
		find(Finding{Kind: RunUnreadable, File: r.path, Text: "the file has no lines"})
		r.broken = true
	}
	r.sha256 = hex.EncodeToString(sum.Sum(nil))
}

// add notes the line of a call and tells whether the call has one of its type already.
func (r *run) add(line *trace.Line) (again bool) {
	id, of := line.CallID.String(), r.calls
	switch line.Type {
	case trace.TypeToolCall:
	case trace.TypeToolResult:
		of = r.results
	case trace.TypeApproval:
		if call := r.calls[id]; call != nil {
			call.ApprovalStatus = line.ApprovalStatus
		}
		return false
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
	of[id] = &trace.Line{No: line.No, Name: line.Name, ArgsSHA256: line.ArgsSHA256, ExitCode: line.ExitCode, OutputBytes: line.OutputBytes, Payloads: line.Payloads, Held: line.Held}
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

// hashesOf are the definitions of a catalog line.
func hashesOf(line *trace.Line) []string {
	var byName map[string]string
	if json.Unmarshal(line.DefinitionSHA256, &byName) != nil {
		return nil
	}
	return slices.Collect(maps.Values(byName))
}

// defines notes that a catalog names objects. They are there to be compared, and where one could not be kept no row lacks it.
func (v *verifier) defines(hashes []string) {
	for _, hash := range hashes {
		if !isHash(hash) || v.objects[hash] != nil {
			continue
		}
		if _, err := os.Lstat(v.d.Store.Path(hash)); err == nil {
			v.check.add(hash)
			v.objects[hash] = []string{}
		}
	}
}
