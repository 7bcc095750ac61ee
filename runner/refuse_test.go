package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/catalog"
	"toolrun/sandbox"
)

func TestPolicy(t *testing.T) {
	read := &catalog.Tool{Name: "read", Risk: catalog.RiskRead, Approval: catalog.ApprovalAuto}
	send := &catalog.Tool{Name: "send", Risk: catalog.RiskSend, Approval: catalog.ApprovalAuto}
	wipe := &catalog.Tool{Name: "wipe", Risk: catalog.RiskDestructive, Approval: catalog.ApprovalAuto}
	deny := &catalog.Tool{Name: "deny", Risk: catalog.RiskSend, Approval: catalog.ApprovalDeny}
	ask := &catalog.Tool{Name: "ask", Risk: catalog.RiskSend, Approval: catalog.ApprovalAsk}
	peek := &catalog.Tool{Name: "peek", Risk: catalog.RiskRead, Approval: catalog.ApprovalAsk}
	free := []string{catalog.RiskSend, catalog.RiskRead}
	bad := &catalog.ArgumentError{Field: "n", Problem: "must be an integer"}
	for name, c := range map[string]struct {
		q        question
		outcome  string
		flags    string
		approval ledger.OrNull
		message  []string
		ask      bool
	}{
		"a READ tool runs":             {q: question{Tool: read}},
		"SEND runs unasked, and says":  {q: question{Tool: send}, approval: "autonomous"},
		"DESTRUCTIVE likewise":         {q: question{Tool: wipe}, approval: "autonomous"},
		"an unknown tool":              {q: question{Name: "run_tests", Registered: []string{"a", "b"}}, outcome: "unknown_tool", flags: "UNKNOWN_TOOL", message: []string{"unknown tool: run_tests;", "a, b"}},
		"of an empty catalog":          {q: question{Name: "x"}, outcome: "unknown_tool", flags: "UNKNOWN_TOOL", message: []string{"registered: none"}},
		"unknown with a repeated id":   {q: question{Name: "x", Duplicate: true, ID: "i"}, outcome: "unknown_tool", flags: "UNKNOWN_TOOL DUPLICATE_ID"},
		"bad arguments":                {q: question{Tool: read, Problem: bad}, outcome: "invalid_arguments", flags: "INVALID_ARGUMENTS", message: []string{`argument "n"`, "must be an integer", "call again"}},
		"a repeated id":                {q: question{Tool: read, Duplicate: true, ID: "i-7"}, outcome: "duplicate_id", flags: "DUPLICATE_ID", message: []string{`"i-7"`}},
		"a repeated id, bad arguments": {q: question{Tool: read, Duplicate: true, Problem: bad}, outcome: "duplicate_id", flags: "DUPLICATE_ID INVALID_ARGUMENTS"},
		"a denied tool":                {q: question{Tool: deny}, outcome: "policy", approval: "denied", message: []string{"denies every call of deny", "do not call it again"}},
		"denied with bad arguments":    {q: question{Tool: deny, Problem: bad}, outcome: "invalid_arguments", flags: "INVALID_ARGUMENTS", approval: "denied"},
		"a tool that asks":             {q: question{Tool: ask}, ask: true},
		"asks with bad arguments":      {q: question{Tool: ask, Problem: bad}, outcome: "invalid_arguments", flags: "INVALID_ARGUMENTS"},
		"asks, in an autonomous run":   {q: question{Tool: ask, Autonomous: free}, approval: "autonomous"},
		"asks, other class autonomous": {q: question{Tool: ask, Autonomous: []string{catalog.RiskDestructive}}, ask: true},
		"a READ tool always asks":      {q: question{Tool: peek, Autonomous: free}, ask: true},
		"denied, autonomous run":       {q: question{Tool: deny, Autonomous: free}, outcome: "policy", approval: "denied"},
		"refused is not autonomous":    {q: question{Tool: send, Problem: bad}, outcome: "invalid_arguments", flags: "INVALID_ARGUMENTS"},
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(c.q)
			if d.Outcome != c.outcome || strings.Join(d.Flags, " ") != c.flags || d.Approval != c.approval || d.Ask != c.ask {
				t.Errorf("got %q, flags %v, approval %q", d.Outcome, d.Flags, d.Approval)
			}
			for _, part := range c.message {
				if !strings.Contains(d.Message(), part) {
					t.Errorf("message %q does not say %q", d.Message(), part)
				}
			}
		})
	}
}

