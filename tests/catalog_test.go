package tests

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// refusedCatalog starts a server with this catalog and wants it refused, with the file, the line and these words.
func refusedCatalog(t *testing.T, catalog string, words ...string) {
	t.Helper()
	p := barePlace(t, "")
	p.writeCatalog(catalog)
	got := p.run("serve")
	if got.code != 2 || got.stdout != "" {
		t.Errorf("exit %d, stdout %q for\n%s", got.code, got.stdout, catalog)
	}
	for _, word := range append(words, "tools.toml:") {
		if !strings.Contains(got.stderr, word) {
			t.Errorf("no %q in %q for\n%s", word, got.stderr, catalog)
		}
	}
}

const oneTool = "[tools.a]\ndescription = \"A test.\"\ncommand = [\"true\"]\nrisk = \"READ\"\n"

func TestKeysThatDifferInCaseAreRefused(t *testing.T) {
	t.Parallel()
	for range 50 { // the decoder walks maps in random order
		refusedCatalog(t, oneTool+"timeout = \"1s\"\nTimeout = \"1m\"\n", "timeout", "Timeout")
	}
	refusedCatalog(t, oneTool+"TIMEOUT = \"1s\"\n", "TIMEOUT")
	refusedCatalog(t, "[Tools.a]\ndescription = \"A test.\"\ncommand = [\"true\"]\nrisk = \"READ\"\n", "Tools")
}

func TestUnknownAndMisplacedKeysAreRefused(t *testing.T) {
	t.Parallel()
	refusedCatalog(t, oneTool+"timout = \"5s\"\n", ":5", "timout")
	refusedCatalog(t, oneTool+"[tools.a.limits]\nmemory_byte = 1\n", ":6", "memory_byte")
	refusedCatalog(t, "timeout = \"5s\"\n"+oneTool, ":1", "timeout")
	refusedCatalog(t, "[[tools]]\nname = \"a\"\ncommand = [\"true\"]\n", "tools")
	refusedCatalog(t, "[tool.a]\ncommand = [\"true\"]\n", ":1", "tool")
	refusedCatalog(t, oneTool+"limits = { memory = \"0\" }\n", "memory")
	refusedCatalog(t, oneTool+"limits = { memory = \"99999999999GiB\" }\n", "memory")
	refusedCatalog(t, oneTool+"limits = { pids = -1 }\n", "pids")
	refusedCatalog(t, strings.Replace(oneTool, `["true"]`, "[]", 1), "command")
	refusedCatalog(t, strings.Replace(oneTool, `["true"]`, `"true"`, 1), "command")
	refusedCatalog(t, strings.Replace(oneTool, "READ", "read", 1), "risk")
}

func TestTerminalsAndModesThatCannotBeAreRefusedByName(t *testing.T) {
	t.Parallel()
	for _, line := range []string{`pty = { rows = 0, cols = 80 }`, `pty = { cols = 70000 }`, `pty = "yes"`, `mode = "forever"`} {
		key, _, _ := strings.Cut(line, " ")
		refusedCatalog(t, oneTool+line+"\n", key)
	}
}

