package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// made says what the generated ledger holds, for the answers to be checked.
type made struct {
	rows, failed int
	bytes        int64
	session      string // one in the middle
	call         string // of it
	sessionRows  int
}

// perSession is about how many calls a session has; four sessions run at a time.
const perSession, atATime = 50, 4

var begin = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

var tools = []struct{ name, risk, program string }{
	{"read_file", "READ", "/usr/bin/cat"}, {"write_file", "DRAFT", "/usr/bin/tee"}, {"list_dir", "READ", "/usr/bin/ls"},
	{"grep", "READ", "/usr/bin/grep"}, {"pytest", "READ", "/usr/bin/pytest"}, {"go_test", "READ", "/usr/local/go/bin/go"},
	{"git_log", "READ", "/usr/bin/git"}, {"git_push", "SEND", "/usr/bin/git"}, {"apply_patch", "DRAFT", "/usr/bin/patch"}, {"rm_tree", "DESTRUCTIVE", "/usr/bin/rm"},
}

const enforced = `["cgroup.memory","cgroup.swap","cgroup.pids","cgroup.cpu","cpu_time","rlimit.nofile","rlimit.fsize","ns.user","ns.pid","ns.mount","ns.ipc","ns.uts","ns.cgroup","ns.net","view","landlock","seccomp","no_new_privs","caps","notty"]`

// makeLedger writes a ledger of n rows with the keys and the sizes that serve writes: agents that read and edit files and
// run tests, one call in 100 a failure. The same n gives the same bytes.
func makeLedger(dir string, n int) (m made, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return m, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "ledger.jsonl"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return m, err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	g := newGenerator(1, n)
	var line []byte
	for seq := range n {
		line = g.row(line[:0], seq)
		m.bytes += int64(len(line))
		if _, err := w.Write(line); err != nil {
			return m, err
		}
	}
	m.rows, m.failed = n, g.failed
	m.session, m.call = g.session(n/2), callID(n/2)
	for seq := range n {
		if g.session(seq) == m.session {
			m.sessionRows++
		}
	}
	return m, w.Flush()
}

// newGenerator makes rows of which n fill four weeks.
func newGenerator(seed uint64, n int) *generator {
	return &generator{rand: rand.New(rand.NewPCG(seed, 2)), step: 28 * 24 * time.Hour / time.Duration(n)}
}

type generator struct {
	rand   *rand.Rand
	step   time.Duration
	failed int
}

func (g *generator) session(seq int) string {
	block := seq / (perSession * atATime)
	return uuid("session", block*atATime+seq%atATime)
}

func uuid(of string, n int) string {
	h := hash(fmt.Sprint(of, n))
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-8" + h[17:20] + "-" + h[20:32]
}

func callID(seq int) string { return "toolu_01" + hash(fmt.Sprint("call", seq))[:22] }

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

var words = []string{"server", "handler", "request", "config", "parser", "index", "buffer", "session", "writer", "module", "client", "router", "table", "cache", "token", "stream"}

// text is about n bytes of words.
func (g *generator) text(n int) string {
	var b []byte
	for len(b) < n {
		b = append(b, words[g.rand.IntN(len(words))]...)
		b = append(b, " _/.:"[g.rand.IntN(5)])
	}
	return string(b[:n])
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func (g *generator) row(b []byte, seq int) []byte {
	session, run := g.session(seq), uuid("run", seq/(perSession*atATime))
	tool := tools[min(g.rand.IntN(len(tools)), g.rand.IntN(len(tools)))]
	at := begin.Add(time.Duration(seq) * g.step)
	took := int(20 * (1 + g.rand.ExpFloat64()*20))
	call := callID(seq)
	path := "src/" + g.text(24) + ".go"
	input := `{"path":` + quoted(path) + `}`
	if tool.risk != "READ" {
		input = `{"content":` + quoted(g.text(180)) + `,"path":` + quoted(path) + `}`
	}
	output, size := g.text(10+g.rand.IntN(200)), g.rand.IntN(20000)
	status, outcome, exit, errorType, message, stderr := "success", "ok", "0", "null", "null", "null"
	attempt := 1
	switch {
	case seq%100 == 7:
		status, outcome, exit, errorType = "error", "exit", "1", `"ExitError"`
		message = quoted("exit status 1: " + g.text(60))
		stderr = quoted(hash(call + "stderr"))
	case seq%1000 == 123:
		status, outcome, exit, errorType, message = "timeout", "timeout", "null", `"TimeoutError"`, `"no end after 2m0s"`
		took = 120_000
	case seq%1000 == 500:
		attempt = 2
	}
	if status != "success" {
		g.failed++
	}
	approval := "null"
	if tool.risk == "SEND" || tool.risk == "DESTRUCTIVE" {
		approval = `"approved"`
		if seq%40 == 3 {
			approval = `"autonomous"`
		}
	}
	in, out := 2000+g.rand.IntN(30000), 50+g.rand.IntN(900)
	model, provider, cost := `"claude-sonnet-4-5"`, `"anthropic"`, strconv.FormatFloat(float64(3*in+15*out)/1e6, 'f', -1, 64)
	if seq/(perSession*atATime)%5 == 0 {
		model, provider, cost = `"qwen3-coder"`, `"ollama"`, "0"
	}
	return fmt.Appendf(b, `{"tool_call_id":%q,"session_id":%q,"turn":%d,"tool_name":%q,"risk_class":%q,"status":%q,"attempt":%d,"started_at":%q,"ended_at":%q,"duration_ms":%d,`+
		`"input_summary":%s,"input_hash":%q,"output_summary":%s,"output_hash":%q,"output_bytes":%d,"error_type":%s,"error_message":%s,"model":%s,"provider":%s,`+
		`"input_tokens":%d,"output_tokens":%d,"estimated_cost_usd":%s,"parent_call_id":null,"approval_status":%s,"seq":%d,"run_id":%q,"client_call_id":%q,`+
		`"catalog_sha256":%q,"schema_sha256":%q,"definition_sha256":%q,"known":true,"flags":[],"outcome":%q,"exit_code":%s,"signal":null,"stored_bytes":%d,`+
		`"stderr_hash":%s,"stderr_bytes":0,"truncated":false,"argv":[%q,%s],"exe_path":%q,"exe_sha256":%q,"cwd":"/home/dev/project","user":"1000:1000",`+
		`"cpu_ms":%d,"memory_peak_bytes":%d,"oom_kills":0,"pids_limit_hit":false,"pids_peak":%d,"throttled_ms":0,"enforced":%s,"hold_ms":0,"redactions":0,`+
		`"repeat_of":null,"repeat":0,"role":null,"client":"claude-code/2.1.332","trace_id":null,"span_id":null,"session_from":"env"}`+"\n",
		call, session, 1+seq%(perSession*atATime)/atATime, tool.name, tool.risk, status, attempt, stamp(at), stamp(at.Add(time.Duration(took)*time.Millisecond)), took,
		quoted(input), hash(input), quoted(output), hash(output), size, errorType, message, model, provider,
		in, out, cost, approval, seq, run, call,
		hash("catalog"), hash("schema"+tool.name), hash("definition"+tool.name), outcome, exit, size,
		stderr, tool.name, quoted(path), tool.program, hash(tool.program),
		took/3, 4096*(100+g.rand.IntN(5000)), 1+g.rand.IntN(9), enforced)
}

func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z") }