// mustNotRun fails the test if anything runs.
func mustNotRun(t *testing.T) boxFunc {
	return func(context.Context, sandbox.Command) sandbox.Result {
		t.Error("a refused call ran")
		return sandbox.Result{}
	}
}

func TestRefusalsAreRowsAndRunNothing(t *testing.T) {
	g := newRig(t, testCatalog+`
[tools.blocked]
description = "is denied"
command = ["/bin/sh"]
risk = "SEND"
approval = "deny"
`, mustNotRun(t))
	long := strings.Repeat("x", 300)
	for _, c := range []struct {
		req     Request
		outcome string
		name    string
		input   string
		says    string
	}{
		{Request{Name: "run_tests", Arguments: args("a", 1)}, "unknown_tool", "run_tests", `{"a":1}`, "unknown tool: run_tests; registered: blocked, echo, never"},
		{Request{Name: "ECHO"}, "unknown_tool", "ECHO", `{}`, "unknown tool: ECHO"},
		{Request{Name: ""}, "unknown_tool", "", `{}`, "unknown tool: "},
		{Request{Name: "e\u0441ho\x00"}, "unknown_tool", "e\u0441ho\x00", `{}`, "unknown tool"},
		{Request{Name: long, Arguments: args("k", "v")}, "unknown_tool", long[:256] + "...", `{"arguments":{"k":"v"},"name":"` + long + `"}`, "unknown tool"},
		{Request{Name: "echo", Arguments: args("text", 7)}, "invalid_arguments", "echo", `{"text":7}`, `"text"`},
		{Request{Name: "echo", Arguments: args("zz", 7)}, "invalid_arguments", "echo", `{"zz":7}`, `"zz"`},
		{Request{Name: "echo", Arguments: args("text", "a\x00b")}, "invalid_arguments", "echo", `{"text":"a\u0000b"}`, `NUL`},
		{Request{Name: "echo", Arguments: args("text", "x [REDACTED]")}, "invalid_arguments", "echo", `{"text":"x [REDACTED]"}`, `"text"`},
		{Request{Name: "echo", Arguments: []byte(`["a"]`)}, "invalid_arguments", "echo", `["a"]`, "arguments"},
		{Request{Name: "echo", Arguments: []byte(`{"text":`)}, "invalid_arguments", "echo", `"{\"text\":"`, "arguments"},
		{Request{Name: "blocked"}, "policy", "blocked", `{}`, "denies"},
		{Request{Name: "echo", Refusal: Refusal{"invalid_arguments", "invalid params: so"}}, "invalid_arguments", "echo", `{}`, "invalid params: so; nothing was started"},
		{Request{Name: "blocked", Refusal: Refusal{"sandbox_unavailable", "no walls"}}, "sandbox_unavailable", "blocked", `{}`, "no walls"},
		{Request{Name: "who", Refusal: Refusal{"invalid_arguments", "invalid params: so"}}, "unknown_tool", "who", `{}`, "unknown tool: who"},
		{Request{Name: "echo", Arguments: []byte(`{"a":"sk\u002daaaaaaaaaaaaaaaaaaaaaaaa", "a" : 1}`), Refusal: Refusal{"invalid_arguments", "twice"}},
			"invalid_arguments", "echo", `"{\"a\":\"[REDACTED]\",\"a\":1}"`, "twice"},
	} {
		reply := g.Call(t.Context(), c.req)
		must(t, reply.Err)
		row := reply.Row
		if row.Outcome != c.outcome || row.Status != ledger.StatusBlocked || row.ToolName.String() != c.name {
			t.Errorf("%q: %s %s %q", c.req.Name, row.Outcome, row.Status, row.ToolName)
		}
		if row.OutputHash != "" || row.OutputBytes != 0 || row.ExitCode != nil || row.StartedAt != row.EndedAt || !row.Argv.IsNull() {
			t.Errorf("%q: something was started: %+v", c.req.Name, row)
		}
		if got := g.stored(row.InputHash); got != c.input {
			t.Errorf("%q: input object %s, want %s", c.req.Name, got, c.input)
		}
		if !strings.Contains(reply.Text(), c.says) || strings.Contains(reply.Text(), "\n") || !reply.IsError() {
			t.Errorf("%q: text %q does not say %q", c.req.Name, reply.Text(), c.says)
		}
	}
	rows, lines := g.end()
	if len(rows) != 16 {
		t.Fatalf("%d rows", len(rows))
	}
	for i, flags := range map[int]string{12: "INVALID_ARGUMENTS", 13: "", 14: "UNKNOWN_TOOL INVALID_ARGUMENTS", 15: "REDACTED INVALID_ARGUMENTS"} {
		if got := strings.Join(rows[i].Flags, " "); got != flags || rows[i].ApprovalStatus != "" {
			t.Errorf("row %d: flags %s, want %s; approval %q", i, got, flags, rows[i].ApprovalStatus)
		}
	}
	if known := rows[0].Known || !rows[5].Known || rows[0].RiskClass != "" || rows[5].RiskClass != "READ"; known {
		t.Error("known or risk_class is wrong")
	}
	for _, l := range lines {
		if l["name"] == "run_tests" && l["type"] == "tool_call" && !slices.Contains(l["flags"].([]any), any("UNKNOWN_TOOL")) {
			t.Errorf("flags of the line: %v", l["flags"])
		}
	}
}

