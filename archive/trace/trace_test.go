package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
)

var (
	now     = func() time.Time { return time.Date(2026, 11, 30, 18, 5, 12, 123456789, time.UTC) }
	anyHash = strings.Repeat("ab", 32)
)

func text(s string) *redact.Text { t := redact.Plain(s); return &t }

func value(t *testing.T, s string) (j redact.JSON) {
	t.Helper()
	if err := j.UnmarshalJSON([]byte(s)); err != nil {
		t.Fatal(err)
	}
	return j
}

func create(t *testing.T) *Run {
	t.Helper()
	r, err := Create(filepath.Join(t.TempDir(), "r.jsonl"), Header{
		RunID: "r", StartedAt: now(), CatalogNames: []string{"a", "b"}, CatalogSHA256: anyHash, SchemaSHA256: map[string]string{"b": anyHash, "a": anyHash},
		DefinitionSHA256: map[string]string{}, CatalogDefinitionSHA256: anyHash, Role: text("dev"), Version: "1", Host: "h", PID: 7,
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func row(id string) *ledger.Row {
	code := 1
	return &ledger.Row{
		ToolCallID: redact.Plain(id), ToolName: redact.Plain("a"), SessionID: redact.Plain("s"), SessionFrom: "meta", InputHash: anyHash, CatalogSHA256: anyHash,
		SchemaSHA256: ledger.OrNull(anyHash), Known: true, Flags: []string{"REDACTED"}, Attempt: 1, ExitCode: &code, OutputBytes: 5,
	}
}

func TestEveryLineHasItsKeysInOrder(t *testing.T) {
	r := create(t)
	unknown := row("x")
	unknown.Known, unknown.SchemaSHA256, unknown.ExitCode, unknown.Flags = false, "", nil, nil
	full := row("y")
	full.Attempt, full.Turn, full.RiskClass, full.Client, full.InputTokens = 2, 3, "READ", text("c/1"), new(int64(9))
	for _, err := range []error{
		r.Session(Session{SessionID: redact.Plain("s"), Client: text("c/1"), Protocol: "2025-11-25"}),
		r.Session(Session{SessionID: redact.Plain("t")}),
		r.ToolCall(Call{Row: row("1"), Arguments: value(t, `{"n":9007199254740993}`)}),
		r.ToolCall(Call{Row: unknown, At: now().Add(time.Hour)}),
		r.ToolCall(Call{Row: full, Arguments: value(t, `{}`)}),
		r.ToolResult(Result{Row: row("1"), Head: redact.Plain(strings.Repeat("é", 300))}),
		r.ToolResult(Result{Row: unknown}),
		r.RejectedLine(-32700, 12, anyHash),
		r.Unused([]string{"b"}),
		r.Unused(nil),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const ts = `"ts":"2026-11-30T18:05:12.123Z"`
	want := []string{
		`{"type":"catalog","run_id":"r","started_at":"2026-11-30T18:05:12.123Z","catalog_names":["a","b"],"catalog_sha256":"H","schema_sha256":{"a":"H","b":"H"},"definition_sha256":{},"catalog_definition_sha256":"H","role":"dev","toolrun_version":"1","host":"h","pid":7}`,
		`{"type":"session","run_id":"r",` + ts + `,"session_id":"s","client":"c/1","protocol":"2025-11-25","role":"dev"}`,
		`{"type":"session","run_id":"r",` + ts + `,"session_id":"t","client":null,"protocol":null,"role":"dev"}`,
		`{"type":"tool_call","run_id":"r",` + ts + `,"catalog_sha256":"H","tool_call_id":"1","name":"a","known":true,"schema_sha256":"H","args_sha256":"H","arguments":{"n":9007199254740993},"flags":["REDACTED"],"session_id":"s","session_from":"meta"}`,
		`{"type":"tool_call","run_id":"r","ts":"2026-11-30T19:05:12.123Z","catalog_sha256":"H","tool_call_id":"x","name":"a","known":false,"schema_sha256":null,"args_sha256":"H","arguments":null,"flags":[],"session_id":"s","session_from":"meta"}`,
		`{"type":"tool_call","run_id":"r",` + ts + `,"catalog_sha256":"H","tool_call_id":"y","name":"a","known":true,"schema_sha256":"H","args_sha256":"H","arguments":{},"flags":["REDACTED"],"session_id":"s","session_from":"meta","turn":3,"attempt":2,"risk_class":"READ","input_tokens":9,"client":"c/1"}`,
		`{"type":"tool_result","run_id":"r",` + ts + `,"tool_call_id":"1","name":"a","exit_code":1,"output_bytes":5,"output_head":"` + strings.Repeat("é", 240) + `","flags":["REDACTED"]}`,
		`{"type":"tool_result","run_id":"r",` + ts + `,"tool_call_id":"x","name":"a","exit_code":null,"output_bytes":5,"output_head":"","flags":[]}`,
		`{"type":"rejected_line","run_id":"r",` + ts + `,"code":-32700,"bytes":12,"sha256":"H"}`,
		`{"type":"catalog_unused","run_id":"r","unused_names":["b"],"flags":["UNUSED_TOOL"]}`,
		`{"type":"catalog_unused","run_id":"r","unused_names":[],"flags":[]}`,
	}
	b, _ := os.ReadFile(r.Path())
	got := strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(b), anyHash, "H"), "\n"), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d lines", len(got))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("line %d:\n%s\nwant\n%s", i+1, got[i], want[i])
		}
	}
}

