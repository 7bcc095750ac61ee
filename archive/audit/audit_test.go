package audit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"toolrun/archive"
	"toolrun/archive/audit"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/archive/trace"
)

// place is a data directory with one run of 4 calls, which ended in order.
type place struct {
	t    *testing.T
	dir  string
	run  string
	rows []*ledger.Row
}

func newPlace(t *testing.T) *place {
	p := &place{t: t, dir: filepath.Join(t.TempDir(), "data")}
	d := p.open()
	defer d.Close()
	run := p.begin(d)
	p.run = run.ID()
	for i := range 4 {
		p.rows = append(p.rows, call(t, d, run, i+1))
	}
	if err := d.End(run, nil); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) open() *archive.Dir {
	d, err := archive.Open(p.dir, archive.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	return d
}

func (p *place) begin(d *archive.Dir) *trace.Run {
	run, err := d.Begin(trace.Header{StartedAt: time.Now()})
	if err != nil {
		p.t.Fatal(err)
	}
	return run
}

func call(t testing.TB, d *archive.Dir, run *trace.Run, n int) *ledger.Row {
	in, err1 := d.Store.Put(redact.Plain(fmt.Sprint("input ", n)))
	out, err2 := d.Store.Put(redact.Plain(fmt.Sprint("output ", n)))
	code := 0
	at := ledger.FormatTime(time.Now())
	row := &ledger.Row{
		ToolCallID: redact.Plain(fmt.Sprintf("%s-%d", run.ID()[:8], n)), SessionID: redact.Plain("s"), ToolName: redact.Plain("echo"), Status: "success", Outcome: "ok", Attempt: 1,
		StartedAt: at, EndedAt: at, InputHash: in, OutputHash: ledger.OrNull(out), OutputBytes: 8, RunID: run.ID(), ExitCode: &code,
	}
	if err := errors.Join(err1, err2, run.ToolCall(trace.Call{Row: row}), d.Commit(run, row), run.ToolResult(trace.Result{Row: row})); err != nil {
		t.Fatal(err)
	}
	return row
}

func (p *place) ledger() string { return filepath.Join(p.dir, ledger.FileName) }
func (p *place) trace() string  { return filepath.Join(p.dir, "runs", p.run+".jsonl") }

// edit changes the lines of a file.
func (p *place) edit(path string, change func(lines []string) []string) {
	p.t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Join(change(strings.SplitAfter(string(b), "\n")), "")), 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) replace(path string, line int, old, new string) {
	p.t.Helper()
	p.edit(path, func(lines []string) []string {
		if !strings.Contains(lines[line-1], old) {
			p.t.Fatalf("line %d lacks %s: %s", line, old, lines[line-1])
		}
		lines[line-1] = strings.Replace(lines[line-1], old, new, 1)
		return lines
	})
}

