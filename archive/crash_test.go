package archive_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"toolrun/archive/audit"
	"toolrun/archive/held"
	"toolrun/archive/internal/breakpoint"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/archive/trace"
)

func durability(t testing.TB, dir, value string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte("durability = \""+value+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// hows leaves out what is all but the same: before a step is after the one before.
func hows() []string {
	if os.Getenv("TOOLRUN_SOAK") != "" {
		return []string{breakpoint.Before, breakpoint.Half, breakpoint.After}
	}
	return []string{breakpoint.Half, breakpoint.After}
}

// A process is killed before, in the middle of and after each step by which it writes, from Open to Close. The next
// process finds every acknowledged row, closes what is open, and nothing is left to be found.
func TestKilledAtAnyStepOfALife(t *testing.T) {
	for mode, hows := range map[string][]string{"checkpoint": hows(), "row": {breakpoint.After}} {
		for _, how := range hows {
			t.Run(mode+" "+how, func(t *testing.T) {
				t.Parallel()
				steps := 0
				for n := 1; ; n++ {
					dir := filepath.Join(t.TempDir(), "data")
					durability(t, dir, mode)
					cmd := child(t, dir, "life", fmt.Sprintf("%d %s", n, how))
					out, err := cmd.Output()
					if err == nil {
						break // there are no more steps
					}
					if !killed(err) {
						t.Fatal(err)
					}
					steps++
					aftermath(t, dir, string(out))
					if t.Failed() {
						t.Fatalf("killed at step %d", n)
					}
				}
				if steps < 15 {
					t.Errorf("only %d steps were seen", steps)
				}
			})
		}
	}
}

// aftermath lets a next process do its work and holds the record against what was acknowledged.
func aftermath(t *testing.T, dir, acknowledged string) {
	t.Helper()
	// Whoever looks before that finds nothing but what the next process will close and move aside.
	for _, f := range find(t, dir, "").Findings {
		switch f.Kind {
		case audit.NoRow, audit.NoResult, audit.DamagedLine, audit.CheckpointBad:
		default:
			t.Errorf("%+v", f)
		}
		for _, id := range f.CallIDs {
			if f.Kind == audit.NoRow && strings.Contains(acknowledged, id+"\n") {
				t.Errorf("%+v", f)
			}
		}
	}
	d := open(t, dir)
	n, err := d.Recover("next")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := d.Recover("next"); again != 0 || err != nil {
		t.Errorf("recovered twice: %d, %v", again, err)
	}
	run := begin(t, d)
	doCall(t, d, run, run.ID()[:8]+"-1")
	if err := d.End(run, nil); err != nil {
		t.Fatal(err)
	}
	rows := rowsOf(t, dir)
	checkHeld(t, dir, rows)
	for _, id := range strings.Fields(acknowledged) {
		if row := rows[id]; row == nil || row.Outcome != "ok" {
			t.Errorf("acknowledged row %s is %v", id, row)
		}
	}
	if n > 1 {
		t.Errorf("%d calls were open", n)
	}
	noMarkers(t, dir)
	verify(t, dir)
}

// checkHeld holds what the rows of held calls say against the approval lines.
func checkHeld(t *testing.T, dir string, rows map[string]*ledger.Row) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "runs", "*.jsonl"))
	for _, file := range files {
		waits := map[string]bool{}
		for line, err := range trace.Lines(file) {
			switch {
			case err != nil:
				t.Error(err)
			case line.Type == trace.TypeToolCall && line.Held:
				waits[line.CallID.String()] = true
			case line.Type == trace.TypeApproval:
				id := line.CallID.String()
				if row := rows[id]; !waits[id] || row == nil || row.ApprovalStatus != line.ApprovalStatus || string(row.ApprovedBy.Raw()) != string(line.By.Raw()) {
					t.Errorf("%s was answered, its row is %+v", id, row)
				}
				delete(waits, id)
			}
		}
		for id := range waits {
			if row := rows[id]; row == nil || row.Outcome != ledger.OutcomeInterrupted || row.ApprovalStatus != "" || !strings.Contains(row.ErrorMessage.String(), "nothing was started") {
				t.Errorf("%s was never answered, its row is %+v", id, row)
			}
		}
	}
}

