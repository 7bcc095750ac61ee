package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"toolrun/archive/claims"
	"toolrun/archive/ledger"
	"toolrun/archive/pairing"
	"toolrun/archive/redact"
	"toolrun/archive/trace"
)

// runWith is a run of a catalog of these tools, each with its schema.
func runWith(schemas map[string]string) *ranRun {
	var names []string
	definitions := map[string]string{}
	for name, schema := range schemas {
		names = append(names, name)
		definitions[name] = "definition of " + schema
	}
	slices.Sort(names)
	return &ranRun{
		id:     "r",
		header: &trace.Line{CatalogNames: names, CatalogSHA256: strings.Join(names, " ")},
		frozen: &frozen{schemas, definitions, func(name string) json.RawMessage {
			return json.RawMessage(fmt.Sprintf(`{"command":["x"],"schema":%q}`, schemas[name]))
		}},
	}
}

func rowOf(tool, outcome string) *ledger.Row {
	known := outcome != ledger.OutcomeUnknownTool
	return &ledger.Row{ToolCallID: redact.Plain("call of " + tool), ToolName: redact.Plain(tool), Known: known, Outcome: outcome, Status: ledger.Endings[outcome].Status}
}

// The table of README.md: what is seen, and what it comes from where the hashes differ and where they match.
func TestLikelyCauseIsThatOfTheTable(t *testing.T) {
	same := map[string]string{"go_test": "s1", "git_log": "s1"}
	names := map[string]string{"go_test": "s1", "git_log": "s1", "run_tests": "s1"}
	schema := map[string]string{"go_test": "s2", "git_log": "s1"}
	for _, c := range []struct {
		name    string
		other   map[string]string // nil: none
		change  func(*ranRun)
		symptom string
		hashes  string
		cause   string
		checked string
	}{
		{"a name of the other catalog", names, func(r *ranRun) { r.rows = []*ledger.Row{rowOf("run_tests", ledger.OutcomeUnknownTool)} }, "invented name", "differ", causeWrongCatalog, "the catalog of the other run has run_tests"},
		{"a name of no catalog", same, func(r *ranRun) { r.rows = []*ledger.Row{rowOf("run_tests", ledger.OutcomeUnknownTool)} }, "invented name", "match", causeInvented, "run_tests not in catalog_names"},
		{"a name that the client refused", same, func(r *ranRun) {
			r.pairing = []pairing.Item{{Kind: pairing.Invented, Tool: "run_tests", CallID: "toolu_1"}}
		}, "invented name", "match", causeInvented, "run_tests not in catalog_names"},
		{"nothing to compare with", nil, func(r *ranRun) { r.rows = []*ledger.Row{rowOf("run_tests", ledger.OutcomeUnknownTool)} }, "invented name", "unknown", causeUnknown, "run_tests not in catalog_names"},
		{"another schema", schema, func(r *ranRun) { r.rows = []*ledger.Row{rowOf("go_test", ledger.OutcomeInvalidArguments)} }, "same name, rejected arguments", "differ", causeDrift, "schema_sha256 of go_test"},
		{"another schema of another tool", schema, func(r *ranRun) { r.rows = []*ledger.Row{rowOf("git_log", ledger.OutcomeInvalidArguments)} }, "same name, rejected arguments", "match", causeArguments, "schema_sha256 of git_log"},
		{"a stray result", names, func(r *ranRun) { r.strays = []string{"x"} }, "result without a call", "differ", causeMixed, "index of tool_call_id"},
		{"a stray result", same, func(r *ranRun) { r.strays = []string{"x"} }, "result without a call", "match", causePairing, "index of tool_call_id"},
		{"a green summary", schema, func(r *ranRun) {
			r.rows = []*ledger.Row{rowOf("go_test", ledger.OutcomeExit)}
			r.claims = []claims.Claim{{Sentence: "All tests pass.", Mark: claims.Contradicted}}
		}, "green summary after a failed tool", "differ", causeRecovery, `"All tests pass." (contradicted)`},
		{"a green summary", same, func(r *ranRun) {
			r.rows, r.unused, r.ended = []*ledger.Row{rowOf("go_test", ledger.OutcomeExit)}, []string{"git_log"}, true
			r.claims = []claims.Claim{{Sentence: "All tests pass.", Mark: claims.Contradicted}}
		}, "green summary after a failed tool", "match", causePapered, "never called: git_log"},
		{"a tool that the other run does not have", map[string]string{"go_test": "s1"}, func(r *ranRun) { r.rows = []*ledger.Row{rowOf("git_log", ledger.OutcomeInvalidArguments)} }, "same name, rejected arguments", "unknown", causeNoSuchTool, "schema_sha256 of git_log"},
		{"a result of another run's call", same, func(r *ranRun) { r.strays, r.others = []string{"x"}, map[string]string{"x": "r9"} }, "result without a call", "match", causeMixed, "on the record in run r9"},
	} {
		run := runWith(same)
		c.change(run)
		x := comparison{run: run}
		if c.other != nil {
			x.other = runWith(c.other)
			x.changes = x.other.frozen.diff(run.frozen)
		}
		found := x.symptoms()
		if len(found) != 1 {
			t.Errorf("%s: %d symptoms: %+v", c.name, len(found), found)
			continue
		}
		if s := found[0]; s.Symptom != c.symptom || s.Hashes != c.hashes || s.Cause != c.cause || !strings.Contains(s.Checked, c.checked) {
			t.Errorf("%s: %+v", c.name, s)
		}
		if wantFields := c.cause == causeDrift; wantFields != (len(found[0].Fields) > 0) {
			t.Errorf("%s: fields %+v", c.name, found[0].Fields)
		}
	}
}

