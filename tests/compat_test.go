package tests

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// people runs a python3 script over the data directory: a program of the kind that people already have for such ledgers.
// Where there is no python3 the same is done in Go by instead.
func people(t *testing.T, p *place, script string, instead func() string) string {
	t.Helper()
	python, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		return instead()
	}
	cmd := exec.Command(python, "-c", script, p.data)
	cmd.Env = p.env
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("python3: %v\n%s", err, out)
	}
	return string(out)
}

func oldLedger(t *testing.T) *place {
	t.Helper()
	p := newPlace(t, shTool)
	s := p.serve()
	for _, script := range []string{"echo hi", "exit 3", "kill -9 $$", `printf 'a\342\200\250b\302\205c\n'`} {
		s.call("sh", sh(script))
	}
	s.call("sh", sh("echo 'a\u2028b\u2029c\u0085d'"))
	s.call("sh", object{"scrip\u2028t": 1})
	s.answer(s.begin("run_tests", object{"x": "line\u2028separator\u0085"}), patience)
	s.answer(s.begin("run\u2028tests\u0085", object{}), patience)
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sh","arguments":{"script":"echo dup"},"_meta":{"toolrun/tool_call_id":"same"}}}`)
	s.answer(1, patience)
	s.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"sh","arguments":{"script":"echo dup"},"_meta":{"toolrun/tool_call_id":"same"}}}`)
	s.answer(2, patience)
	s.stdin.Close()
	s.wait(patience)
	return p
}

func TestLedgerLoadsIntoTablesThatPeopleHave(t *testing.T) {
	t.Parallel()
	p := oldLedger(t)
	const script = `
import json, sqlite3, sys
db = sqlite3.connect(":memory:")
cols = None
for line in open(sys.argv[1] + "/ledger.jsonl", encoding="utf-8"):
    r = json.loads(line)
    k = list(r)[:24]
    if cols is None:
        cols = k
        db.execute("create table t (%s, primary key (tool_call_id))" % ", ".join(cols))
    assert k == cols, k
    print("%d %d %d" % (r["turn"], r["duration_ms"], r["output_bytes"]), file=sys.stderr)
    assert 0 <= int(r["started_at"][11:13]) < 24
    db.execute("insert or replace into t values (%s)" % ",".join("?" * 24), [r[c] for c in cols])
print(db.execute("select count(*) from t").fetchone()[0])`
	want := len(p.rows())
	got := people(t, p, script, func() string {
		ids := map[string]bool{}
		for _, r := range p.rows() {
			order, _, err := keys(r.raw)
			if hour, hourErr := strconv.Atoi(r.StartedAt[11:13]); err != nil || len(order) < 24 || hourErr != nil || hour > 23 {
				t.Errorf("%v %s", err, r.raw)
			}
			ids[r.ToolCallID] = true
		}
		return fmt.Sprintln(len(ids))
	})
	if got != fmt.Sprintln(want) || want != 10 {
		t.Errorf("%q rows in the table, %d in the ledger", got, want)
	}
}

// splitlines is Python's str.splitlines.
func splitlines(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool {
		return strings.ContainsRune("\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029", r)
	})
}

func TestTraceSurvivesSplitlines(t *testing.T) {
	t.Parallel()
	p := oldLedger(t)
	const script = `
import json, sys, glob
for f in glob.glob(sys.argv[1] + "/runs/*.jsonl"):
    calls, results = set(), set()
    for line in open(f, encoding="utf-8", newline="").read().splitlines():
        d = json.loads(line)
        if d["type"] == "tool_call": calls.add(d["tool_call_id"])
        if d["type"] == "tool_result": results.add(d["tool_call_id"])
    assert results <= calls
    print(len(calls), len(results))`
	got := people(t, p, script, func() string {
		files, _ := filepath.Glob(filepath.Join(p.data, "runs", "*.jsonl"))
		var calls, results []string
		for _, line := range splitlines(readFile(t, files[0])) {
			var l traceLine
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Errorf("%v in %q", err, line)
			}
			switch l.Type {
			case "tool_call":
				calls = append(calls, l.ToolCallID)
			case "tool_result":
				results = append(results, l.ToolCallID)
				if !slices.Contains(calls, l.ToolCallID) {
					t.Errorf("result without call: %q", line)
				}
			}
		}
		return fmt.Sprintln(len(calls), len(results))
	})
	if got != "10 10\n" {
		t.Errorf("calls and results: %q", got)
	}
	for _, f := range append(must(filepath.Glob(filepath.Join(p.data, "runs", "*.jsonl"))), filepath.Join(p.data, "ledger.jsonl")) {
		content, err := os.ReadFile(f)
		if err != nil || strings.ContainsAny(string(content), "\u0085\u2028\u2029") {
			t.Errorf("%s holds a line separator unescaped (%v)", f, err)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // a pattern that is wrong in the test itself
	}
	return v
}