func TestHeldCallsOfADeadRunEndAsTheyWereAnswered(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	cmd := child(t, dir, "asked", "")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var runID string
	if _, err := fmt.Fscan(out, &runID); err != nil {
		t.Fatal(err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if n, err := open(t, dir).Recover("next"); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	rows := rowsOf(t, dir)
	for i, want := range []string{"interrupted error  null null", "interrupted error approved by null", "declined blocked denied null by"} {
		row := rows[fmt.Sprintf("%s-%d", runID[:8], i+1)]
		by := func(j redact.JSON) string {
			if j.IsNull() {
				return "null"
			}
			return "by"
		}
		if got := strings.Join([]string{row.Outcome, row.Status, string(row.ApprovalStatus), by(row.ApprovedBy), by(row.DeclinedBy)}, " "); got != want {
			t.Errorf("call %d: %s, want %s", i+1, got, want)
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir, held.DirName)); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
	noMarkers(t, dir)
	verify(t, dir)
}

// deadRun leaves in dir a run that was killed with one call done, one with its row, one begun, and a torn line.
func deadRun(t *testing.T, dir string) (runID string) {
	t.Helper()
	cmd := child(t, dir, "hold", "")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 37)
	if n, err := out.Read(line); err != nil || n != 37 {
		t.Fatal(n, err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	runID = strings.TrimSpace(string(line))
	tear(t, filepath.Join(dir, "runs", runID+".jsonl"), `{"type":"tool_call","run_`)
	return runID
}

func tear(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

func checkClosed(t *testing.T, dir, runID string) {
	t.Helper()
	rows := rowsOf(t, dir)
	if len(rows) != 3 {
		t.Fatalf("%d rows", len(rows))
	}
	for i, want := range []string{"ok", "ok", "interrupted"} {
		if row := rows[fmt.Sprintf("%s-%d", runID[:8], i+1)]; row == nil || row.Outcome != want || (row.ClosedBy != "") != (i == 2) {
			t.Errorf("call %d: %v", i+1, row)
		}
	}
	noMarkers(t, dir)
	verify(t, dir)
}

func TestDeadRunIsClosed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	runID := deadRun(t, dir)
	size := int64(0)
	if info, err := os.Stat(filepath.Join(dir, "runs", runID+".jsonl")); err == nil {
		size = info.Size() - int64(len(`{"type":"tool_call","run_`))
	}
	d := open(t, dir)
	if n, err := d.Recover("closer"); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	checkClosed(t, dir, runID)
	row := rowsOf(t, dir)[runID[:8]+"-3"]
	got := string(row.Append(nil))
	for _, want := range []string{
		`"session_id":"s","turn":1,"tool_name":"echo","risk_class":"READ","status":"error","attempt":1,`, `"duration_ms":0,"input_summary":"{\"text\":\"` + runID[:8] + `-3\"}",`,
		`"output_summary":"","output_hash":null,"output_bytes":0,"error_type":"InterruptedError",`, `"flags":["CLOSED_LATER"]`, `"closed_by":"closer"`, `"exit_code":null`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	trace, _ := os.ReadFile(filepath.Join(dir, "runs", runID+".jsonl"))
	lines := strings.Split(strings.TrimSpace(string(trace)), "\n")
	for i, want := range map[int]string{len(lines) - 2: `"output_head":"output of ` + runID[:8] + `-2","flags":["CLOSED_LATER"],"closed_by":"closer"}`, len(lines) - 1: `"exit_code":null,"output_bytes":0,"output_head":"","flags":["CLOSED_LATER"],"closed_by":"closer"}`} {
		if !strings.HasSuffix(lines[i], want) {
			t.Errorf("line %d: %s", i+1, lines[i])
		}
	}
	if !strings.Contains(string(trace), `"ts":"`+row.StartedAt+`"`) {
		t.Errorf("started_at %s is not that of the tool_call line", row.StartedAt)
	}
	kept, _ := os.ReadFile(filepath.Join(dir, "ledger.damaged"))
	if !strings.Contains(string(kept), fmt.Sprintf(`{"file":"runs/%s.jsonl","offset":%d,"bytes":25,`, runID, size)) {
		t.Errorf("ledger.damaged: %s", kept)
	}
}

// The process that closes a dead run is itself killed at each step.
func TestKilledAtAnyStepOfARecovery(t *testing.T) {
	for _, how := range hows() {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			steps := 0
			for n := 1; ; n++ {
				dir := filepath.Join(t.TempDir(), "data")
				runID := deadRun(t, dir)
				tear(t, filepath.Join(dir, ledger.FileName), `{"seq":2,"to`)
				if err := child(t, dir, "recover", fmt.Sprintf("%d %s", n, how)).Run(); err == nil {
					break
				} else if !killed(err) {
					t.Fatal(err)
				}
				steps++
				if _, err := open(t, dir).Recover("next"); err != nil {
					t.Fatal(err)
				}
				if checkClosed(t, dir, runID); t.Failed() {
					t.Fatalf("killed at step %d", n)
				}
			}
			if steps < 10 {
				t.Errorf("only %d steps were seen", steps)
			}
		})
	}
}

func TestProcessesThatRecoverAtOnceCloseOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	runs := []string{deadRun(t, dir)}
	// Each new process would close the run before: hide their markers until all are dead.
	for range 3 {
		hide(t, dir, runs)
		runs = append(runs, deadRun(t, dir))
	}
	for _, id := range runs {
		if err := os.WriteFile(filepath.Join(dir, "live", id), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	outs := make([]bytes.Buffer, 4)
	for i := range outs {
		wg.Go(func() {
			cmd := child(t, dir, "recover", "")
			cmd.Stdout = &outs[i]
			if err := cmd.Run(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	n := 0
	for i := range outs {
		k := 0
		fmt.Sscan(outs[i].String(), &k)
		n += k
	}
	if n != 2*len(runs) {
		t.Errorf("%d calls were closed", n)
	}
	if rows := rowsOf(t, dir); len(rows) != 3*len(runs) {
		t.Errorf("%d rows", len(rows))
	}
	noMarkers(t, dir)
	verify(t, dir)
}

func TestRunThatCannotBeClosedKeepsNoOtherFromIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	runID := deadRun(t, dir)
	for _, name := range []string{"live/aaaa", "live/zzzz", "runs/zzzz.jsonl"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "runs", "aaaa.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	n, err := open(t, dir).Recover("next")
	if n != 2 || err == nil || !strings.Contains(err.Error(), "recover run aaaa: ") || strings.Contains(err.Error(), "zzzz") {
		t.Errorf("%d closed, %v", n, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "runs", "aaaa.jsonl")); err != nil {
		t.Fatal(err)
	}
	if n, err := open(t, dir).Recover("next"); n != 0 || err != nil {
		t.Errorf("%d closed, %v", n, err)
	}
	checkClosed(t, dir, runID)
}

func hide(t *testing.T, dir string, runs []string) {
	t.Helper()
	for _, id := range runs {
		os.Remove(filepath.Join(dir, "live", id))
	}
}

func TestLiveRunIsLeftAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	d := open(t, dir)
	run := begin(t, d)
	c, err := newCall(d, run, run.ID()[:8]+"-1")
	if err != nil || c.start() != nil {
		t.Fatal(err)
	}
	other := open(t, dir)
	if n, err := other.Recover("other"); n != 0 || err != nil {
		t.Error(n, err)
	}
	if n, err := d.Recover("itself"); n != 0 || err != nil {
		t.Error(n, err)
	}
	if r := verify(t, dir); r.LiveRuns != 1 {
		t.Errorf("%d live runs", r.LiveRuns)
	}
	if c.capture() != nil || c.commit() != nil || c.result() != nil {
		t.Error("the run is not its own any more")
	}
	if err := d.End(run, []string{"echo"}); err != nil {
		t.Error(err)
	}
	text, _ := os.ReadFile(run.Path())
	if !strings.HasSuffix(string(text), `{"type":"catalog_unused","run_id":"`+run.ID()+`","unused_names":["echo"],"flags":["UNUSED_TOOL"]}`+"\n") {
		t.Errorf("%s", text)
	}
	verify(t, dir)
}

func TestRunThatEndsWithOpenCallsClosesThem(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	d := open(t, dir)
	run := begin(t, d)
	c, err := newCall(d, run, run.ID()[:8]+"-1")
	if err != nil || c.start() != nil {
		t.Fatal(err)
	}
	if err := d.End(run, nil); err != nil {
		t.Error(err)
	}
	if row := rowsOf(t, dir)[run.ID()[:8]+"-1"]; row == nil || row.Outcome != "interrupted" || row.ClosedBy != run.ID() {
		t.Errorf("row %v", row)
	}
	noMarkers(t, dir)
	verify(t, dir)
}

func TestRefusalThatACrashLeftOpenIsARefusal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	d := open(t, dir)
	run := begin(t, d)
	c, err := newCall(d, run, run.ID()[:8]+"-1")
	if err != nil {
		t.Fatal(err)
	}
	c.row.Known, c.row.RiskClass, c.row.SchemaSHA256, c.row.Flags = false, "", "", []string{"UNKNOWN_TOOL"}
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
	run.Close() // and with it the flock, as a death does
	if n, err := open(t, dir).Recover("next"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	row := rowsOf(t, dir)[run.ID()[:8]+"-1"]
	if row.Status != "blocked" || row.Outcome != "unknown_tool" || row.ErrorType != "UnknownTool" || row.SchemaSHA256 != "" || fmt.Sprint(row.Flags) != "[UNKNOWN_TOOL CLOSED_LATER]" {
		t.Errorf("%s", row.Append(nil))
	}
	verify(t, dir)
}

func BenchmarkRecoverNothing(b *testing.B) {
	d := open(b, filepath.Join(b.TempDir(), "data"))
	run := begin(b, d)
	defer d.End(run, nil)
	for b.Loop() {
		if n, err := d.Recover("x"); n != 0 || err != nil {
			b.Fatal(n, err)
		}
	}
}
