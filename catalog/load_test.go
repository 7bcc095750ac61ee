package catalog

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"toolrun/catalog/canon"
)

func TestToolWithoutOptionalKeysHasTheDocumentedDefaults(t *testing.T) {
	a := tool(t, head)
	want := &Tool{
		Name: "a", Risk: RiskRead, Approval: ApprovalAuto, Mode: ModeCall, Cwd: ".", Env: map[string]EnvValue{}, Timeout: 2 * time.Minute, OKExitCodes: []int{0},
		Retry: Retry{Max: 0, On: []string{"timeout", "exit:75"}, Backoff: time.Second}, Redact: true, PreviewBytes: 10240,
		Limits: Limits{
			MemoryBytes: 1 << 30, Pids: 256, CPUs: 2, CPUTime: 10 * time.Minute, Files: 1024, FileSizeBytes: 1 << 30,
			OutputBytes: 64 << 20, OutputTotalBytes: 1 << 30,
		},
		Sandbox:    Sandbox{Read: []string{}, Write: []string{"."}, Hide: []string{}, Cache: []string{}, Network: NetworkNone},
		Toolchains: Toolchains{Auto: true},
		Schema:     json.RawMessage(`{"additionalProperties":false,"properties":{},"type":"object"}`), SchemaSHA256: a.SchemaSHA256,
		Definition: a.Definition, DefinitionSHA256: a.DefinitionSHA256,
		declared: a.declared, command: a.command, params: map[string]*param{}, compiled: a.compiled,
	}
	if !reflect.DeepEqual(a, want) {
		t.Errorf("got  %+v\nwant %+v", a, want)
	}
	if a.Program() != "true" || a.HasStdin() || len(a.Params()) != 0 {
		t.Errorf("program %q, stdin %t, params %v", a.Program(), a.HasStdin(), a.Params())
	}
}

const everyKey = `[catalog]
name = "all"
[secrets]
TOKEN = { env = "MY_TOKEN" }
[tools.all]
title = "All"
description = "Everything said."
command = ["prog", "--", "{p}"]
risk = "DESTRUCTIVE"
approval = "deny"
cwd = "sub"
env = { A = "1", T = "$secret:TOKEN", EMPTY = "" }
env_pass = ["LANG"]
stdin = "x{p}"
stderr = "merge"
pty = false
mode = "call"
timeout = "1h30m"
ok_exit_codes = [3, 0, 3]
retry = { max = 0, on = ["exit:0"], backoff = "0s" }
concurrency = 2
optional = true
redact = false
user = "nobody"
preview = "512B"
toolchains = ["go", "/opt/x"]
isolation = "best-effort"
[tools.all.limits]
memory = "2GiB"
swap = "1KiB"
pids = 1
cpu = 1
cpu_time = "500ms"
files = 10
file_size = "7"
output = "1TiB"
output_total = "9223372036854775807"
[tools.all.sandbox]
read = ["/usr/share/x", "../y"]
write = []
hide = ["secret"]
cache = ["go-build", "x.y_z-1"]
network = "host"
ptrace = true
[tools.all.params.p]
type = "string"
description = "A path."
required = true
enum = ["a", "b"]
format = "path"
dash = true
`