func TestLinesAreReadBackAsTheyWereWritten(t *testing.T) {
	r := create(t)
	full := row("1")
	full.Attempt, full.Turn, full.RiskClass, full.ApprovalStatus, full.DefinitionSHA256, full.Redactions, full.Payloads = 2, 3, "SEND", "autonomous", ledger.OrNull(anyHash), 4, "hash"
	full.ClientCallID, full.ParentCallID, full.Model, full.Provider, full.Role, full.Client = text("c"), text("p"), text("m"), text("pr"), text("ro"), text("cl")
	full.ApprovedBy = value(t, `{"via":"call"}`)
	full.InputTokens, full.OutputTokens, full.TraceID, full.SpanID = new(int64(1)), new(int64(2)), "tr", "sp"
	if err := r.ToolCall(Call{Row: full, Arguments: value(t, `{"a":1}`), Held: true}); err != nil {
		t.Fatal(err)
	}
	for line, err := range Lines(r.Path()) {
		if err != nil {
			t.Fatal(err)
		}
		if line.Type != TypeToolCall {
			continue
		}
		got := ledger.Row{
			ToolCallID: line.CallID, ToolName: line.Name, SessionID: line.SessionID, SessionFrom: line.SessionFrom, InputHash: line.ArgsSHA256, CatalogSHA256: line.CatalogSHA256,
			Known: line.Known, Flags: line.Flags, Attempt: line.Attempt, Turn: line.Turn, RiskClass: line.RiskClass, ApprovalStatus: line.ApprovalStatus, ApprovedBy: line.ApprovedBy, Redactions: line.Redactions, Payloads: line.Payloads,
			ClientCallID: line.ClientCallID, ParentCallID: line.ParentCallID, Model: line.Model, Provider: line.Provider, Role: line.Role, Client: line.Client,
			InputTokens: line.InputTokens, OutputTokens: line.OutputTokens, TraceID: line.TraceID, SpanID: line.SpanID, ExitCode: full.ExitCode, OutputBytes: 5,
		}
		if err := errors.Join(json.Unmarshal(line.SchemaSHA256, &got.SchemaSHA256), json.Unmarshal(line.DefinitionSHA256, &got.DefinitionSHA256)); err != nil {
			t.Error(err)
		}
		if a, b := string(got.Append(nil)), string(full.Append(nil)); a != b {
			t.Errorf("\n%s\n%s", a, b)
		}
	}
}

func TestLongArgumentsStandAsTheirHash(t *testing.T) {
	r := create(t)
	if err := r.ToolCall(Call{Row: row("1"), Arguments: value(t, `"`+strings.Repeat("x", maxArgumentsBytes)+`"`)}); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(r.Path())
	if !strings.Contains(string(b), `"arguments":{"sha256":"`+anyHash+`"},`) || len(b) > 4096 {
		t.Errorf("%.300s", b)
	}
}

// A line stays readable for parsers that recurse: jq 1.6 takes 256 levels.
func TestDeepArgumentsStandAsTheirHash(t *testing.T) {
	nested := func(depth int) string {
		return strings.Repeat(`{"[{":[`, depth/2) + `"\\\"]["` + strings.Repeat(`]}`, depth/2)
	}
	for depth, whole := range map[int]bool{maxArgumentsDepth: true, maxArgumentsDepth + 2: false, 9000: false} {
		r := create(t)
		if err := r.ToolCall(Call{Row: row("1"), Arguments: value(t, nested(depth))}); err != nil {
			t.Fatal(err)
		}
		for line, err := range Lines(r.Path()) {
			if err != nil {
				t.Fatal(err)
			}
			if want := `{"sha256":"` + anyHash + `"}`; line.Type == TypeToolCall && (line.Arguments.String() == want) == whole {
				t.Errorf("%d levels: %.200s", depth, line.Arguments)
			}
		}
	}
}

