package tests

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// launchPlace is a place in which a person ran `toolrun init`, with programs on PATH that stand for agents.
func launchPlace(t *testing.T) *place {
	t.Helper()
	p := newPlace(t, "")
	os.Remove(p.catalog)
	p.catalog = filepath.Join(p.work, "tools.toml")
	p.env[0] = "PATH=" + filepath.Join(p.root, "bin") + ":" + filepath.Dir(toolrun) + strings.TrimPrefix(p.env[0], "PATH=/usr/local/sbin")
	if got := p.start0("init"); got.code != 0 {
		t.Fatalf("init: %s", got.stderr)
	}
	return p
}

// start0 runs toolrun as a person does in the workspace: nothing but the data directory is named.
func (p *place) start0(args ...string) ran {
	p.t.Helper()
	cmd := p.command()
	cmd.Args = append([]string{toolrun}, args...)
	cmd.Env = append(slices.Clone(p.env), "TOOLRUN_DATA="+p.data)
	return finish(p.t, cmd)
}

// agent puts a program on PATH.
func (p *place) agent(name, script string) {
	p.t.Helper()
	dir := filepath.Join(p.root, "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		p.t.Fatal(err)
	}
}

// dump is an agent that shows how it was started: its arguments, its environment, and the files of its launch.
const dump = `
for a; do printf 'arg %s\n' "$a"; done
env | sed 's/^/env /'
for f in "$TOOLRUN_DATA"/launch/*/*; do [ -f "$f" ] && printf 'file %s %s\n' "${f##*/}" "$(tr '\n' ' ' < "$f")"; done
exit 0
`

// told is what dump said, by the first word.
func dumped(out, kind string) (lines []string) {
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), kind+" "); ok {
			lines = append(lines, rest)
		}
	}
	return lines
}

func valueOf(lines []string, prefix string) string {
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			return rest
		}
	}
	return ""
}

// box is the entry of a client's configuration that starts toolrun.
type box struct {
	Command     any               `json:"command" toml:"command"`
	Args        []string          `json:"args" toml:"args"`
	Env         map[string]string `json:"env" toml:"env"`
	Environment map[string]string `json:"environment"`
	EnvVars     []string          `toml:"env_vars"`
	Timeout     int64             `json:"timeout"`
	ToolTimeout int64             `toml:"tool_timeout_sec"`
	Required    bool              `toml:"required"`
}

// configured reads how a launched agent was told of toolrun.
func configured(t *testing.T, agent, out string) box {
	t.Helper()
	var c struct {
		Servers map[string]box `json:"mcpServers" toml:"mcp_servers"`
		MCP     map[string]box `json:"mcp"`
	}
	var err error
	switch agent {
	case "codex":
		_, err = toml.Decode(valueOf(dumped(out, "arg"), "--config="), &c)
	case "opencode":
		if err := json.Unmarshal([]byte(valueOf(dumped(out, "env"), "OPENCODE_CONFIG_CONTENT=")), &c); err != nil {
			t.Fatal(err)
		}
		return c.MCP["box"]
	case "gemini":
		err = json.Unmarshal([]byte(valueOf(dumped(out, "file"), "settings.json ")), &c)
	default:
		err = json.Unmarshal([]byte(valueOf(dumped(out, "file"), "mcp.json ")), &c)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", agent, err, out)
	}
	return c.Servers["box"]
}

