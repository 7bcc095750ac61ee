package runner

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"toolrun/archive/ledger"
	"toolrun/archive/redact"
)

func TestTheTextHasItsVerdictAtBothEnds(t *testing.T) {
	message := redact.Plain("exit status 2: boom")
	code := 2
	r := Reply{
		Row: &ledger.Row{
			ToolName: redact.Plain("pytest"), Status: "error", Outcome: "exit", ExitCode: &code, ErrorMessage: &message, DurationMS: 1234,
			OutputBytes: 9000, StderrBytes: 5, OutputHash: "aa", StderrHash: "bb",
		},
		Stdout: Preview{Text: "head\n[toolrun: 8990 bytes left out]\ntail", LeftOut: 8990},
		Stderr: Preview{Text: "boom\n", Lossy: true},
	}
	want := `FAILED: pytest: exit status 2: boom (after 1.234s)
--- stdout, 9000 bytes, 8990 of them left out below; output_hash aa ---
head
[toolrun: 8990 bytes left out]
tail
--- stderr, 5 bytes, not all of it UTF-8 ---
boom
FAILED: pytest: exit status 2: boom (after 1.234s)`
	if got := r.Text(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if f := r.Facts(); !f.Truncated || !f.StderrLossy || f.StdoutLossy || f.Stdout != r.Stdout.Text {
		t.Errorf("facts: %+v", f)
	}
}

func TestASuccessWithoutOutputSaysSo(t *testing.T) {
	code := 0
	r := Reply{Row: &ledger.Row{ToolName: redact.Plain("true"), Status: "success", Outcome: "ok", ExitCode: &code, DurationMS: 3}}
	if got, want := r.Text(), "OK: true succeeded with exit code 0 in 3ms\n(no output)\nOK: true succeeded with exit code 0 in 3ms"; got != want || r.IsError() {
		t.Errorf("got %q", got)
	}
}

func TestFactsHaveTheContractsKeysInOrder(t *testing.T) {
	b, err := json.Marshal(Reply{Row: &ledger.Row{Status: "blocked", Outcome: "policy"}}.Facts())
	must(t, err)
	var keys []string
	d := json.NewDecoder(strings.NewReader(string(b)))
	_, err = d.Token()
	must(t, err)
	for d.More() {
		key, err := d.Token()
		must(t, err)
		keys = append(keys, key.(string))
		var v json.RawMessage
		must(t, d.Decode(&v))
		if key == "exit_code" || key == "signal" || key == "output_hash" || key == "stderr_hash" {
			if string(v) != "null" {
				t.Errorf("%s is %s, want null", key, v)
			}
		}
	}
	want := strings.Fields("status outcome exit_code signal stdout stderr stdout_bytes stderr_bytes truncated duration_ms output_hash stderr_hash tool_call_id run_id seq catalog_sha256")
	if !reflect.DeepEqual(keys, want) {
		t.Errorf("keys %v", keys)
	}
}

func TestLinesOfARefusalAreOne(t *testing.T) {
	r := Reply{Row: &ledger.Row{Status: "blocked"}, Message: "unknown tool: a\nb"}
	if got := r.Text(); strings.Contains(got, "\n") {
		t.Errorf("text %q", got)
	}
}

func TestARowThatMayNotLastIsAnErrorWithAllItsFacts(t *testing.T) {
	code := 0
	r := Reply{
		Row:    &ledger.Row{ToolName: redact.Plain("echo"), Status: "success", Outcome: "ok", ExitCode: &code, OutputBytes: 3, Seq: 7},
		Stdout: Preview{Text: "hi\n"},
		Err:    unavailable(errors.New("input/output error")),
	}
	want := "ERROR: ledger unavailable: input/output error"
	if got := r.Text(); got != want+"\n--- stdout, 3 bytes ---\nhi\n"+want || !r.IsError() {
		t.Errorf("text %q, is error %v", got, r.IsError())
	}
	if f := r.Facts(); f.Status != "success" || f.Message != want || *f.Seq != 7 || *f.ExitCode != 0 {
		t.Errorf("facts: %+v", f)
	}
}

func TestWithoutARowNothingIsSaidOfOne(t *testing.T) {
	b, err := json.Marshal(Reply{Err: ErrLedgerUnavailable}.Facts())
	must(t, err)
	if want := `"tool_call_id":null,"run_id":null,"seq":null,"catalog_sha256":null}`; !strings.HasSuffix(string(b), want) {
		t.Errorf("facts: %s", b)
	}
}
