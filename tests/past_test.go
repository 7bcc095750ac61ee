package tests

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// past writes a data directory as toolrun would have left it at other times, knowing only what archive/FORMAT.md says. It
// signs nothing: each run has its marker, so that the next process seals it as one that died behind its last line.
type past struct {
	t    testing.TB
	data string
	seq  int
	runs int
}

// pastCall is one call of the past: its tool is "say".
type pastCall struct {
	at      time.Time // when it began
	took    time.Duration
	id      string
	session string
	args    string // JSON
	out     string
	stderr  string // not empty: it failed with status 1
}

// newPast begins the past of a place.
func newPast(p *place) *past {
	p.t.Helper()
	h := &past{t: p.t, data: p.data}
	for _, dir := range []string{"", "runs", "live", "store"} {
		if err := os.MkdirAll(filepath.Join(p.data, dir), 0o700); err != nil {
			p.t.Fatal(err)
		}
	}
	return h
}

// run puts a run with these calls on the record, one after the other, and returns its id.
func (h *past) run(calls ...pastCall) string {
	h.t.Helper()
	h.runs++
	sum := sha256Hex(fmt.Sprint("run", h.runs))
	run := sum[:8] + "-" + sum[8:12] + "-4" + sum[12:15] + "-8" + sum[15:18] + "-" + sum[18:30]
	catalog, schema, definition := sha256Hex(`["say"]`), sha256Hex(`{}`), sha256Hex("definition of say")
	trace := fmt.Appendf(nil, `{"type":"catalog","run_id":%q,"started_at":%q,"catalog_names":["say"],"catalog_sha256":%q,"schema_sha256":{"say":%q},"definition_sha256":{"say":%q},`+
		`"catalog_definition_sha256":%q,"role":null,"toolrun_version":"0.1.0","host":"past","pid":1}`+"\n",
		run, stampOf(calls[0].at), catalog, schema, definition, sha256Hex("definitions"))
	var rows []byte
	known := map[string]bool{}
	for _, c := range calls {
		if c.session == "" {
			c.session = run
		}
		if c.args == "" {
			c.args = "{}"
		}
		if !known[c.session] {
			known[c.session] = true
			trace = fmt.Appendf(trace, `{"type":"session","run_id":%q,"ts":%q,"session_id":%q,"client":"past/1","protocol":null,"role":null}`+"\n", run, stampOf(c.at), c.session)
		}
		input, output := h.object(c.args), h.object(c.out)
		status, outcome, exit, errorType, message, stderr := "success", "ok", 0, "null", "null", "null"
		if c.stderr != "" {
			status, outcome, exit, errorType = "error", "exit", 1, `"ExitError"`
			message, stderr = toJSON("exit status 1"), toJSON(h.object(c.stderr))
		}
		head := toJSON(string([]rune(c.out)[:min(240, len([]rune(c.out)))]))
		end := c.at.Add(c.took)
		trace = fmt.Appendf(trace, `{"type":"tool_call","run_id":%q,"ts":%q,"catalog_sha256":%q,"tool_call_id":%q,"name":"say","known":true,"schema_sha256":%q,"args_sha256":%q,"arguments":%s,"flags":[],`+
			`"session_id":%q,"session_from":"env","risk_class":"READ","definition_sha256":%q,"client_call_id":%q,"client":"past/1"}`+"\n",
			run, stampOf(c.at), catalog, c.id, schema, input, c.args, c.session, definition, c.id)
		trace = fmt.Appendf(trace, `{"type":"tool_result","run_id":%q,"ts":%q,"tool_call_id":%q,"name":"say","exit_code":%d,"output_bytes":%d,"output_head":%s,"flags":[]}`+"\n",
			run, stampOf(end), c.id, exit, len(c.out), head)
		rows = fmt.Appendf(rows, `{"tool_call_id":%q,"session_id":%q,"turn":0,"tool_name":"say","risk_class":"READ","status":%q,"attempt":1,"started_at":%q,"ended_at":%q,"duration_ms":%d,`+
			`"input_summary":%s,"input_hash":%q,"output_summary":"","output_hash":%q,"output_bytes":%d,"error_type":%s,"error_message":%s,"model":null,"provider":null,`+
			`"input_tokens":null,"output_tokens":null,"estimated_cost_usd":null,"parent_call_id":null,"approval_status":null,"seq":%d,"run_id":%q,"client_call_id":%q,`+
			`"catalog_sha256":%q,"schema_sha256":%q,"definition_sha256":%q,"known":true,"flags":[],"outcome":%q,"exit_code":%d,"signal":null,"stored_bytes":%d,`+
			`"stderr_hash":%s,"stderr_bytes":%d,"truncated":false,"argv":["say"],"exe_path":"/usr/bin/say","exe_sha256":%q,"cwd":".","user":"0:0",`+
			`"cpu_ms":1,"memory_peak_bytes":4096,"oom_kills":0,"pids_limit_hit":false,"pids_peak":1,"throttled_ms":0,"enforced":[],"hold_ms":0,"redactions":0,`+
			`"repeat_of":null,"repeat":0,"role":null,"client":"past/1","trace_id":null,"span_id":null,"session_from":"env"}`+"\n",
			c.id, c.session, status, stampOf(c.at), stampOf(end), c.took.Milliseconds(),
			toJSON(c.args), input, output, len(c.out), errorType, message,
			h.seq, run, c.id, catalog, schema, definition, outcome, exit, len(c.out), stderr, len(c.stderr), sha256Hex("say"))
		h.seq++
	}
	trace = fmt.Appendf(trace, `{"type":"catalog_unused","run_id":%q,"unused_names":[],"flags":[]}`+"\n", run)
	h.put(filepath.Join("live", run), nil)
	h.put(filepath.Join("runs", run+".jsonl"), trace)
	h.append("ledger.jsonl", rows)
	return run
}

// object puts content into the store.
func (h *past) object(content string) string {
	hash := sha256Hex(content)
	if err := os.MkdirAll(filepath.Dir(objectPath(h.data, hash)), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(objectPath(h.data, hash), []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return hash
}

func (h *past) put(name string, content []byte) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.data, name), content, 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *past) append(name string, content []byte) {
	h.t.Helper()
	f, err := os.OpenFile(filepath.Join(h.data, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(content); err != nil {
		h.t.Fatal(err)
	}
}

func stampOf(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func timeOf(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// idsOf are the tool_call_ids of rows, as JSON lines have them.
func idsOf(t testing.TB, lines string) (ids []string) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var r row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %.200s", err, line)
		}
		ids = append(ids, r.ToolCallID)
	}
	return ids
}