func TestEveryKeyIsObeyed(t *testing.T) {
	a := tool(t, everyKey)
	want := &Tool{
		Name: "all", Title: "All", Description: "Everything said.", Risk: RiskDestructive, Approval: ApprovalDeny, Mode: ModeCall, Cwd: "sub",
		Env:     map[string]EnvValue{"A": {Value: "1"}, "T": {Secret: "TOKEN"}, "EMPTY": {}},
		EnvPass: []string{"LANG"}, StderrMerge: true, User: "nobody", Timeout: 90 * time.Minute, OKExitCodes: []int{0, 3},
		Retry: Retry{On: []string{"exit:0"}}, Concurrency: 2, Optional: true,
		Limits: Limits{
			MemoryBytes: 2 << 30, SwapBytes: 1024, Pids: 1, CPUs: 1, CPUTime: 500 * time.Millisecond, Files: 10, FileSizeBytes: 7,
			OutputBytes: 1 << 40, OutputTotalBytes: 1<<63 - 1,
		},
		PreviewBytes: 512,
		Sandbox: Sandbox{
			Read: []string{"/usr/share/x", "../y"}, Write: []string{}, Hide: []string{"secret"}, Cache: []string{"go-build", "x.y_z-1"},
			Network: NetworkHost, Ptrace: true,
		},
		Toolchains: Toolchains{Programs: []string{"go", "/opt/x"}}, BestEffort: true,
		Schema: json.RawMessage(`{"additionalProperties":false,"properties":{"p":{"description":"A path.","enum":["a","b"],"type":"string"}},` +
			`"required":["p"],"type":"object"}`),
		SchemaSHA256: a.SchemaSHA256, Definition: a.Definition, DefinitionSHA256: a.DefinitionSHA256,
		declared: a.declared, command: a.command, stdin: a.stdin, params: a.params, names: []string{"p"}, compiled: a.compiled,
	}
	if !reflect.DeepEqual(a, want) {
		t.Errorf("got  %+v\nwant %+v", a, want)
	}
}

func TestDefaultsHoldForEveryToolThatSaysNothingElse(t *testing.T) {
	c := loadText(t, lines(
		`[defaults]`, `risk = "SEND"`, `approval = "auto"`, `timeout = "5s"`, `env = { A = "default", B = "default" }`, `limits = { memory = "2GiB", pids = 9 }`,
		`sandbox.network = "host"`, `toolchains = "none"`,
		`[tools.plain]`, `command = ["x"]`,
		`[tools.own]`, `command = ["x"]`, `risk = "READ"`, `timeout = "7s"`, `env = { A = "own" }`, `limits.pids = 3`, `sandbox = { network = "none", write = [] }`))
	plain, own := c.Tools()[1], c.Tools()[0]
	if plain.Risk != RiskSend || plain.Approval != ApprovalAuto || plain.Timeout != 5*time.Second || plain.Limits.MemoryBytes != 2<<30 ||
		plain.Limits.Pids != 9 || plain.Limits.Files != 1024 || plain.Sandbox.Network != NetworkHost || plain.Toolchains.Auto {
		t.Errorf("plain: %+v", plain)
	}
	if own.Risk != RiskRead || own.Timeout != 7*time.Second || own.Limits.MemoryBytes != 2<<30 || own.Limits.Pids != 3 ||
		own.Sandbox.Network != NetworkNone || !reflect.DeepEqual(own.Env, map[string]EnvValue{"A": {Value: "own"}, "B": {Value: "default"}}) {
		t.Errorf("own: %+v", own)
	}
}

func TestSendAndDestructiveAskWhereNothingIsSaid(t *testing.T) {
	for _, risk := range risks {
		text := lines(`[tools.a]`, `command = ["x"]`, `risk = "`+risk+`"`)
		for _, approval := range []string{ApprovalAuto, ApprovalAsk, ApprovalDeny} {
			if got := tool(t, text+`approval = "`+approval+`"`+"\n").Approval; got != approval {
				t.Errorf("%s: approval %q, want %q", risk, got, approval)
			}
		}
		want := map[string]string{RiskRead: ApprovalAuto, RiskDraft: ApprovalAuto, RiskSend: ApprovalAsk, RiskDestructive: ApprovalAsk}[risk]
		if got := tool(t, text).Approval; got != want {
			t.Errorf("%s: approval %q where nothing is said, want %q", risk, got, want)
		}
	}
}