// Python's str.splitlines() breaks at ten characters, and every trace must come out of it line by line.
func TestSplitlinesSeesEachLineWhole(t *testing.T) {
	r := create(t)
	all := "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029\x7f"
	c := row("id" + all)
	c.ToolName, c.Client, c.SessionID = redact.Plain(all), text(all), redact.Plain(all)
	for _, err := range []error{
		r.Session(Session{SessionID: redact.Plain(all), Client: text(all), Protocol: all}),
		r.ToolCall(Call{Row: c, Arguments: value(t, `{"k`+"\u2028"+`":"`+"\u0085\u2029"+`"}`)}),
		r.ToolResult(Result{Row: c, Head: redact.Plain(all)}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	b, _ := os.ReadFile(r.Path())
	lines := strings.FieldsFunc(string(b), func(r rune) bool { return strings.ContainsRune("\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029", r) })
	if len(lines) != 4 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, line := range lines {
		var v struct {
			ID string `json:"tool_call_id"`
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil || v.ID != "" && v.ID != "id"+all {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestFailedLineLeavesNothingAndIsNoOpenCall(t *testing.T) {
	r := create(t)
	saved := jsonl.Calls
	defer func() { jsonl.Calls = saved }()
	jsonl.Calls.Write = func(fd int, p []byte) (int, error) { return saved.Write(fd, p[:len(p)/2]) }
	jsonl.Calls.Truncate = func(int, int64) error { return errors.New("not even that") }
	if err := r.ToolCall(Call{Row: row("1")}); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	if err := r.ToolCall(Call{Row: row("2")}); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	jsonl.Calls = saved
	if r.Open() != 0 {
		t.Errorf("%d open calls", r.Open())
	}
	if err := r.ToolCall(Call{Row: row("3")}); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(r.Path())
	if n := strings.Count(string(b), "\n"); n != 2 || !strings.Contains(string(b), `"tool_call_id":"3"`) {
		t.Errorf("%s", b)
	}
	if r.Open() != 1 || r.ToolResult(Result{Row: row("3")}) != nil || r.Open() != 0 {
		t.Error("the call is not the only open one")
	}
}

func TestCallsWriteAtOnce(t *testing.T) {
	r := create(t)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 50 {
				c := row(fmt.Sprint(i, ".", j))
				if err := errors.Join(r.ToolCall(Call{Row: c}), r.ToolResult(Result{Row: c})); err != nil {
					t.Error(err)
				}
				if j%10 == 0 {
					if err := r.Sync(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	n := map[string]int{}
	for line, err := range Lines(r.Path()) {
		if err != nil {
			t.Fatal(err)
		}
		n[line.Type]++
	}
	if n[TypeToolCall] != 800 || n[TypeToolResult] != 800 || r.Open() != 0 {
		t.Errorf("%v", n)
	}
}

func TestEndedRunTakesNothing(t *testing.T) {
	r := create(t)
	r.Close()
	if err := r.ToolCall(Call{Row: row("1")}); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	if err := errors.Join(r.Sync(), r.Close()); err != nil {
		t.Error(err)
	}
}

func TestDamagedTraceLinesAreNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	good := `{"type":"session","run_id":"r"}`
	text := strings.Join([]string{good, "", "\x00\x00", "{", `{"type":"tool_call","run_id":"r"}`, `{"Type":"x","run_id":"r"}`, good + "\r", `{"type":"later","run_id":"r","x":1}`, `{"type":"se`}, "\n")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line, err := range Lines(path) {
		var damage *ledger.Damage
		switch {
		case errors.As(err, &damage):
			got = append(got, fmt.Sprint("!", damage.Line))
		case err != nil:
			t.Fatal(err)
		default:
			got = append(got, fmt.Sprint(line.No))
		}
	}
	if fmt.Sprint(got) != "[1 !2 !3 !4 !5 !6 7 8 !9]" {
		t.Error(got)
	}
}

func BenchmarkToolCall(b *testing.B) {
	r, err := Create(filepath.Join(b.TempDir(), "r.jsonl"), Header{RunID: "r"}, time.Now)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	c := Call{Row: row("1")}
	for b.Loop() {
		if err := r.ToolCall(c); err != nil {
			b.Fatal(err)
		}
	}
}
