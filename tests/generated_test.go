package tests

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// fullRow is a row with all of its keys, in their order, for tests that write a ledger themselves.
type fullRow struct {
	ToolCallID       string   `json:"tool_call_id"`
	SessionID        string   `json:"session_id"`
	Turn             int      `json:"turn"`
	ToolName         string   `json:"tool_name"`
	RiskClass        *string  `json:"risk_class"`
	Status           string   `json:"status"`
	Attempt          int      `json:"attempt"`
	StartedAt        string   `json:"started_at"`
	EndedAt          string   `json:"ended_at"`
	DurationMS       int64    `json:"duration_ms"`
	InputSummary     string   `json:"input_summary"`
	InputHash        string   `json:"input_hash"`
	OutputSummary    string   `json:"output_summary"`
	OutputHash       *string  `json:"output_hash"`
	OutputBytes      int      `json:"output_bytes"`
	ErrorType        *string  `json:"error_type"`
	ErrorMessage     *string  `json:"error_message"`
	Model            *string  `json:"model"`
	Provider         *string  `json:"provider"`
	InputTokens      *int     `json:"input_tokens"`
	OutputTokens     *int     `json:"output_tokens"`
	EstimatedCostUSD *float64 `json:"estimated_cost_usd"`
	ParentCallID     *string  `json:"parent_call_id"`
	ApprovalStatus   *string  `json:"approval_status"`
	Seq              int      `json:"seq"`
	RunID            string   `json:"run_id"`
	ClientCallID     *string  `json:"client_call_id"`
	CatalogSHA256    string   `json:"catalog_sha256"`
	SchemaSHA256     *string  `json:"schema_sha256"`
	DefinitionSHA256 *string  `json:"definition_sha256"`
	Known            bool     `json:"known"`
	Flags            []string `json:"flags"`
	Outcome          string   `json:"outcome"`
	ExitCode         *int     `json:"exit_code"`
	Signal           *string  `json:"signal"`
	StoredBytes      int      `json:"stored_bytes"`
	StderrHash       *string  `json:"stderr_hash"`
	StderrBytes      int      `json:"stderr_bytes"`
	Truncated        bool     `json:"truncated"`
	Argv             []string `json:"argv"`
	ExePath          *string  `json:"exe_path"`
	ExeSHA256        *string  `json:"exe_sha256"`
	Cwd              *string  `json:"cwd"`
	User             *string  `json:"user"`
	CPUMS            *int     `json:"cpu_ms"`
	MemoryPeakBytes  *int     `json:"memory_peak_bytes"`
	OOMKills         *int     `json:"oom_kills"`
	PidsLimitHit     *bool    `json:"pids_limit_hit"`
	PidsPeak         *int     `json:"pids_peak"`
	ThrottledMS      *int     `json:"throttled_ms"`
	Enforced         []string `json:"enforced"`
	HoldMS           int      `json:"hold_ms"`
	Redactions       int      `json:"redactions"`
	RepeatOf         *string  `json:"repeat_of"`
	Repeat           int      `json:"repeat"`
	Role             *string  `json:"role"`
	Client           *string  `json:"client"`
	TraceID          *string  `json:"trace_id"`
	SpanID           *string  `json:"span_id"`
	SessionFrom      string   `json:"session_from"`
	ApprovedBy       object   `json:"approved_by,omitempty"`
	DeclinedBy       object   `json:"declined_by,omitempty"`
}

// walls are those that are in force for a tool without network.
var walls = strings.Fields("cgroup.memory cgroup.swap cgroup.pids cgroup.cpu cpu_time rlimit.nofile rlimit.fsize " +
	"ns.user ns.pid ns.mount ns.ipc ns.uts ns.cgroup ns.net view landlock seccomp no_new_privs caps notty")

// generated is a ledger of sessions whose rows are known: what every question must answer.
type generated struct {
	past     *past
	sessions []*genSession
	rows     []*fullRow // all, in the order of seq
}

// genSession is one session. kind says what is special about it.
type genSession struct {
	id, run, client string
	kind            genKind
	at              time.Time // of its next call
	model, provider string
	rows            []*fullRow
	g               *generated
}

// genKind is what a session is there for; six sessions are of each.
type genKind int

const (
	testsPass   genKind = iota // pytest ran and passed, beside another call
	testsFail                  // pytest ran and failed
	testsUnrun                 // no tests ran
	threeTries                 // one call in three declared attempts
	agentsTries                // the agent itself called three times
	invented                   // a tool that is not in the catalog
	approved                   // a SEND that a person allowed
	autonomous                 // a DESTRUCTIVE that nobody was asked about
	declined                   // a SEND that a person did not allow
	maskedTests                // tests behind a shell that masks their exit code
	genKinds
)

