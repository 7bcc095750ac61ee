package ledger

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"toolrun/archive/redact"
)

func ptr[T any](v T) *T { return &v }

// sample is a row with every field set.
func sample() *Row {
	text := func(s string) *redact.Text { t := redact.Plain(s); return &t }
	argv := redact.JSON{}
	if err := argv.UnmarshalJSON([]byte(`["go","test","./..."]`)); err != nil {
		panic(err)
	}
	by := redact.JSON{}
	if err := by.UnmarshalJSON([]byte(`{"via":"terminal","uid":0,"tty":"/dev/pts/3","pid":7,"exe":"/usr/bin/toolrun"}`)); err != nil {
		panic(err)
	}
	return &Row{
		ApprovedBy: by, DeclinedBy: by,
		ToolCallID: redact.Plain("toolu_01"), SessionID: redact.Plain("s-1"), Turn: 2, ToolName: redact.Plain("go_test"), RiskClass: "READ",
		Status: StatusError, Attempt: 1, StartedAt: "2026-11-30T18:05:12.123Z", EndedAt: "2026-11-30T18:05:12.579Z", DurationMS: 456,
		InputSummary: redact.Plain(`{"package":"./..."}`), InputHash: strings.Repeat("1", 64), OutputSummary: redact.Plain("FAIL"), OutputHash: OrNull(strings.Repeat("2", 64)), OutputBytes: 5,
		ErrorType: "ExitError", ErrorMessage: text("exit status 1: FAIL"), Model: text("m"), Provider: text("p"), InputTokens: ptr(int64(10)), OutputTokens: ptr(int64(20)),
		EstimatedCostUSD: ptr(0.000123), ParentCallID: text("parent"), ApprovalStatus: "autonomous",
		Seq: 7, RunID: "3f2a9c10-0000-4000-8000-000000000000", ClientCallID: text("toolu_01"), CatalogSHA256: strings.Repeat("3", 64), SchemaSHA256: OrNull(strings.Repeat("4", 64)), DefinitionSHA256: OrNull(strings.Repeat("5", 64)),
		Known: true, Flags: []string{"REDACTED"}, Outcome: "exit", ExitCode: ptr(1), Signal: "SIGKILL", StoredBytes: 5, StderrHash: OrNull(strings.Repeat("6", 64)), StderrBytes: 3, Truncated: true,
		Argv: argv, ExePath: text("/usr/bin/go"), ExeSHA256: OrNull(strings.Repeat("7", 64)), Cwd: text("."), User: "0:0", CPUMS: ptr(int64(1)), MemoryPeakBytes: ptr(int64(2)), OOMKills: ptr(int64(0)), PidsLimitHit: ptr(false), PidsPeak: ptr(int64(3)), ThrottledMS: ptr(int64(4)),
		Enforced: []string{"view"}, HoldMS: 3, Redactions: 1, RepeatOf: text("toolu_00"), Repeat: 1, Role: text("dev"), Client: text("c/1"), TraceID: "t", SpanID: "s", SessionFrom: "meta", Payloads: "hash", ClosedBy: "x",
		Connections: []Connection{{Host: redact.Plain("pypi.org"), Port: 443, Sent: 1, Received: 2, Allowed: true}, {Host: redact.Plain("evil.example\u2028"), Port: 80, Why: text("not in the list of hosts")}}, ConnectionsOmitted: 3,
	}
}

func TestEveryFieldIsWrittenAndReadBack(t *testing.T) {
	want := sample()
	v := reflect.ValueOf(want).Elem()
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("the sample does not set %s", v.Type().Field(i).Name)
		}
	}
	line := want.Append(nil)
	if !json.Valid(line) {
		t.Fatalf("not JSON: %s", line)
	}
	got, ok := parseFast(line)
	if !ok {
		t.Fatal("what Append writes is not read fast")
	}
	slow, ordered, err := parse(line)
	if err != nil || !ordered || !bytes.Equal(slow.Append(nil), line) {
		t.Fatal(err)
	}
	if again := got.Append(nil); !bytes.Equal(again, line) {
		t.Errorf("\n%s\n%s", line, again)
	}
	for i := range v.NumField() {
		if reflect.ValueOf(got).Elem().Field(i).IsZero() {
			t.Errorf("%s was not read", v.Type().Field(i).Name)
		}
	}
}

func TestContractKeysComeFirstAndNullWhereNotTold(t *testing.T) {
	line := (&Row{}).Append(nil)
	want := `{"tool_call_id":"","session_id":"","turn":0,"tool_name":"","risk_class":null,"status":"","attempt":0,"started_at":"","ended_at":"",` +
		`"duration_ms":0,"input_summary":"","input_hash":"","output_summary":"","output_hash":null,"output_bytes":0,"error_type":null,"error_message":null,` +
		`"model":null,"provider":null,"input_tokens":null,"output_tokens":null,"estimated_cost_usd":null,"parent_call_id":null,"approval_status":null,"seq":0,`
	if !strings.HasPrefix(string(line), want) {
		t.Errorf("%s", line)
	}
	if strings.Contains(string(line), "connections") || strings.Contains(string(line), "payloads") || strings.Contains(string(line), "closed_by") {
		t.Errorf("keys for special rows only: %s", line)
	}
	if n := slices.Index(Keys(), "seq"); n != requiredKeys {
		t.Errorf("seq is key %d", n)
	}
}