func TestARetryFollowsTheEndsThatItNames(t *testing.T) {
	r := tool(t, head+`retry = { max = 3, on = ["timeout", "exit:75", "signal"], backoff = "250ms" }`).Retry
	if r.Max != 3 || r.Backoff != 250*time.Millisecond {
		t.Errorf("%+v", r)
	}
	code := func(n int) *int { return &n }
	for _, c := range []struct {
		outcome string
		exit    *int
		want    bool
	}{{"timeout", nil, true}, {"signal", nil, true}, {"exit", code(75), true}, {"exit", code(7), false}, {"exit", nil, false}, {"oom", nil, false},
		{"ok", code(75), false}, {"cancelled", nil, false}, {"interrupted", nil, false}} {
		if got := r.After(c.outcome, c.exit); got != c.want {
			t.Errorf("after %s %v: %t", c.outcome, c.exit, got)
		}
	}
	if any := tool(t, head+`retry = { max = 1, on = ["exit"] }`).Retry; !any.After("exit", code(7)) || any.After("timeout", nil) {
		t.Error("exit means any exit code that is no success")
	}
}

func TestKeysThatDifferInCaseAreRefusedEveryTime(t *testing.T) {
	const want = `tools.toml:5: tools.a.Timeout: unknown key; "Timeout" and "timeout" differ only in case, and keys are case-sensitive: remove "Timeout"`
	for range 50 {
		if got := refusal(t, map[string]string{"tools.toml": head + "timeout = \"1s\"\nTimeout = \"1m\"\n"}); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

func TestToolsThatDifferInCaseOrSignsStayApart(t *testing.T) {
	c := loadText(t, strings.ReplaceAll(head, "tools.a", "tools.read-file")+strings.ReplaceAll(head, "tools.a", "tools.read_file")+
		strings.ReplaceAll(head, "tools.a", "tools.echo")+strings.ReplaceAll(head, "tools.a", "tools.Echo")+
		strings.ReplaceAll(head, "tools.a", `tools."read.file"`))
	if want := []string{"Echo", "echo", "read-file", "read.file", "read_file"}; !slices.Equal(c.Names(), want) {
		t.Errorf("names %v, want %v", c.Names(), want)
	}
	for _, name := range []string{"ECHO", "echo ", "echo\x00", "e\u0441ho", "../echo", "", strings.Repeat("a", 300), "read\u2010file"} {
		if got, ok := c.Lookup(name); ok {
			t.Errorf("%q found %s", name, got.Name)
		}
	}
	for _, two := range []string{"Echo and echo", "read-file and read.file", "read.file and read_file"} {
		if !slices.ContainsFunc(c.Warnings(), func(w *Error) bool { return strings.Contains(w.Problem, two) }) {
			t.Errorf("no warning about %s in %q", two, c.Warnings())
		}
	}
}

func TestIncludesAndSchemaFilesBelongToTheCatalog(t *testing.T) {
	files := map[string]string{
		"tools.toml":         "[catalog]\ninclude = [\"more/extra.toml\"]\n[defaults]\ntimeout = \"9s\"\n" + head,
		"more/extra.toml":    "[tools.b]\ncommand = [\"x\", \"{p}\"]\nrisk = \"READ\"\nschema_file = \"b.json\"\n[tools.c]\ncommand = [\"x\", \"{p}\"]\nrisk = \"READ\"\nschema_file = \"b.json\"\n",
		"more/b.json":        `{"type":"object","properties":{"p":{"type":"integer","default":1e1}}}`,
		"more/unrelated.txt": "",
	}
	dir := write(t, files)
	c, err := Load("tools.toml")
	if err != nil {
		t.Fatal(err)
	}
	if c.Path() != filepath.Join(dir, "tools.toml") || c.Name() != filepath.Base(dir) || !slices.Equal(c.Names(), []string{"a", "b", "c"}) {
		t.Errorf("path %s, name %s, names %v", c.Path(), c.Name(), c.Names())
	}
	var paths []string
	for _, f := range c.Files() {
		rel, _ := filepath.Rel(dir, f.Path)
		paths = append(paths, rel)
		if f.Content != files[rel] || f.SHA256 != canon.SHA256Hex([]byte(files[rel])) {
			t.Errorf("%s: %q %s", f.Path, f.Content, f.SHA256)
		}
	}
	if !slices.Equal(paths, []string{"tools.toml", "more/extra.toml", "more/b.json"}) {
		t.Errorf("files %v", paths)
	}
	b, _ := c.Lookup("b")
	if string(b.Schema) != `{"additionalProperties":false,"properties":{"p":{"default":10,"type":"integer"}},"type":"object"}` || b.Timeout != 9*time.Second {
		t.Errorf("schema %s, timeout %s", b.Schema, b.Timeout)
	}
	if a, err := b.Check(nil); err != nil || a.Argv()[1] != "10" {
		t.Errorf("default of a schema: %v, %v", a, err)
	}

	before := c.FilesSHA256()
	moved := write(t, files)
	if c, err = Load(filepath.Join(moved, "tools.toml")); err != nil || c.FilesSHA256() != before {
		t.Errorf("the same files elsewhere have another hash: %v", err)
	}
	if err := os.WriteFile(filepath.Join(moved, "more/b.json"), []byte(files["more/b.json"]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = Load(filepath.Join(moved, "tools.toml")); err != nil || c.FilesSHA256() == before {
		t.Errorf("a changed schema file has the same hash: %v", err)
	}
	if n, ok := c.Lookup("a"); !ok || n.Name != "a" {
		t.Error("a is gone")
	}
}

func TestCatalogIsFrozen(t *testing.T) {
	dir := write(t, map[string]string{"tools.toml": head})
	c, err := Load("tools.toml")
	if err != nil {
		t.Fatal(err)
	}
	hash := c.FilesSHA256()
	if err := os.WriteFile(filepath.Join(dir, "tools.toml"), []byte("[tools.b]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Names()[0], c.Tools()[0], c.Files()[0] = "x", nil, File{}
	delete(c.DefinitionSHA256s(), "a")
	if a, ok := c.Lookup("a"); !ok || c.Names()[0] != "a" || c.Tools()[0] != a || c.FilesSHA256() != hash || c.DefinitionSHA256s()["a"] == "" {
		t.Error("a change from outside went through")
	}
}

func TestFilesThatAreNoCatalogAreRefused(t *testing.T) {
	dir := write(t, map[string]string{"big.toml": "#" + strings.Repeat("x", maxFileBytes)})
	for path, want := range map[string]string{
		"none.toml": "none.toml: cannot be read: no such file or directory", ".": ".: cannot be read: it is not a regular file",
		"/dev/zero": "/dev/zero: cannot be read: it is not a regular file", "big.toml": "big.toml: cannot be read: it is larger than 4MiB",
	} {
		if _, err := Load(path); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	_ = dir
}

func TestOwnCatalogSuitsEveryClient(t *testing.T) {
	c, err := Load("../tools.toml")
	if err != nil {
		t.Fatal(err)
	}
	if w := c.Warnings(); len(w) > 0 {
		t.Errorf("warnings: %q", w)
	}
	for name, want := range map[string][3]bool{ // readOnly, destructive, openWorld
		"read_file": {true, false, false}, "search": {true, false, false}, "list_files": {true, false, false}, "git_status": {true, false, false},
		"git_diff": {true, false, false}, "git_log": {true, false, false}, "fetch_output": {true, false, false}, "go_test": {false, false, false},
		"go_mod_download": {false, false, true}, "write_file": {false, false, false}, "edit_file": {false, false, false}, "shell": {false, true, false},
	} {
		tool, ok := c.Lookup(name)
		if !ok {
			t.Errorf("no %s", name)
			continue
		}
		readOnly, destructive, openWorld := tool.Annotations()
		if got := [3]bool{readOnly, destructive, openWorld}; got != want {
			t.Errorf("%s: annotations %v, want %v", name, got, want)
		}
	}
	if _, ok := c.Lookup("run_tests"); ok {
		t.Error("run_tests is the name that the demo makes up")
	}
}