// of are the sessions of a kind.
func (g *generated) of(kind genKind) (list []*genSession) {
	for _, s := range g.sessions {
		if s.kind == kind {
			list = append(list, s)
		}
	}
	return list
}

var genRisks = map[string]string{"read_file": "READ", "search": "READ", "write_file": "DRAFT", "pytest": "READ", "sh": "DRAFT", "fetch": "READ", "git_push": "SEND", "rm_tree": "DESTRUCTIVE"}

// sixtySessions writes a ledger of sixty sessions of four clients with four providers, half of them in January 2025, half in
// February. The same is written each time.
func sixtySessions(p *place) *generated {
	p.t.Helper()
	g := &generated{past: newPast(p)}
	clients := []string{"claude-code/2.1.332", "codex/0.171.0", "gemini-cli/0.9.1", "toolrun-call/1.0"}
	models := [][2]string{{"claude-sonnet-4-5", "anthropic"}, {"gpt-5-codex", "openai"}, {"qwen3-coder", "ollama"}, {"", ""}}
	for i := range 60 {
		hash := sha256Hex(fmt.Sprint("session", i))
		s := &genSession{
			g: g, kind: genKind(i % int(genKinds)), client: clients[i%4], model: models[i/2%4][0], provider: models[i/2%4][1],
			id:  fmt.Sprintf("%s-%s-4%s-8%s-%s", hash[:8], hash[8:12], hash[12:15], hash[15:18], hash[18:30]),
			run: fmt.Sprintf("%08d-0000-4000-8000-%012d", i, i),
			at:  time.Date(2025, time.Month(1+i/30), 6+i%30/6, 9+i%6, 0, 0, 0, time.UTC),
		}
		g.sessions = append(g.sessions, s)
		s.fill(i)
		s.write()
	}
	return g
}

// fill gives the session its calls: a few that every agent makes, and those of its kind.
func (s *genSession) fill(i int) {
	s.ok("read_file", fmt.Sprintf(`{"path":"src/module_%d.py"}`, i), 12*time.Millisecond, strings.Repeat("line of code\n", 5+i))
	s.ok("search", `{"pattern":"TODO"}`, 31*time.Millisecond, "src/a.py:3:# TODO\n")
	if i%5 == 0 {
		s.ok("fetch", `{"url":"https://example.org/日本語"}`, 12300*time.Millisecond, "<html>\n")
	}
	switch s.kind {
	case testsPass:
		began := s.at
		s.at = began.Add(2 * time.Second)
		s.ok("write_file", `{"content":"x = 1","path":"src/new.py"}`, 40*time.Millisecond, "")
		s.at = began // it ends later
		s.ok("pytest", `{"args":["tests/unit"]}`, 8*time.Second, "12 passed\n")
	case testsFail:
		s.exit("pytest", `{"args":["tests/unit"]}`, 6*time.Second, 1, "3 failed, 9 passed\n", "FAILED tests/unit/test_wallet.py\n")
	case testsUnrun:
		s.ok("write_file", `{"content":"pass","path":"tests/test_new.py"}`, 35*time.Millisecond, "")
	case threeTries:
		first := s.exit("fetch", `{"url":"https://example.org/a"}`, 900*time.Millisecond, 75, "", "temporary failure in name resolution\n")
		first.Status = "retry"
		second := s.exit("fetch", `{"url":"https://example.org/a"}`, 2*time.Minute, 0, "", "")
		second.Status, second.Outcome, second.ExitCode, second.Attempt = "retry", "timeout", nil, 2
		second.ErrorType, second.ErrorMessage, second.Signal = ptr("TimeoutError"), ptr("no end after 2m0s"), ptr("SIGKILL")
		third := s.ok("fetch", `{"url":"https://example.org/a"}`, 800*time.Millisecond, "got it\n")
		third.Attempt = 3
		for n, r := range []*fullRow{second, third} {
			r.ToolCallID, r.ClientCallID = fmt.Sprintf("%s#%d", first.ToolCallID, n+2), first.ClientCallID
		}
	case agentsTries:
		var before *fullRow
		for n := range 3 {
			code, stderr := 2, "a.c:1: error: expected ';'\n"
			if n == 2 {
				code, stderr = 0, ""
			}
			r := s.exit("sh", `{"script":"make build"}`, 1500*time.Millisecond, code, "cc -c a.c\n", stderr)
			if before != nil {
				r.RepeatOf, r.Repeat = ptr(before.ToolCallID), n
			}
			before = r
		}
	case invented:
		r := s.refused("run_tests", `{"suite":"all"}`, "unknown_tool", "UnknownTool", "unknown tool: run_tests")
		r.Known, r.RiskClass, r.SchemaSHA256, r.DefinitionSHA256, r.Flags = false, nil, nil, nil, []string{"UNKNOWN_TOOL"}
	case approved:
		r := s.ok("git_push", `{"remote":"origin"}`, 2400*time.Millisecond, "main -> main\n")
		r.ApprovalStatus, r.HoldMS = ptr("approved"), 8200
		r.ApprovedBy = object{"via": "terminal", "uid": 1000, "tty": "/dev/pts/3", "pid": 4242, "exe": "/usr/local/bin/toolrun"}
	case autonomous:
		r := s.ok("rm_tree", `{"path":"build"}`, 90*time.Millisecond, "")
		r.ApprovalStatus = ptr("autonomous")
	case declined:
		r := s.refused("git_push", `{"remote":"origin"}`, "declined", "Declined", "a person did not allow it: not on a Friday")
		r.ApprovalStatus = ptr("denied")
		r.DeclinedBy = object{"via": "terminal", "uid": 1000, "tty": "/dev/pts/3", "pid": 4243, "exe": "/usr/local/bin/toolrun"}
	case maskedTests:
		s.ok("sh", `{"script":"pytest -q; true"}`, 5*time.Second, "3 failed, 9 passed\n")
	}
	s.exit("sh", fmt.Sprintf(`{"script":"git diff --stat HEAD~%d"}`, i%3), 75*time.Millisecond, i%2, " 1 file changed\n", map[int]string{1: "fatal: ambiguous argument\n"}[i%2])
}