func TestNamesAreMatchedExactly(t *testing.T) {
	t.Parallel()
	p := newPlace(t, fixed("read-file", "echo dash")+fixed("read_file", "echo underscore")+fixed("echo", "echo lower")+fixed("Echo", "echo upper"))
	s := p.serve()
	for name, want := range map[string]string{"read-file": "dash", "read_file": "underscore", "echo": "lower", "Echo": "upper"} {
		if f := s.call(name, nil); f.Stdout != want+"\n" {
			t.Errorf("%s: %q", name, f.Stdout)
		}
	}
	names := []string{"ECHO", "echo ", "echo\x00", "e\u0441ho", "../echo", "", strings.Repeat("a", 300), "read\u2010file"}
	for _, name := range names {
		a := s.answer(s.begin(name, object{}), patience)
		if a.Error == nil || a.Error.Code != -32602 {
			t.Errorf("%q: %s", name, toJSON(a))
			continue
		}
		if !strings.HasPrefix(a.Error.Message, "unknown tool") || !strings.Contains(a.Error.Message, "read_file") {
			t.Errorf("%q: %s", name, a.Error.Message)
		}
	}
	rows := p.rows()[4:]
	if len(rows) != len(names) {
		t.Fatalf("%d rows for %d invented names", len(rows), len(names))
	}
	for i, r := range rows {
		want := names[i]
		if len(want) > 256 {
			want = r.ToolName
			if !strings.HasSuffix(want, "...") || len(want) > 259 {
				t.Errorf("tool_name of %d bytes", len(want))
			}
		}
		if r.ToolName != want || r.Outcome != "unknown_tool" || r.Known || r.RiskClass != nil || !slices.Contains(r.Flags, "UNKNOWN_TOOL") {
			t.Errorf("%q: %s", names[i], r.raw)
		}
	}
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7,"arguments":{}}}`)
	if a := s.answer(1, patience); a.Error == nil || a.Error.Code != -32602 {
		t.Errorf("name 7: %s", toJSON(a))
	}
}

// schema is as much of a JSON Schema as the tools of the next test have.
type schema struct {
	Type       string            `json:"type"`
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	Additional *bool             `json:"additionalProperties"`
	Enum       []any             `json:"enum"`
	Minimum    *float64          `json:"minimum"`
	Items      *schema           `json:"items"`
	MinLength  int               `json:"minLength"`
}

// sample is a value that the schema allows.
func (s schema) sample() any {
	switch {
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Type == "string":
		return strings.Repeat("a", max(1, s.MinLength))
	case s.Type == "integer" || s.Type == "number":
		if s.Minimum != nil {
			return *s.Minimum
		}
		return 0
	case s.Type == "boolean":
		return true
	case s.Type == "array":
		return []any{s.Items.sample()}
	}
	return object{}
}

func TestListedSchemaIsTheOneThatIsChecked(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool+printTool+`
[tools.many]
description = "A test."
command = ["true", "{name}", "{level}", "{count}", ["-f"], ["{flag}"], ["{list...}"]]
risk = "READ"
[tools.many.params]
name = { type = "string", required = true, min_length = 3 }
level = { type = "string", required = true, enum = ["low", "high"] }
count = { type = "integer", required = true, min = 5, max = 7 }
flag = { type = "boolean" }
list = { type = "array", items = "string" }
`)
	s := p.serve()
	s.send(request(1, "tools/list", nil))
	var list struct {
		Tools []struct {
			Name        string `json:"name"`
			InputSchema schema `json:"inputSchema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(s.answer(1, patience).Result, &list); err != nil || len(list.Tools) != 4 {
		t.Fatalf("%d tools, %v", len(list.Tools), err)
	}
	accepted := func(tool string, args object, want bool) {
		t.Helper()
		f := s.call(tool, args)
		if (f.Outcome != "invalid_arguments") != want {
			t.Errorf("%s %s: %s, want accepted %t", tool, toJSON(args), f.Text, want)
		}
	}
	for _, tool := range list.Tools {
		if a := tool.InputSchema.Additional; tool.InputSchema.Type != "object" || a == nil || *a {
			t.Errorf("%s: additionalProperties is not false", tool.Name)
		}
		minimal, full := object{}, object{}
		for name, property := range tool.InputSchema.Properties {
			full[name] = property.sample()
			if slices.Contains(tool.InputSchema.Required, name) {
				minimal[name] = property.sample()
			}
		}
		accepted(tool.Name, minimal, true)
		accepted(tool.Name, full, true)
		extra := maps.Clone(minimal)
		extra["zz"] = 1
		accepted(tool.Name, extra, false)
		for _, name := range tool.InputSchema.Required {
			less := maps.Clone(minimal)
			delete(less, name)
			accepted(tool.Name, less, false)
			null := maps.Clone(minimal)
			null[name] = nil
			accepted(tool.Name, null, false)
		}
	}
	for name, value := range map[string]any{"name": "ab", "level": "LOW", "count": 8, "flag": "true", "list": "a"} {
		args := object{"name": "abc", "level": "low", "count": 5}
		args[name] = value
		f := s.call("many", args)
		if f.Outcome != "invalid_arguments" || !strings.Contains(f.Text, name) {
			t.Errorf("%s = %v: %s", name, value, f.Text)
		}
	}
}

