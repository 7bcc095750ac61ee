package tests

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Catalogs of the runs that are compared.
const (
	testsTool = `
[tools.tests]
description = "Runs the tests."
command = ["ls", "--", "{path}"]
risk = "READ"
[tools.tests.params.path]
type = "string"
required = true
`
	logTool = `
[tools.git_log]
description = "Tells the history."
command = ["true"]
risk = "READ"
`
)

// The eight cells of README.md's table, each by runs of its own: what the run did, and what it is compared with.
func TestDiagnoseNamesTheCauseInEachCellOfItsTable(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	catalog := func(tools ...string) {
		p.writeCatalog("[catalog]\nname = \"tests\"\n" + strings.Join(tools, ""))
	}
	// run is one run under the catalog as it is, with these calls, each with an id of its client.
	run := func(calls ...[3]string) string {
		t.Helper()
		s := p.serve()
		for i, c := range calls {
			s.send(toJSON(object{"jsonrpc": "2.0", "id": i + 1, "method": "tools/call", "params": object{"name": c[1], "arguments": json.RawMessage(c[2]), "_meta": object{"toolrun/tool_call_id": c[0]}}}))
			s.answer(i+1, patience)
		}
		s.stdin.Close()
		s.wait(patience)
		rows := p.rows()
		return rows[len(rows)-1].RunID
	}
	call := func(id, tool, args string) [3]string { return [3]string{id, tool, args} }
	n := 0
	story := func(lines ...object) string {
		n++
		var text strings.Builder
		for _, l := range lines {
			text.WriteString(toJSON(l) + "\n")
		}
		return p.writeOutside(fmt.Sprint("story", n, ".jsonl"), text.String())
	}
	asked := func(id, tool, args string) object {
		return object{"role": "assistant", "tool_calls": []object{{"id": id, "type": "function", "function": object{"name": tool, "arguments": args}}}}
	}
	said := func(text string) object { return object{"role": "assistant", "content": text} }
	answered := func(id, text string) object { return object{"role": "tool", "tool_call_id": id, "content": text} }

	catalog(testsTool, logTool)
	good := run(call("a1", "tests", `{"path":"."}`), call("a2", "git_log", `{}`))
	invents := run(call("b1", "run_tests", `{}`))
	misfits := run(call("c1", "tests", `{"file":"."}`))
	fails := run(call("d1", "tests", `{"path":"nothing"}`))
	catalog(testsTool)
	lacks := run(call("e1", "git_log", `{}`))
	failsToo := run(call("f1", "tests", `{"path":"nothing"}`))
	catalog(strings.ReplaceAll(testsTool, "path", "file"), logTool)
	drifted := run(call("g1", "tests", `{"path":"."}`))

	mixed := func(id, result string) string {
		return story(asked(id, "tests", `{"path":"nothing"}`), answered(result, "OK: tests succeeded"), said("Done."))
	}
	green := func(id string) string {
		return story(asked(id, "tests", `{"path":"nothing"}`), said("All tests pass."))
	}
	for _, c := range []struct {
		run, against, transcript string
		symptom, hashes, cause   string
		more                     string
	}{
		{lacks, good, "", "invented name", "differ", "the wrong catalog was shipped", "the catalog of the other run has git_log"},
		{invents, good, "", "invented name", "match", "the model invented a tool", "run_tests not in catalog_names"},
		{drifted, good, "", "same name, rejected arguments", "differ", "the definition of the tool drifted", "tests."},
		{misfits, good, "", "same name, rejected arguments", "match", "argument validation", "schema_sha256 of tests"},
		{failsToo, good, mixed("f1", "nobody"), "result without a call", "differ", "files of different runs are mixed", "nobody"},
		{fails, good, mixed("d1", "nobody"), "result without a call", "match", "a pairing bug of the runtime", "nobody"},
		{fails, good, mixed("d1", "b1"), "result without a call", "match", "files of different runs are mixed", "on the record in run " + invents},
		{fails, good, mixed("d1", "d1#2"), "result without a call", "match", "a pairing bug of the runtime", "d1#2"},
		{failsToo, good, green("f1"), "green summary after a failed tool", "differ", "the recovery hid a catalog miss", `"All tests pass." (contradicted)`},
		{fails, good, green("d1"), "green summary after a failed tool", "match", "the answer papered over the error", `"All tests pass." (contradicted)`},
	} {
		args := []string{"diagnose", c.run, "--against", c.against}
		if c.transcript != "" {
			args = append(args, "--transcript", c.transcript)
		}
		got := p.query(args...)
		flat := strings.Join(strings.Fields(got.stdout), " ")
		if got.code != 3 || strings.Count(flat, "symptom ") != 1 || !strings.Contains(flat, "symptom "+c.symptom) || !strings.Contains(flat, "hashes "+c.hashes) || !strings.Contains(flat, "likely "+c.cause) || !strings.Contains(flat, c.more) {
			t.Errorf("%s, %s: status %d\n%s%s", c.symptom, c.hashes, got.code, got.stdout, got.stderr)
		}
		if first := strings.HasPrefix(got.stdout, "not comparable"); first != (c.hashes == "differ") {
			t.Errorf("%s, %s: drift comes first: %v\n%s", c.symptom, c.hashes, first, got.stdout)
		}
		var head struct{ Comparable bool }
		lines := strings.Split(p.query(append(args, "--json")...).stdout, "\n")
		if err := json.Unmarshal([]byte(lines[0]), &head); err != nil || head.Comparable != (c.hashes == "match") {
			t.Errorf("%v: %s", err, lines[0])
		}
	}
	// Without --against it is the run that began before; a good run has no symptom.
	if got := p.query("diagnose", invents); got.code != 3 || !strings.Contains(got.stdout, "against run "+good) {
		t.Errorf("the run before: status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got := p.query("diagnose", good, "--against", fails); got.code != 0 || !strings.Contains(got.stdout, "no symptom") {
		t.Errorf("a good run: status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

// A record may hold several projects, which have a tool of the same name: the run to compare with is the project's own.
func TestDiagnoseComparesWithARunOfTheSameProject(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	tool := func(name string) string { return strings.ReplaceAll(logTool, "git_log", name) }
	run := func(catalog string) string {
		p.writeCatalog(catalog)
		p.run("call", "nosuch")
		rows := p.rows()
		return rows[len(rows)-1].RunID
	}
	web := tool("pytest") + tool("npm_test") + tool("npm_build")
	other := run(tool("cargo"))
	first := run(web)
	api := run(tool("pytest") + tool("migrate") + tool("seed"))
	again := run(web + tool("lint"))
	third := run(tool("migrate") + tool("a") + tool("b"))
	for of, want := range map[string]string{again: first, api: first, first: other, third: api} {
		if got := p.query("diagnose", of); !strings.Contains(got.stdout, "against run "+want) {
			t.Errorf("status %d, want %s\n%s%s", got.code, want, got.stdout, got.stderr)
		}
	}
	// The id may be cut to what no other run begins with, and then the runs are named.
	unique := 1
	for _, id := range []string{other, api, again, third} {
		for strings.HasPrefix(id, first[:unique]) {
			unique++
		}
	}
	if got := p.query("diagnose", first[:unique]); got.code != 3 || !strings.Contains(got.stdout, "run "+first) {
		t.Errorf("%q: status %d\n%s%s", first[:unique], got.code, got.stdout, got.stderr)
	}
	if got := p.query("diagnose", ""); got.code == 0 || got.code == 3 {
		t.Errorf("no id: status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

func TestDiagnoseReadsSealedRuns(t *testing.T) {
	t.Parallel()
	p := barePlace(t, "")
	p.damaged = true
	h := newPast(p)
	first := h.run(pastCall{at: timeOf(t, "2025-01-02T10:00:00Z"), id: "a", out: "x"})
	second := h.run(pastCall{at: timeOf(t, "2025-01-03T10:00:00Z"), id: "b", out: "y"})
	p.query("sessions") // closes what the past left, which signs
	p.archived(0)
	got := p.query("diagnose", second)
	if got.code != 0 || !strings.Contains(got.stdout, "against run "+first) {
		t.Errorf("status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}