func ptr[T any](v T) *T { return &v }

// ok adds a call that succeeded.
func (s *genSession) ok(tool, args string, took time.Duration, out string) *fullRow {
	return s.exit(tool, args, took, 0, out, "")
}

// refused adds a call of which nothing was started.
func (s *genSession) refused(tool, args, outcome, errorType, message string) *fullRow {
	r := s.exit(tool, args, 0, 0, "", "")
	r.Status, r.Outcome, r.ErrorType, r.ErrorMessage, r.ExitCode, r.OutputHash = "blocked", outcome, &errorType, &message, nil, nil
	r.Argv, r.ExePath, r.ExeSHA256, r.Cwd, r.User, r.Enforced = nil, nil, nil, nil, nil, []string{}
	r.CPUMS, r.MemoryPeakBytes, r.OOMKills, r.PidsLimitHit, r.PidsPeak, r.ThrottledMS = nil, nil, nil, nil, nil, nil
	return r
}

// exit adds a call that ended with an exit code.
func (s *genSession) exit(tool, args string, took time.Duration, code int, out, stderr string) *fullRow {
	n := len(s.rows)
	id := fmt.Sprintf("toolu_%.22s", sha256Hex(s.id+fmt.Sprint(n)))
	started := s.at
	s.at = s.at.Add(took + 1500*time.Millisecond)
	r := &fullRow{
		ToolCallID: id, SessionID: s.id, Turn: n + 1, ToolName: tool, RiskClass: ptr(genRisks[tool]), Status: "success", Attempt: 1,
		StartedAt: stampOf(started), EndedAt: stampOf(started.Add(took)), DurationMS: took.Milliseconds(),
		InputSummary: args, InputHash: s.g.past.object(args), OutputSummary: strings.Join(strings.Fields(out), " "), OutputHash: ptr(s.g.past.object(out)), OutputBytes: len(out),
		RunID: s.run, ClientCallID: &id, CatalogSHA256: sha256Hex(toJSON(genTools())), SchemaSHA256: ptr(sha256Hex("schema " + tool)),
		DefinitionSHA256: ptr(sha256Hex("definition " + tool)), Known: true, Flags: []string{}, Outcome: "ok", ExitCode: &code, StoredBytes: len(out),
		StderrBytes: len(stderr), Argv: []string{"/usr/bin/" + tool, args}, ExePath: ptr("/usr/bin/" + tool), ExeSHA256: ptr(sha256Hex(tool)),
		Cwd: ptr("/home/dev/project"), User: ptr("1000:1000"), CPUMS: ptr(int(took.Milliseconds() / 3)), MemoryPeakBytes: ptr(4 << 20), OOMKills: ptr(0),
		PidsLimitHit: ptr(false), PidsPeak: ptr(2), ThrottledMS: ptr(0), Enforced: walls, Client: &s.client, SessionFrom: "env",
	}
	var given struct{ Script string }
	if err := json.Unmarshal([]byte(args), &given); err != nil {
		s.g.past.t.Fatal(err)
	}
	if given.Script != "" {
		r.Argv = []string{"/usr/bin/sh", "-c", given.Script}
	}
	if len(r.OutputSummary) > 300 {
		r.OutputSummary = r.OutputSummary[:300] + "..."
	}
	if stderr != "" {
		r.StderrHash = ptr(s.g.past.object(stderr))
	}
	if code != 0 {
		r.Status, r.Outcome, r.ErrorType = "error", "exit", ptr("ExitError")
		r.ErrorMessage = ptr(strings.TrimSuffix(fmt.Sprintf("exit status %d: %s", code, strings.TrimSpace(stderr)), ": "))
	}
	if s.provider != "" {
		in, out := 1000+137*n+11*len(s.g.sessions), 40+7*n
		price := map[string][2]float64{"anthropic": {3, 15}, "openai": {1.25, 10}, "ollama": {}}[s.provider]
		micro := int(price[0]*float64(in) + price[1]*float64(out)) // whole millionths
		r.Model, r.Provider, r.InputTokens, r.OutputTokens, r.EstimatedCostUSD = &s.model, &s.provider, &in, &out, ptr(float64(micro)/1e6)
	}
	s.rows, s.g.rows = append(s.rows, r), append(s.g.rows, r)
	return r
}