// What has several causes is as many symptoms.
func TestCallsOfDifferentCausesAreToldApart(t *testing.T) {
	run := runWith(map[string]string{"go_test": "s2", "git_log": "s1", "git_diff": "s1"})
	other := runWith(map[string]string{"go_test": "s1", "git_log": "s1", "run_tests": "s1"})
	run.rows = []*ledger.Row{
		rowOf("made_up", ledger.OutcomeUnknownTool), rowOf("run_tests", ledger.OutcomeUnknownTool),
		rowOf("git_diff", ledger.OutcomeInvalidArguments), rowOf("git_log", ledger.OutcomeInvalidArguments), rowOf("go_test", ledger.OutcomeInvalidArguments),
	}
	run.strays, run.others = []string{"nowhere", "there"}, map[string]string{"there": "r9"}
	var got []string
	for _, s := range (&comparison{run: run, other: other, changes: other.frozen.diff(run.frozen)}).symptoms() {
		got = append(got, strings.Join(append(s.Tools, s.CallIDs[len(s.CallIDs)-1], s.Hashes, s.Cause), "|"))
	}
	want := []string{
		"run_tests|call of run_tests|differ|" + causeWrongCatalog, "made_up|call of made_up|differ|" + causeWrongCatalog,
		"go_test|call of go_test|differ|" + causeDrift, "git_log|call of git_log|match|" + causeArguments, "git_diff|call of git_diff|unknown|" + causeNoSuchTool,
		"there|differ|" + causeMixed, "nowhere|differ|" + causeMixed,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestGoodRunHasNoSymptom(t *testing.T) {
	run := runWith(map[string]string{"go_test": "s1"})
	run.rows = []*ledger.Row{rowOf("go_test", ledger.OutcomeExit), rowOf("go_test", ledger.OutcomeOK)}
	run.claims = []claims.Claim{{Sentence: "All tests pass.", Mark: claims.Supported}}
	x := comparison{run: run, other: runWith(map[string]string{"go_test": "s1"})}
	if found := x.symptoms(); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

func TestSymptomsComeInTheOrderOfTheTable(t *testing.T) {
	run := runWith(map[string]string{"go_test": "s1"})
	run.rows = []*ledger.Row{rowOf("go_test", ledger.OutcomeInvalidArguments), rowOf("run_tests", ledger.OutcomeUnknownTool)}
	run.strays = []string{"x"}
	run.claims = []claims.Claim{{Sentence: "All tests pass.", Mark: claims.WithoutEvidence}}
	var order []string
	for _, s := range (&comparison{run: run}).symptoms() {
		order = append(order, s.Symptom)
	}
	want := []string{"invented name", "same name, rejected arguments", "result without a call", "green summary after a failed tool"}
	if !slices.Equal(order, want) {
		t.Error(order)
	}
}