func TestEachAgentIsConfiguredForOneRunAndNoFileOfTheUserIsTouched(t *testing.T) {
	t.Parallel()
	p := launchPlace(t)
	text, err := os.ReadFile(p.catalog)
	if err != nil {
		t.Fatal(err)
	}
	p.writeCatalog("[secrets]\nTOKEN = { env = \"DEPLOY_TOKEN\" }\n" + strings.Replace(string(text), "[tools.read_file]", "[tools.read_file]\nenv_pass = [\"PROJECT_MODE\", \"NOT_SET\"]\ntimeout = \"20m\"", 1))
	p.env = append(p.env, "DEPLOY_TOKEN=correct-horse-battery", "PROJECT_MODE=fast")
	if got := p.start0("trust"); got.code != 0 {
		t.Fatal(got.stderr)
	}
	before := tree(t, p.root)
	for agent, off := range map[string]string{
		"claude": "--tools=", "codex": "--config=features.shell_tool=false", "gemini": "--policy=", "opencode": "", "qwen": "--exclude-tools=run_shell_command,",
	} {
		p.agent(agent, dump)
		got := p.start0("launch", agent, "--", "--flag of the user", "-p", "do it")
		args := dumped(got.stdout, "arg")
		if got.code != 0 || !slices.Equal(args[max(len(args)-3, 0):], []string{"--flag of the user", "-p", "do it"}) {
			t.Errorf("%s: status %d, arguments %q\n%s", agent, got.code, args, got.stderr)
			continue
		}
		if off != "" && !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, off) }) {
			t.Errorf("%s: its own tools are not switched off by %s: %q", agent, off, args)
		}
		b := configured(t, agent, got.stdout)
		env := b.Env
		command := b.Command
		if agent == "opencode" {
			env = b.Environment
			list, _ := command.([]any)
			if len(list) != 2 || list[1] != "serve" {
				t.Errorf("opencode: command %v", command)
				continue
			}
			command = list[0]
		} else if !slices.Equal(b.Args, []string{"serve"}) {
			t.Errorf("%s: args %q", agent, b.Args)
		}
		if command != toolrun {
			t.Errorf("%s: command %v, want %s", agent, command, toolrun)
		}
		if env["TOOLRUN_DATA"] != p.data || !strings.HasPrefix(env["TOOLRUN_LAUNCH"], p.data+"/launch/") || env["TOOLRUN_CATALOG"] != "" {
			t.Errorf("%s: environment of the server: %v", agent, env)
		}
		if session := env["TOOLRUN_SESSION_ID"]; (session == "") != (agent == "codex") {
			t.Errorf("%s: session %q", agent, session)
		} else if agent == "claude" || agent == "qwen" || agent == "gemini" {
			if !slices.Contains(args, "--session-id="+session) {
				t.Errorf("%s: the agent's session is not the server's: %q", agent, args)
			}
		}
		if strings.Contains(strings.Join(append(dumped(got.stdout, "file"), args...), "\n"), "correct-horse") {
			t.Errorf("%s: a secret was written down", agent)
		}
		switch agent { // those that keep variables from their servers are told of the catalog's
		case "codex":
			if !slices.Equal(b.EnvVars, []string{"DEPLOY_TOKEN", "PROJECT_MODE"}) || !b.Required || b.ToolTimeout != 30*60 {
				t.Errorf("codex: %+v", b)
			}
		case "gemini":
			if env["DEPLOY_TOKEN"] != "$DEPLOY_TOKEN" || env["PROJECT_MODE"] != "$PROJECT_MODE" {
				t.Errorf("gemini: %v", env)
			}
			policy := valueOf(dumped(got.stdout, "file"), "policy.toml ")
			if !strings.Contains(policy, "run_shell_command") || strings.Contains(policy, `"read_file"`) || !strings.Contains(got.stderr, "not switched off: its own read_file") {
				t.Errorf("gemini's policy would take the catalog's own tools with it: %s\n%s", policy, got.stderr)
			}
		}
		if agent != "claude" && agent != "codex" && b.Timeout != 30*60*1000 {
			t.Errorf("%s: it waits %d ms, and the catalog has a tool of 20 minutes", agent, b.Timeout)
		}
		if !strings.Contains(got.stderr, "it started no toolrun server, so that nothing is on the record") {
			t.Errorf("%s: an agent that used nothing: %s", agent, got.stderr)
		}
		os.Remove(filepath.Join(p.root, "bin", agent))
	}
	os.Remove(filepath.Join(p.root, "bin"))
	if after := tree(t, p.root); !slices.Equal(before, after) {
		t.Errorf("files before: %q\nfiles after:  %q", before, after)
	}
}