func TestNumbersReachTheToolAndTheRecordDigitForDigit(t *testing.T) {
	var argv []string
	g := newRig(t, `
[tools.n]
description = "n"
command = ["/bin/sh", "{n}"]
risk = "READ"
[tools.n.params.n]
type = "number"
required = true
dash = true
`, boxFunc(func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		argv = cmd.Argv
		return exits(0, "", "")(ctx, cmd)
	}))
	for _, n := range []string{"9007199254740993", "18446744073709551616"} {
		reply := g.Call(t.Context(), Request{Name: "n", Arguments: []byte(`{"n":` + n + `}`)})
		must(t, reply.Err)
		if argv[1] != n || g.stored(reply.Row.InputHash) != `{"n":`+n+`}` {
			t.Errorf("%s: the tool got %s, the record %s", n, argv[1], g.stored(reply.Row.InputHash))
		}
	}
	g.end()
}

func TestTheTwoRedactionMarksAreOne(t *testing.T) {
	if catalog.RedactionMark != redact.Mark {
		t.Errorf("catalog refuses %q, redact writes %q", catalog.RedactionMark, redact.Mark)
	}
}

// TestPathsInArguments is the faulty tool runner that compared prefixes.
func TestPathsInArguments(t *testing.T) {
	ran := 0
	g := newRig(t, `
[tools.cat]
description = "cat"
command = ["/bin/cat", "{file}"]
risk = "READ"
sandbox = { write = [], hide = ["secret"] }
[tools.cat.params.file]
type = "string"
format = "path"
required = true
`, boxFunc(func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		ran++
		return exits(0, "", "")(ctx, cmd)
	}))
	w := g.workspace
	must(t, errors.Join(
		os.MkdirAll(filepath.Join(w, "sub"), 0o755),
		os.MkdirAll(filepath.Join(w, "secret"), 0o755),
		os.MkdirAll(w+"-evil", 0o755),
		os.Symlink("/etc", filepath.Join(w, "link")),
		os.Symlink(filepath.Join(w, "sub"), filepath.Join(w, "link2")),
		os.Symlink("../../nowhere", filepath.Join(w, "dangling")),
		os.Symlink("loop", filepath.Join(w, "loop")),
	))
	for path, ok := range map[string]bool{
		w + "/./": true, w + "/link2": true, "sub": true, "sub/new file": true, "./sub/../tools.toml": true, "link2/../sub": true,
		w + "-evil": false, w + "/../" + filepath.Base(w) + "-evil": false, w + "/link": false, "link/passwd": false, "/etc/passwd": false,
		"dangling": false, "dangling/../../x": false, "..": false, "loop": false, "": false, "secret/x": false, "sub/../secret": false,
		"link2/../../x": false, g.dir.Path() + "/ledger.jsonl": false, strings.Repeat("y", 300): false,
	} {
		before := ran
		reply := g.Call(t.Context(), Request{Name: "cat", Arguments: args("file", path)})
		must(t, reply.Err)
		if got := ran > before; got != ok || !ok && (reply.Row.Outcome != ledger.OutcomeInvalidArguments || !strings.Contains(reply.Message, `"file"`)) {
			t.Errorf("%q: ran %v (%s: %s), want %v", path, got, reply.Row.Outcome, reply.Message, ok)
		}
	}
	g.end()
}
