package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// tools are those whose logs were made, in their order.
var tools []string

// gather makes real logs of builds, tests and searches: what agents' tools print.
func gather() (logs []string, err error) {
	for _, args := range [][]string{
		{"go", "test", "-v", "-count=1", "strings", "sort", "strconv", "bytes", "encoding/json", "text/template"},
		{"go", "build", "-n", "-a", "./cmd/toolrun"},
		{"go", "list", "-deps", "-json", "./cmd/toolrun"},
		{"go", "vet", "-v", "./archive/ledger"},
		{"git", "log", "--stat", "-n", "200"},
		{"git", "log", "-p", "-n", "20"},
		{"grep", "-rn", "func ", "--include=*.go", "."},
		{"ls", "-lR", "archive", "runner", "cmd"},
		{"sh", "-c", "cat archive/*.go runner/*.go"},
	} {
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		if len(out) < 4096 {
			continue // without git, or without its history
		}
		_ = err // a failed test is a log too
		logs, tools = append(logs, string(out)), append(tools, strings.Join(args[:2], "_"))
	}
	if len(logs) == 0 {
		return nil, fmt.Errorf("no logs could be made: run it from the top of the repository")
	}
	return logs, nil
}

// record writes a data directory as toolrun would have left it; the past has no other witness than archive/FORMAT.md.
type record struct {
	data    string
	logs    []string
	rand    *rand.Rand
	only    bool // rows only, which name no objects, as those of serve --payloads=hash
	seq     int
	runs    int
	objects int
	sample  []sample
}

// sample is a call to ask for.
type sample struct{ id, session, output string }

// perRun is how many calls a run has, and a session.
const perRun = 50