// tree is every file below dir but those of the data directory that a launch may leave.
func tree(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && (!d.IsDir() || strings.Contains(path, "/launch/")) {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// calls is an agent that has the server which it is told of make three calls, of which one fails and one is refused.
const calls = `
for a; do case $a in --mcp-config=*) f=${a#*=};; esac; done
f=${f:-$TOOLRUN_MCP_CONFIG}
for pair in $(sed 's/.*"env":{\([^}]*\)}.*/\1/; s/","/" "/g; s/"//g' "$f"); do export "${pair%%:*}=${pair#*:}"; done
server=$(sed 's/.*"command":"\([^"]*\)".*/\1/' "$f")
printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_files"}}' \
  '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"missing"}}}' \
  '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"run_tests"}}' | "$server" serve
exit 7
`

func TestLaunchEndsAsTheAgentDidAndSaysWhatItsSessionDid(t *testing.T) {
	t.Parallel()
	p := launchPlace(t)
	p.agent("claude", calls)
	got := p.start0("launch", "claude")
	ended := regexp.MustCompile(`(?m)^toolrun: Claude Code ended with exit status 7 after \S+: 3 calls, 1 failed, 1 refused\ntoolrun: more: toolrun session (\S+)$`)
	m := ended.FindStringSubmatch(got.stderr)
	if got.code != 7 || m == nil {
		t.Fatalf("status %d\n%s", got.code, got.stderr)
	}
	if strings.Contains(got.stdout, "toolrun: ") {
		t.Errorf("stdout is the agent's: %s", got.stdout)
	}
	for _, r := range p.rows() {
		if r.SessionID != m[1] || !strings.Contains(string(r.raw), `"session_from":"env"`) {
			t.Errorf("row %s", r.raw)
		}
	}
	if got := p.query("session", m[1]); !strings.Contains(got.stdout, "3 calls, 1 failed, 1 refused") {
		t.Errorf("the command that shows more: %s%s", got.stdout, got.stderr)
	}

	// Any command is told by its environment, and the summary is of its runs alone.
	p.agent("loop", calls)
	got = p.start0("launch", "--json", "--", "loop")
	var s struct {
		Exit     int      `json:"exit_status"`
		Calls    int      `json:"calls"`
		Sessions []string `json:"session_ids"`
	}
	lines := strings.Split(strings.TrimSpace(got.stderr), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &s); err != nil || s.Exit != 7 || s.Calls != 3 || len(s.Sessions) != 1 || s.Sessions[0] == m[1] || got.code != 7 {
		t.Errorf("%v: status %d, %+v\n%s", err, got.code, s, got.stderr)
	}
	if left, _ := filepath.Glob(p.data + "/launch/*"); len(left) > 0 {
		t.Errorf("left of the launches: %v", left)
	}
}

func TestWhatKeepsToolrunFromServingIsSaidBeforeTheAgentBegins(t *testing.T) {
	t.Parallel()
	p := launchPlace(t)
	p.agent("claude", "echo BEGAN")
	text, err := os.ReadFile(p.catalog)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		catalog, stderr string
		args            []string
		code            int
	}{
		{string(text), "install it with npm install -g @openai/codex", []string{"launch", "codex"}, 127},
		{string(text), "no agent \"cursor\": one of claude, codex, gemini, opencode, qwen", []string{"launch", "cursor"}, 2},
		{string(text), "arguments for claude are written after --: toolrun launch claude -- ...", []string{"launch", "claude", "hello"}, 2},
		{string(text), "name an agent", []string{"launch"}, 2},
		{string(text), "change to sub first", []string{"launch", "claude", "--workspace", "sub"}, 2},
		{string(text) + "\n# changed\n", "has changed since it was accepted", []string{"launch", "claude"}, 2},
		{"[tools.x]\n", "tools.toml:1: ", []string{"launch", "claude"}, 2},
		{"", "make one with \"toolrun init\"", []string{"launch", "claude"}, 2},
	} {
		p.writeCatalog(c.catalog)
		if c.catalog == "" {
			os.Remove(p.catalog)
		}
		got := p.start0(c.args...)
		if got.code != c.code || !strings.Contains(got.stderr, c.stderr) || strings.Contains(got.stdout, "BEGAN") {
			t.Errorf("%q: status %d, stdout %q\n%s", c.args, got.code, got.stdout, got.stderr)
		}
	}
}

func TestPrintedSetupIsWhatTheAgentReads(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{"claude", "codex", "gemini", "opencode", "qwen"} {
		out := says(t, "launch", "--print", agent)
		first, text, _ := strings.Cut(out, "\n")
		var v map[string]any
		var err error
		if agent == "codex" {
			_, err = toml.Decode(text, &v)
		} else {
			err = json.Unmarshal([]byte(text), &v)
		}
		if err != nil || !strings.HasPrefix(first, "# ") || !strings.Contains(text, `"serve"`) {
			t.Errorf("%s: %v\n%s", agent, err, out)
		}
	}
}

func TestAnAgentThatGoesOnWithASessionKeepsIt(t *testing.T) {
	t.Parallel()
	p := launchPlace(t)
	p.agent("claude", dump)
	got := p.start0("launch", "claude", "--", "--resume", "3f2a9c10-5b1e-4c57-9a41-7d0f3c2b8e66")
	if strings.Contains(got.stdout, "--session-id") || configured(t, "claude", got.stdout).Env["TOOLRUN_SESSION_ID"] != "" {
		t.Errorf("a resumed session got another name:\n%s", got.stdout)
	}
	p.env = append(p.env, "TOOLRUN_SESSION_ID=mine")
	got = p.start0("launch", "claude", "--", "-c")
	if env := configured(t, "claude", got.stdout).Env; env["TOOLRUN_SESSION_ID"] != "mine" {
		t.Errorf("the session that a person named is not kept: %v", env)
	}
}