func (p *place) verify() *audit.Report {
	p.t.Helper()
	d, err := archive.Open(p.dir, archive.Options{ReadOnly: true})
	if err != nil {
		p.t.Fatal(err)
	}
	r, err := audit.Verify(p.t.Context(), d, audit.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

func drop(line int) func([]string) []string {
	return func(lines []string) []string { return slices.Delete(lines, line-1, line) }
}

func TestNothingIsFoundWhereAllIsWell(t *testing.T) {
	p := newPlace(t)
	r := p.verify()
	if len(r.Findings) > 0 || r.Rows != 4 || r.Runs != 1 || r.Objects != 8 || r.ObjectBytes != 4*7+4*8 || r.Unreferenced != 0 || r.LiveRuns != 0 {
		t.Errorf("%+v", r)
	}
}

// Each damage is found under its own name, in its place, with its call, and the rest is checked all the same.
func TestEveryDamageIsNamed(t *testing.T) {
	object := func(p *place, hash string) string { return filepath.Join(p.dir, "store", hash[:2], hash+".txt") }
	for name, c := range map[string]struct {
		damage func(*place)
		want   string // KIND file:line call, of each finding
	}{
		"an object is gone": {func(p *place) { os.Remove(object(p, p.rows[1].InputHash)) }, "OBJECT_MISSING store:0 2"},
		"one byte of an object is another": {func(p *place) {
			path := object(p, string(p.rows[2].OutputHash))
			b, _ := os.ReadFile(path)
			b[3] ^= 1
			os.WriteFile(path, b, 0o600)
		}, "OBJECT_CORRUPT store:0 3"},
		"an object is empty": {func(p *place) { os.Truncate(object(p, p.rows[0].InputHash), 0) }, "OBJECT_EMPTY store:0 1"},
		"a row is no JSON":   {func(p *place) { p.replace(p.ledger(), 2, "{", "") }, "DAMAGED_LINE ledger.jsonl:2, NO_ROW runs:4 2, ROW_EDITED ledger.jsonl:2"},
		"a row lacks a key":  {func(p *place) { p.replace(p.ledger(), 2, `"turn":0,`, "") }, "DAMAGED_LINE ledger.jsonl:2, NO_ROW runs:4 2, ROW_EDITED ledger.jsonl:2"},
		"a row's keys are turned": {func(p *place) {
			p.replace(p.ledger(), 2, `"turn":0,"tool_name":"echo",`, `"tool_name":"echo","turn":0,`)
		}, "DAMAGED_LINE ledger.jsonl:2, NO_ROW runs:4 2, ROW_EDITED ledger.jsonl:2"},
		"a row's value is no such value": {func(p *place) { p.replace(p.ledger(), 2, `"outcome":"ok"`, `"outcome":"exit"`) },
			"BAD_ROW ledger.jsonl:2 2, ROW_EDITED ledger.jsonl:2 2"},
		"a row's time is no time":   {func(p *place) { p.replace(p.ledger(), 2, `"duration_ms":0`, `"duration_ms":1`) }, "BAD_ROW ledger.jsonl:2 2, ROW_EDITED ledger.jsonl:2 2"},
		"a row's exit code is -1":   {func(p *place) { p.replace(p.ledger(), 3, `"exit_code":0`, `"exit_code":-1`) }, "BAD_ROW ledger.jsonl:3 3, ROW_DIFFERS runs:6 3, ROW_EDITED ledger.jsonl:3 3"},
		"a row's exit code changed": {func(p *place) { p.replace(p.ledger(), 3, `"exit_code":0`, `"exit_code":1`) }, "ROW_DIFFERS runs:6 3, ROW_EDITED ledger.jsonl:3 3"},
		"a row is gone":             {func(p *place) { p.edit(p.ledger(), drop(2)) }, "SEQ_GAP ledger.jsonl:2 3, NO_ROW runs:4 2, ROW_REMOVED ledger.jsonl:2"},
		"the last row is gone":      {func(p *place) { p.edit(p.ledger(), drop(4)) }, "NO_ROW runs:8 4, LEDGER_CUT ledger.jsonl:4 4"},
		"rows changed places": {func(p *place) {
			p.edit(p.ledger(), func(l []string) []string { l[1], l[2] = l[2], l[1]; return l })
		}, "SEQ_GAP ledger.jsonl:2 3, SEQ_GAP ledger.jsonl:3 2, SEQ_GAP ledger.jsonl:4 4, ROW_MOVED ledger.jsonl:2 3"},
		"a row stands twice": {func(p *place) { p.edit(p.ledger(), func(l []string) []string { return append(l[:4:4], l[3]) }) },
			"SEQ_GAP ledger.jsonl:5 4, DUPLICATE_CALL_ID ledger.jsonl:5 4, NOT_COVERED ledger.jsonl:5 4"},
		"an empty line":         {func(p *place) { p.edit(p.ledger(), func(l []string) []string { return slices.Insert(l, 2, "\n") }) }, "DAMAGED_LINE ledger.jsonl:3, ROW_INSERTED ledger.jsonl:3"},
		"the ledger is torn":    {func(p *place) { p.edit(p.ledger(), func(l []string) []string { return append(l, `{"seq"`) }) }, "DAMAGED_LINE ledger.jsonl:5"},
		"a tool_call is gone":   {func(p *place) { p.edit(p.trace(), drop(4)) }, "ID_MISMATCH runs:4 2, RUN_EDITED runs:0"},
		"a tool_result is gone": {func(p *place) { p.edit(p.trace(), drop(5)) }, "NO_TOOL_RESULT runs:4 2, RUN_EDITED runs:0"},
		"both are gone":         {func(p *place) { p.edit(p.trace(), drop(4)); p.edit(p.trace(), drop(4)) }, "NO_TOOL_CALL ledger.jsonl:2 2, RUN_EDITED runs:0"},
		"a call that was not":   {func(p *place) { p.replace(p.trace(), 5, `-2"`, `-9"`) }, "NO_TOOL_RESULT runs:4 2, ID_MISMATCH runs:5 9, RUN_EDITED runs:0"},
		"a tool_call stands twice": {func(p *place) { p.edit(p.trace(), func(l []string) []string { return slices.Insert(l, 4, l[3]) }) },
			"DUPLICATE_CALL_ID runs:5 2, RUN_EDITED runs:0"},
		"arguments of another call": {func(p *place) { p.replace(p.trace(), 4, p.rows[1].InputHash, p.rows[0].InputHash) }, "ROW_DIFFERS runs:4 2, RUN_EDITED runs:0"},
		"a trace line is damaged":   {func(p *place) { p.replace(p.trace(), 5, "{", "\xff") }, "DAMAGED_LINE runs:5, NO_TOOL_RESULT runs:4 2, RUN_EDITED runs:0"},
		"a trace line is of another run": {func(p *place) { p.replace(p.trace(), 5, p.run, "other") },
			"DAMAGED_LINE runs:5, NO_TOOL_RESULT runs:4 2, RUN_EDITED runs:0"},
		"a trace has no first line": {func(p *place) { p.edit(p.trace(), drop(1)) }, "RUN_UNREADABLE runs:1, RUN_EDITED runs:0"},
		"a trace is empty":          {func(p *place) { os.Truncate(p.trace(), 0) }, "RUN_UNREADABLE runs:0, RUN_EDITED runs:0"},
		"a trace is a folder":       {func(p *place) { os.Remove(p.trace()); os.Mkdir(p.trace(), 0o700) }, "RUN_UNREADABLE runs:0"},
		"a trace is gone":           {func(p *place) { os.Remove(p.trace()) }, "RUN_MISSING runs:0 1 2 3 4"},
		"a file that is no trace":   {func(p *place) { os.WriteFile(p.trace()+".swp", nil, 0o600) }, "RUN_UNREADABLE runs:0"},
		"a line of joins.jsonl":     {func(p *place) { os.WriteFile(filepath.Join(p.dir, "joins.jsonl"), []byte("none\n"), 0o600) }, "JOIN_DAMAGED joins.jsonl:1"},
		"a dead run is not closed": {func(p *place) {
			d := p.open()
			defer d.Close()
			run := p.begin(d)
			call(p.t, d, run, 5)
			row := *p.rows[0]
			row.ToolCallID = redact.Plain("open-6")
			if err := run.ToolCall(trace.Call{Row: &row}); err != nil {
				p.t.Fatal(err)
			}
			run.Close()
		}, "NO_ROW runs:4 6"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			c.damage(p)
			var got []string
			for _, f := range p.verify().Findings {
				calls := ""
				for _, id := range f.CallIDs {
					calls += " " + id[strings.LastIndex(id, "-")+1:]
				}
				file, _, _ := strings.Cut(f.File, "/")
				got = append(got, fmt.Sprintf("%s %s:%d%s", f.Kind, file, f.Line, calls))
				if f.Text == "" || filepath.IsAbs(f.File) {
					t.Errorf("%+v", f)
				}
			}
			if list := strings.Join(got, ", "); list != c.want {
				t.Errorf("found %s\nwant  %s", list, c.want)
			}
		})
	}
}

func TestOneBadObjectAmongFiftyIsTheOnlyOne(t *testing.T) {
	p := newPlace(t)
	d := p.open()
	run := p.begin(d)
	var rows []*ledger.Row
	for i := range 50 {
		rows = append(rows, call(t, d, run, 100+i))
	}
	d.End(run, nil)
	d.Close()
	bad := string(rows[17].OutputHash)
	path := filepath.Join(p.dir, "store", bad[:2], bad+".txt")
	if err := os.WriteFile(path, []byte("other 117"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := p.verify()
	if len(r.Findings) != 1 || r.Findings[0].Hash != bad || r.Findings[0].CallIDs[0] != rows[17].ToolCallID.String() || r.Findings[0].Kind != audit.ObjectCorrupt || r.Objects != 108 {
		t.Errorf("%+v", r)
	}
}

func TestObjectThatNothingNamesIsCounted(t *testing.T) {
	p := newPlace(t)
	d := p.open()
	if _, err := d.Store.Put(redact.Plain("orphan")); err != nil {
		t.Fatal(err)
	}
	d.Close()
	if r := p.verify(); r.Unreferenced != 1 || len(r.Findings) > 0 {
		t.Errorf("%+v", r)
	}
}

func TestRowsOfPayloadsHashNameNoObjects(t *testing.T) {
	p := newPlace(t)
	d := p.open()
	run := p.begin(d)
	row := *p.rows[0]
	row.ToolCallID, row.RunID, row.Payloads, row.Seq = redact.Plain("x"), run.ID(), "hash", -1
	if fresh, err := d.Ledger.Claim("x"); err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	row.InputHash, row.OutputHash = strings.Repeat("1", 64), ledger.OrNull(strings.Repeat("2", 64))
	if err := errors.Join(run.ToolCall(trace.Call{Row: &row}), d.Commit(run, &row), run.ToolResult(trace.Result{Row: &row}), d.End(run, nil), d.Close()); err != nil {
		t.Fatal(err)
	}
	if r := p.verify(); len(r.Findings) > 0 {
		t.Errorf("%+v", r)
	}
}

// A verifier beside runs that write finds nothing, however it meets them.
func TestRunsThatWriteMeanwhileAreNoFinding(t *testing.T) {
	p := newPlace(t)
	d := p.open()
	defer d.Close()
	stop := atomic.Bool{}
	done := make(chan int)
	for range 2 {
		go func() {
			n := 0
			for !stop.Load() {
				run := p.begin(d)
				for range 20 {
					n++
					call(t, d, run, n)
				}
				d.End(run, nil)
			}
			done <- n
		}()
	}
	for range 10 {
		for _, f := range p.verify().Findings {
			t.Errorf("%+v", f)
		}
	}
	stop.Store(true)
	if n := <-done + <-done; n < 40 {
		t.Errorf("only %d calls were made meanwhile", n)
	}
}

func TestVerifyTellsHowFarItIsAndCanBeStopped(t *testing.T) {
	p := newPlace(t)
	d, err := archive.Open(p.dir, archive.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	last := map[string]string{}
	if _, err := audit.Verify(ctx, d, audit.Options{Progress: func(step string, done, total int) { last[step] = fmt.Sprint(done, "/", total) }}); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(last) != "map[ledger:4/4 objects:8/8 runs:1/1]" {
		t.Error(last)
	}
	_, err = audit.Verify(ctx, d, audit.Options{Progress: func(step string, _, _ int) {
		if step == "ledger" {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func BenchmarkVerify(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "data")
	d, err := archive.Open(dir, archive.Options{})
	if err != nil {
		b.Fatal(err)
	}
	run, err := d.Begin(trace.Header{StartedAt: time.Now()})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 2000 {
		call(b, d, run, i)
	}
	if err := errors.Join(d.End(run, nil), d.Close()); err != nil {
		b.Fatal(err)
	}
	read, err := archive.Open(dir, archive.Options{ReadOnly: true})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if r, err := audit.Verify(b.Context(), read, audit.Options{}); err != nil || len(r.Findings) > 0 {
			b.Fatal(r, err)
		}
	}
}

// SCENARIOS 124: several changes at once, each named with its file, line, seq and call.
func TestRowsRemovedEditedAndSwappedAreEachNamed(t *testing.T) {
	p := newPlace(t)
	d := p.open()
	run := p.begin(d)
	for i := range 8 {
		call(t, d, run, i+1)
	}
	if err := errors.Join(d.End(run, nil), d.Close()); err != nil {
		t.Fatal(err)
	}
	p.edit(p.ledger(), func(l []string) []string {
		l[7] = strings.Replace(l[7], `"outcome":"ok","exit_code":0`, `"outcome":"ok","exit_code":7`, 1)
		l[8], l[9] = l[9], l[8]
		return slices.Delete(l, 6, 7)
	})
	var got []string
	for _, f := range p.verify().Findings {
		if strings.HasPrefix(f.Kind, "ROW_") && f.File == ledger.FileName {
			calls := ""
			for _, id := range f.CallIDs {
				calls += id[strings.LastIndex(id, "-"):]
			}
			got = append(got, fmt.Sprintf("%s line %d seq %d call %s", f.Kind, f.Line, *f.Seq, calls))
		}
	}
	if list := strings.Join(got, ", "); list != "ROW_MOVED line 8 seq 9 call -6, ROW_EDITED line 7 seq 7 call -4, ROW_REMOVED line 7 seq 6 call " {
		t.Error(list)
	}
}

// What JSONL escapes and canonical JSON does not is no difference between arguments and their hash.
func TestArgumentsAreHeldAgainstTheirHash(t *testing.T) {
	rules := redact.New(nil)
	for _, text := range []string{"\"\u2028 \u0085\"", `"\\u2028"`, "\"\\\\\u2029\"", `"plain"`} {
		p := newPlace(t)
		d := p.open()
		run := p.begin(d)
		args, err := rules.JSON([]byte(`{"a":` + text + `}`))
		if err != nil {
			t.Fatal(err)
		}
		row := *p.rows[0]
		row.ToolCallID, row.RunID, row.Seq = redact.Plain(run.ID()[:8]+"-1"), run.ID(), -1
		if row.InputHash, err = d.Store.Put(args); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(run.ToolCall(trace.Call{Row: &row, Arguments: args}), d.Commit(run, &row), run.ToolResult(trace.Result{Row: &row}), d.End(run, nil), d.Close()); err != nil {
			t.Fatal(err)
		}
		if r := p.verify(); len(r.Findings) > 0 {
			t.Errorf("%s: %+v", text, r.Findings)
		}
	}
}