func genTools() (names []string) {
	for tool := range genRisks {
		names = append(names, tool)
	}
	slices.Sort(names)
	return names
}

// write puts the session on the record: one run, its trace, its rows.
func (s *genSession) write() {
	h := s.g.past
	schemas, definitions := map[string]string{}, map[string]string{}
	for _, tool := range genTools() {
		schemas[tool], definitions[tool] = sha256Hex("schema "+tool), sha256Hex("definition "+tool)
	}
	catalog := sha256Hex(toJSON(genTools()))
	first := s.rows[0].StartedAt
	trace := fmt.Appendf(nil, `{"type":"catalog","run_id":%q,"started_at":%q,"catalog_names":%s,"catalog_sha256":%q,"schema_sha256":%s,"definition_sha256":%s,`+
		`"catalog_definition_sha256":%q,"role":null,"toolrun_version":"0.1.0","host":"past","pid":1}`+"\n",
		s.run, first, toJSON(genTools()), catalog, toJSON(schemas), toJSON(definitions), sha256Hex("definitions"))
	trace = fmt.Appendf(trace, `{"type":"session","run_id":%q,"ts":%q,"session_id":%q,"client":%q,"protocol":null,"role":null}`+"\n", s.run, first, s.id, s.client)
	var rows []byte
	for _, r := range s.rows {
		r.Seq = h.seq
		h.seq++
		trace = fmt.Appendf(trace, `{"type":"tool_call","run_id":%q,"ts":%q,"catalog_sha256":%q,"tool_call_id":%q,"name":%q,"known":%t,"schema_sha256":%s,"args_sha256":%q,"arguments":%s,"flags":%s,`+
			`"session_id":%q,"session_from":"env","client_call_id":%q,"client":%q}`+"\n",
			s.run, r.StartedAt, catalog, r.ToolCallID, r.ToolName, r.Known, toJSON(r.SchemaSHA256), r.InputHash, r.InputSummary, toJSON(r.Flags), s.id, *r.ClientCallID, s.client)
		head := ""
		if r.OutputHash != nil {
			head = h.read(*r.OutputHash)
		}
		trace = fmt.Appendf(trace, `{"type":"tool_result","run_id":%q,"ts":%q,"tool_call_id":%q,"name":%q,"exit_code":%s,"output_bytes":%d,"output_head":%s,"flags":%s}`+"\n",
			s.run, r.EndedAt, r.ToolCallID, r.ToolName, toJSON(r.ExitCode), r.OutputBytes, toJSON(head[:min(240, len(head))]), toJSON(r.Flags))
		rows = append(append(rows, toJSON(r)...), '\n')
	}
	trace = fmt.Appendf(trace, `{"type":"catalog_unused","run_id":%q,"unused_names":[],"flags":[]}`+"\n", s.run)
	h.put(filepath.Join("live", s.run), nil)
	h.put(filepath.Join("runs", s.run+".jsonl"), trace)
	h.append("ledger.jsonl", rows)
}

// read is an object's content.
func (h *past) read(hash string) string {
	h.t.Helper()
	if n, err := checkObject(h.data, hash); err != nil || n > 1<<20 {
		h.t.Fatal(hash, n, err)
	}
	return readFile(h.t, objectPath(h.data, hash))
}