func TestCatalogIsFrozenWhileServing(t *testing.T) {
	t.Parallel()
	p := newPlace(t, fixed("before", "echo before"))
	s := p.serve()
	expect(t, s.call("before", nil), 0)
	p.writeCatalog("[catalog]\nname = \"tests\"\n" + fixed("after", "echo after"))
	if f := s.call("before", nil); f.Stdout != "before\n" {
		t.Errorf("stdout %q", f.Stdout)
	}
	if a := s.answer(s.begin("after", nil), patience); a.Error == nil || a.Error.Code != -32602 {
		t.Errorf("a tool that was added while serving: %s", toJSON(a))
	}
}

func TestFoundCatalogIsUsedOnlyWhenTrusted(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	file := p.write("tools.toml", fixed("hi", "echo hi"), 0o644)
	found := func(args ...string) ran {
		cmd := p.command(args...)
		cmd.Args = append([]string{toolrun}, append(args, "--data", p.data)...)
		return finish(t, cmd)
	}
	if got := found("call", "hi"); got.code != 125 && got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, "trust") {
		t.Errorf("untrusted: exit %d, stdout %q, stderr %q", got.code, got.stdout, got.stderr)
	}
	if got := found("serve"); got.code != 2 || !strings.Contains(got.stderr, "trust") {
		t.Errorf("untrusted: exit %d, stderr %q", got.code, got.stderr)
	}
	if got := found("trust"); got.code != 0 {
		t.Fatalf("trust: exit %d, stderr %q", got.code, got.stderr)
	}
	if got := found("call", "hi"); got.code != 0 || !strings.Contains(got.stdout, "hi") {
		t.Errorf("trusted: exit %d, stdout %q, stderr %q", got.code, got.stdout, got.stderr)
	}
	if err := os.WriteFile(file, []byte(fixed("hi", "echo changed")), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := found("serve"); got.code != 2 || !strings.Contains(got.stderr, "echo changed") {
		t.Errorf("changed: exit %d, stderr %q", got.code, got.stderr)
	}
}

func TestCallEndsLikeItsTool(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool+fixed("slow", "sleep 62.9", `timeout = "1s"`)+fixed("gone", "x")+fixed("seven", "echo out; echo err >&2; exit 7"))
	p.writeCatalog(strings.Replace(readFile(t, p.catalog), `["sh", "-c", '''x''']`, `["/no/such"]`, 1))
	for _, want := range []struct {
		args []string
		code int
	}{
		{[]string{"seven"}, 7}, {[]string{"slow"}, 124}, {[]string{"sh"}, 125}, {[]string{"sh", "script=true", "other=1"}, 125}, {[]string{"gone"}, 126},
		{[]string{"no_such_tool"}, 127}, {[]string{"sh", "script=kill -9 $$"}, 137}, {[]string{"sh", "--json", `{"script":"exit 3"}`}, 3}, {[]string{"sh", "script=true"}, 0},
	} {
		if got := p.run(append([]string{"call"}, want.args...)...); got.code != want.code {
			t.Errorf("call %v: exit %d, want %d\n%s%s", want.args, got.code, want.code, got.stdout, got.stderr)
		}
	}
	if n := len(p.rows()); n != 9 {
		t.Errorf("%d rows for 9 calls", n)
	}
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestWorkspaceThatIsTooWideIsRefused(t *testing.T) {
	t.Parallel()
	p := barePlace(t, oneTool)
	home := filepath.Join(p.root, "home")
	for _, dir := range []string{"/", home, filepath.Dir(home), p.data, filepath.Dir(p.data)} {
		cmd := p.command("serve")
		cmd.Args = []string{toolrun, "serve", "--catalog", p.catalog, "--data", p.data, "--workspace", dir}
		if got := finish(t, cmd); got.code != 2 || !strings.Contains(got.stderr, fmt.Sprint(dir)) {
			t.Errorf("workspace %s: exit %d, %s", dir, got.code, got.stderr)
		}
	}
}