// days writes n days of calls from a day on.
func (r *record) days(from time.Time, n, perDay int) error {
	for _, dir := range []string{"runs", "live", "store"} {
		if err := os.MkdirAll(filepath.Join(r.data, dir), 0o700); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(filepath.Join(r.data, "ledger.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	for day := range n {
		at := from.AddDate(0, 0, day).Add(8 * time.Hour)
		step := 10 * time.Hour / time.Duration(perDay)
		for done := 0; done < perDay; done += perRun {
			if err := r.run(w, at.Add(time.Duration(done)*step), step, min(perRun, perDay-done)); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}

func (r *record) run(ledger *bufio.Writer, at time.Time, step time.Duration, calls int) error {
	r.runs++
	run, session := uuid("run", r.runs), uuid("session", r.runs)
	catalog, payloads := hash("catalog"), ""
	if r.only {
		payloads = `,"payloads":"hash"`
	}
	trace := fmt.Appendf(nil, `{"type":"catalog","run_id":%q,"started_at":%q,"catalog_names":["go_test"],"catalog_sha256":%q,"schema_sha256":{"go_test":%q},"definition_sha256":{"go_test":%q},"catalog_definition_sha256":%q,"role":null,"toolrun_version":"0.1.0","host":"bench","pid":1}`+"\n"+
		`{"type":"session","run_id":%q,"ts":%q,"session_id":%q,"client":"claude-code/2.1.332","protocol":"2025-11-25","role":null}`+"\n",
		run, stamp(at), catalog, hash("schema"), hash("definition"), hash("definitions"), run, stamp(at), session)
	for i := range calls {
		began := at.Add(time.Duration(i) * step)
		took := time.Duration(20+r.rand.ExpFloat64()*900) * time.Millisecond
		kind := r.rand.IntN(len(r.logs))
		tool := tools[kind]
		id := "toolu_01" + hash(fmt.Sprint("call", r.seq))[:22]
		args := fmt.Sprintf(`{"package":"./%s"}`, []string{"archive", "runner", "catalog", "sandbox"}[r.rand.IntN(4)])
		if r.rand.IntN(2) == 0 {
			args = fmt.Sprintf(`{"path":"src/%s.go"}`, hash(fmt.Sprint(r.rand.IntN(400)))[:12])
		}
		input, err := r.object(args)
		if err != nil {
			return err
		}
		out := r.output(kind)
		output, err := r.object(out)
		if err != nil {
			return err
		}
		status, outcome, exit, errorType, message := "success", "ok", 0, "null", "null"
		if r.rand.IntN(12) == 0 {
			status, outcome, exit, errorType, message = "error", "exit", 1, `"ExitError"`, `"exit status 1: FAIL"`
		}
		trace = fmt.Appendf(trace, `{"type":"tool_call","run_id":%q,"ts":%q,"catalog_sha256":%q,"tool_call_id":%q,"name":%q,"known":true,"schema_sha256":%q,"args_sha256":%q,"arguments":%s,"flags":[],"session_id":%q,"session_from":"env","risk_class":"READ","definition_sha256":%q,"client_call_id":%q,"client":"claude-code/2.1.332"}`+"\n"+
			`{"type":"tool_result","run_id":%q,"ts":%q,"tool_call_id":%q,"name":%q,"exit_code":%d,"output_bytes":%d,"output_head":%s,"flags":[]}`+"\n",
			run, stamp(began), catalog, id, tool, hash("schema"), input, args, session, hash("definition"), id,
			run, stamp(began.Add(took)), id, tool, exit, len(out), quoted(cut(out, 240)))
		fmt.Fprintf(ledger, `{"tool_call_id":%q,"session_id":%q,"turn":%d,"tool_name":%q,"risk_class":"READ","status":%q,"attempt":1,"started_at":%q,"ended_at":%q,"duration_ms":%d,`+
			`"input_summary":%s,"input_hash":%q,"output_summary":%s,"output_hash":%q,"output_bytes":%d,"error_type":%s,"error_message":%s,"model":"claude-sonnet-4-5","provider":"anthropic",`+
			`"input_tokens":%d,"output_tokens":%d,"estimated_cost_usd":null,"parent_call_id":null,"approval_status":null,"seq":%d,"run_id":%q,"client_call_id":%q,`+
			`"catalog_sha256":%q,"schema_sha256":%q,"definition_sha256":%q,"known":true,"flags":[],"outcome":%q,"exit_code":%d,"signal":null,"stored_bytes":%d,`+
			`"stderr_hash":null,"stderr_bytes":0,"truncated":false,"argv":[%q,"./..."],"exe_path":"/usr/local/go/bin/go","exe_sha256":%q,"cwd":"/home/dev/project","user":"1000:1000",`+
			`"cpu_ms":%d,"memory_peak_bytes":%d,"oom_kills":0,"pids_limit_hit":false,"pids_peak":%d,"throttled_ms":0,"enforced":["cgroup.memory","cgroup.swap","cgroup.pids","cgroup.cpu","cpu_time","rlimit.nofile","rlimit.fsize","ns.user","ns.pid","ns.mount","ns.ipc","ns.uts","ns.cgroup","ns.net","view","landlock","seccomp","no_new_privs","caps","notty"],`+
			`"hold_ms":0,"redactions":0,"repeat_of":null,"repeat":0,"role":null,"client":"claude-code/2.1.332","trace_id":null,"span_id":null,"session_from":"env"%s}`+"\n",
			id, session, 1+i/3, tool, status, stamp(began), stamp(began.Add(took)), took.Milliseconds(),
			quoted(args), input, quoted(cut(strings.Join(strings.Fields(out), " "), 300)), output, len(out), errorType, message,
			2000+r.rand.IntN(30000), 50+r.rand.IntN(900), r.seq, run, id,
			catalog, hash("schema"), hash("definition"), outcome, exit, len(out), tool, hash("exe"),
			took.Milliseconds()/2, 4096*(100+r.rand.IntN(5000)), 1+r.rand.IntN(9), payloads)
		r.seq++
		if r.seq%97 == 0 {
			r.sample = append(r.sample, sample{id, session, output})
		}
	}
	if r.only && r.runs > 1 {
		return nil // one run that has died makes the next process sign for all
	}
	trace = fmt.Appendf(trace, `{"type":"catalog_unused","run_id":%q,"unused_names":[],"flags":[]}`+"\n", run)
	if err := os.WriteFile(filepath.Join(r.data, "live", run), nil, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.data, "runs", run+".jsonl"), trace, 0o600)
}

// output is what a tool prints: its log, or a part of it from some place on, as a package has its tests and a file its
// text; mostly a screen, at times some hundred KiB. Three in four end in a time that is another each time.
func (r *record) output(tool int) string {
	log := r.logs[tool]
	n := min(len(log)/2, 200+int(r.rand.ExpFloat64()*r.rand.ExpFloat64()*6000))
	from := r.rand.IntN(64) * ((len(log) - n) / 64)
	from += strings.IndexByte(log[from:], '\n') + 1
	text := log[from:min(from+n, len(log))]
	text = text[:strings.LastIndexByte(text, '\n')+1]
	if r.rand.IntN(4) == 0 {
		return text
	}
	return fmt.Sprintf("%s%d ms\n", text, r.rand.IntN(100000))
}

func (r *record) object(content string) (string, error) {
	name := hash(content)
	dir := filepath.Join(r.data, "store", name[:2])
	path := filepath.Join(dir, name+".txt")
	if r.only {
		return name, nil
	}
	if _, err := os.Lstat(path); err == nil {
		return name, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	r.objects++
	return name, os.WriteFile(path, []byte(content), 0o600)
}

func cut(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func uuid(of string, n int) string {
	h := hash(fmt.Sprint(of, n))
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-8" + h[17:20] + "-" + h[20:32]
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z") }