func TestCostIsWrittenInDigits(t *testing.T) {
	row := sample()
	for cost, want := range map[float64]string{0.000001: "0.000001", 12: "12", 1234567.5: "1234567.5", 0: "0"} {
		row.EstimatedCostUSD = &cost
		if line := string(row.Append(nil)); !strings.Contains(line, `"estimated_cost_usd":`+want+",") {
			t.Errorf("%v: %s", cost, line)
		}
	}
}

func TestBadLinesAreRefusedWithTheirReason(t *testing.T) {
	good := string(sample().Append(nil))
	for want, line := range map[string]string{
		"not valid JSON":               good[:len(good)-1],
		"more than one value":          good + good,
		"not a JSON object":            "[1]",
		"key tool_call_id is missing":  strings.Replace(good, `"tool_call_id"`, `"Tool_Call_Id"`, 1),
		"key turn: want an integer":    strings.Replace(good, `"turn":2`, `"turn":"2"`, 1),
		"integer of 64 bits":           strings.Replace(good, `"turn":2`, `"turn":2.5`, 1),
		"key status: want a string":    strings.Replace(good, `"status":"error"`, `"status":null`, 1),
		"duplicate":                    strings.Replace(good, `"turn":2`, `"turn":2,"turn":3`, 1),
		"UTF-8":                        strings.Replace(good, "go_test", "go\xff", 1),
		"key known: want true":         strings.Replace(good, `"known":true`, `"known":1`, 1),
		"key connections: want an arr": strings.Replace(good, `"connections":[`, `"connections":{"x":[]},"later":[`, 1),
		"connections: want an array o": strings.Replace(good, `"connections":[`, `"connections":[null,`, 1),
		"key of a connection is missi": strings.Replace(good, `"sent":1,`, ``, 1),
		"connections: port: want an i": strings.Replace(good, `"port":443`, `"port":null`, 1),
		"key risk_class: want a strin": strings.Replace(good, `"READ"`, `{}`, 1),
	} {
		if _, err := ParseRow([]byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	swapped := strings.Replace(good, `"turn":2,`, "", 1)
	swapped = strings.Replace(swapped, `"seq":7`, `"seq":7,"turn":2`, 1)
	if _, err := ParseRow([]byte(swapped)); err != nil {
		t.Errorf("order matters to verifiers only: %v", err)
	}
	if _, err := CheckLine([]byte(swapped)); err == nil {
		t.Error("a verifier wants the order")
	}
	if _, err := ParseRow([]byte(strings.Replace(good, `"seq"`, `"later_key":{"a":[1]},"seq"`, 1))); err != nil {
		t.Errorf("an unknown key: %v", err)
	}
}

func FuzzParseThenEncode(f *testing.F) {
	f.Add(sample().Append(nil))
	f.Add((&Row{}).Append(nil))
	f.Add((&Row{Connections: []Connection{}}).Append(nil))
	f.Add([]byte(`{"tool_call_id":"a\u0085","turn":-0,"seq":1e3}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		row, ordered, err := parse(line)
		if fast, ok := parseFast(line); ok && (err != nil || !ordered || !bytes.Equal(fast.Append(nil), row.Append(nil))) {
			t.Fatalf("%s\nread fast as %s\nread as %v, %v", line, fast.Append(nil), row, err)
		}
		if err != nil {
			return
		}
		once := row.Append(nil)
		again, err := CheckLine(once)
		if err != nil {
			t.Fatalf("%s\nbecame %s\nwhich is %v", line, once, err)
		}
		if twice := again.Append(nil); !bytes.Equal(once, twice) {
			t.Errorf("\n%s\n%s", once, twice)
		}
		if bytes.ContainsAny(once, "\n\r\u0085\u2028\u2029") {
			t.Errorf("more than one line: %q", once)
		}
	})
}

func BenchmarkAppendRow(b *testing.B) {
	row, buf := sample(), []byte(nil)
	for b.Loop() {
		buf = row.Append(buf[:0])
	}
}

func BenchmarkParseRow(b *testing.B) {
	line := sample().Append(nil)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if _, err := ParseRow(line); err != nil {
			b.Fatal(err)
		}
	}
}

func TestTimesAreUTCMilliseconds(t *testing.T) {
	at := time.Date(2026, 12, 1, 1, 5, 12, 123_999_999, time.FixedZone("x", 7*3600))
	if got := FormatTime(at); got != "2026-11-30T18:05:12.123Z" {
		t.Error(got)
	}
	if got, err := ParseTime("2026-11-30T18:05:12.123Z"); err != nil || !got.Equal(at.Truncate(time.Millisecond)) {
		t.Error(got, err)
	}
}
