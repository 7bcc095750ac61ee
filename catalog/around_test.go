package catalog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toolrun/catalog/prices"
)

func TestSecretsAreReadFromWhereTheyAreDeclared(t *testing.T) {
	dir := write(t, map[string]string{"tools.toml": lines(`[secrets]`, `B = { file = "b.txt" }`, `A = { env = "A_VAR" }`, `C = { file = "/abs/c" }`)})
	c, err := Load("tools.toml")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range c.Secrets() {
		names = append(names, s.Name+" "+s.Env+s.File)
	}
	if want := []string{"A A_VAR", "B " + filepath.Join(dir, "b.txt"), "C /abs/c"}; !slices.Equal(names, want) {
		t.Errorf("secrets %q, want %q", names, want)
	}
	env := map[string]string{"A_VAR": "12345678"}
	files := map[string]string{filepath.Join(dir, "b.txt"): "two\nlines\r\n", "/abs/c": "exactly8"}
	getenv := func(name string) string { return env[name] }
	readFile := func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	values, err := c.ResolveSecrets(getenv, readFile)
	if err != nil || values["A"] != "12345678" || values["B"] != "two\nlines" || values["C"] != "exactly8" || len(values) != 3 {
		t.Errorf("%q, %v", values, err)
	}

	env["A_VAR"] = "hunter2"
	files["/abs/c"] = "\n"
	delete(files, filepath.Join(dir, "b.txt"))
	values, err = c.ResolveSecrets(getenv, readFile)
	want := lines(
		"tools.toml:2: secrets.B: its file cannot be read: file does not exist",
		"tools.toml:3: secrets.A: the variable A_VAR holds only 7 bytes; a secret has at least 8, or it would be masked all over the record",
		"tools.toml:4: secrets.C: its file is empty: write it, at least 8 bytes")
	if err == nil || err.Error()+"\n" != want || values != nil {
		t.Errorf("got %v, want %s", err, want)
	}
	var one *Error
	if !errors.As(err, &one) {
		t.Error("the faults of secrets are no catalog errors")
	}
	if _, err := loadText(t, "").ResolveSecrets(getenv, readFile); err != nil {
		t.Errorf("no secrets: %v", err)
	}
}

func TestLongestFragmentOfTheProviderGivesThePrice(t *testing.T) {
	c := loadText(t, lines(`[prices]`, `"anthropic/claude" = [3.0, 15]`, `"anthropic/claude-opus" = [15, 75.0]`, `"ollama/" = [0, 0.0]`, `"openai/gpt" = [1.25, 10.0]`))
	tests := []struct {
		provider, model string
		in              float64
		ok              bool
	}{
		{"anthropic", "claude-sonnet-4-5", 3, true},
		{"anthropic", "Claude-Opus-4", 15, true},
		{"anthropic", "gpt-5", 0, false},
		{"ollama", "whatever", 0, true},
		{"openai", "chatgpt", 1.25, true},
		{"google", "gemini", 0, false},
		{"", "", 0, false},
	}
	table := prices.Table{c.Prices()}
	for _, tt := range tests {
		if p, ok := table.Find(tt.provider, tt.model); ok != tt.ok || p.In != tt.in {
			t.Errorf("%s/%s: %+v %t", tt.provider, tt.model, p, ok)
		}
	}
	if got := c.Prices().Prices; len(got) != 4 || got[0] != (prices.Price{Provider: "anthropic", Fragment: "claude", In: 3, Out: 15}) {
		t.Errorf("prices %v", got)
	}
}

func TestFindLooksUpToTheRootOfTheRepositoryAndNotAbove(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"repo/.git", "repo/a/b", "repo/own/x", "loose/a", "tree/a"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"tools.toml", "repo/tools.toml", "repo/own/tools.toml", "loose/tools.toml", "tree/.git", "tree/a/x"} {
		if err := os.WriteFile(filepath.Join(top, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for start, want := range map[string]string{
		"repo": "repo/tools.toml", "repo/a/b": "repo/tools.toml", "repo/own/x": "repo/own/tools.toml", "loose": "loose/tools.toml",
		"loose/a": "", // outside of a repository no parent is looked at
		"tree/a":  "", // a .git that is a file, as in a worktree, is a root too
	} {
		got, err := Find(filepath.Join(top, start))
		if want != "" && (err != nil || got != filepath.Join(top, want)) || want == "" && !errors.Is(err, ErrNotFound) {
			t.Errorf("Find(%s) = %s, %v, want %q", start, got, err, want)
		}
	}
	if err := os.Mkdir(filepath.Join(top, "tree/a/tools.toml"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := Find(filepath.Join(top, "tree/a")); err == nil {
		t.Errorf("a folder was found: %s", got)
	}
}

func TestWhatWillSurpriseIsAWarning(t *testing.T) {
	c := loadText(t, lines(
		`[tools.Big]`, `description = "x"`, `command = ["x"]`, `risk = "READ"`, `limits.pids = 19`,
		`[tools.small]`, `command = ["x", "{p}"]`, `risk = "READ"`, `[tools.small.params]`,
		`p = { type = "string", required = true, pattern = "(?i)x", default = "x" }`, `q = { type = "string", pattern = "^(?:a|b)$" }`))
	want := lines(
		"tools.toml:1: tools.Big: some clients rename or drop the name Big; [a-z][a-z0-9_]{0,39} is safe everywhere",
		"tools.toml:5: tools.Big.limits.pids: pids = 19 counts threads too; Go, Node and Java programs need about 20",
		"tools.toml:6: tools.small: the tool has no description, by which a model chooses it",
		"tools.toml:10: tools.small.params.p: the default of p is never used, as the parameter is required: take one of the two out",
		"tools.toml:10: tools.small.params.p: the pattern of p is RE2's own; clients that check the schema themselves may not read it",
		"tools.toml:11: tools.small.params.q: the parameter q is used by neither command nor stdin")
	if got := c.Warnings().Error() + "\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got, want := loadText(t, "").Warnings().Error(), "tools.toml: no tool is declared, so that an agent has none: write [tools.NAME]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAParameterInAScriptIsAWarning(t *testing.T) {
	for _, tt := range []struct{ command, says string }{
		{`["bash", "-c", "echo {p}"]`, `{p} is a part of a script, so that bash runs what a value of it says: give it as an argument of its own, as in ["bash", "-c", "echo \"$1\"", "bash", "{p}"]`},
		{`["/bin/sh", "-lc", "echo '{p}'"]`, `["sh", "-lc", "… \"$1\"", "sh", "{p}"]`},
		{`["bash", "-euo", "pipefail", "-c", "-x", "ls {p}; ls {q} {p}"]`, `["bash", "-c", "ls \"$1\"; ls \"$2\" \"$1\"", "bash", "{p}", "{q}"]`},
		{`["env", "A=1", "zsh", "-c", ["ls {q}"]]`, `as in ["zsh", "-c", `},
		{`["dash", ["-{q}"], "-c", "ls {p}"]`, `as in ["dash", "-c", `},
		{`["ksh93", "-c", "ls {p}"]`, `as in ["ksh93", "-c", `},
		{`["fish", "--command", "ls {p}"]`, `as in ["fish", "--command", "… $argv[1]", "{p}"]`},
		{`["python3.12", "-Ic", "print('{p}')"]`, `as in ["python3.12", "-Ic", "… sys.argv[1]", "{p}"]`},
		{`["node", "-pe", "'{p}'"]`, `as in ["node", "-pe", "… process.argv[1]", "{p}"]`},
		{`["nodejs", "--eval", "f('{p}')"]`, `process.argv[1]`},
		{`["perl", "-ne", "print if /{p}/", "a"]`, `as in ["perl", "-ne", "… $ARGV[0]", "{p}"]`},
		{`["ruby", "-e", "puts '{p}'"]`, `ARGV[0]`},

		{`["bash", "-c", "{p}"]`, ""}, // a tool that runs what it is given
		{`["bash", "-c", "echo \"$1\"", "bash", "{p}"]`, ""},
		{`["bash", "run.sh", "-c", "x{p}"]`, ""},
		{`["bash", "--norc", "run.sh", "-c", "x{p}"]`, ""},
		{`["python3", "tool.py", "-c", "x{p}"]`, ""},
		{`["python3", "-c", "import sys", "x{p}"]`, ""},
		{`["grep", "-e", "x{p}"]`, ""},
		{`["ls", "x{p}"]`, ""},
	} {
		c := loadText(t, lines(`[tools.a]`, `description = "x"`, `command = `+tt.command, `risk = "READ"`,
			`[tools.a.params]`, `p = { type = "string", required = true }`, `q = { type = "string", default = "d" }`))
		said := ""
		for _, w := range c.Warnings() {
			if w.Key == "tools.a.command" && w.Line == 3 {
				said = w.Problem
			}
		}
		if (said == "") != (tt.says == "") || !strings.Contains(said, tt.says) {
			t.Errorf("%s: %q, want %q", tt.command, said, tt.says)
		}
	}
}

func TestLinesAreFoundInEveryShapeOfTOML(t *testing.T) {
	text := "\ufeff# a comment [no.table]\r\n" +
		"a.\"b c\" = 1 # x = 2\n" +
		"m = \"\"\"\n[not.a.table]\nx = 1 \\\"\"\"\"\n" +
		"l = '''\n'' q = 1\n''''\n" +
		"[ t . 'u' ]\n" +
		"v = [ 1, # ]\n  [ \"]\",\n    { w = { x = 1 }, y.z = '}' } ],\n]\n" +
		"\"k\\u0041\\n\" = 1979-05-27 07:32:00\n" +
		"[[t.s]]\nn = 1\n[[t.s]]\nn = 2\n[t.s.deep]\no = 3\n"
	want := map[string]int{
		"a": 2, `a."b c"`: 2, "m": 3, "l": 6, "t": 9, "t.u": 9, "t.u.v": 10, "t.u.v[0]": 10, "t.u.v[1]": 11, "t.u.v[1][0]": 11, "t.u.v[1][1]": 12,
		"t.u.v[1][1].w": 12, "t.u.v[1][1].w.x": 12, "t.u.v[1][1].y": 12, "t.u.v[1][1].y.z": 12, `t.u."kA\n"`: 14,
		"t.s": 15, "t.s[0]": 15, "t.s[0].n": 16, "t.s[1]": 17, "t.s[1].n": 18, "t.s[1].deep": 19, "t.s[1].deep.o": 20,
	}
	got, deep := keyLines(text)
	for key, line := range want {
		if got[key] != line {
			t.Errorf("%s is on line %d, want %d", key, got[key], line)
		}
	}
	for key := range got {
		if want[key] == 0 {
			t.Errorf("%s was found and is not there", key)
		}
	}
	if deep != 0 {
		t.Errorf("too deep on line %d", deep)
	}
}

func TestSizesAndDurations(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "1": 1, "512B": 512, "10KiB": 10 << 10, "64MiB": 64 << 20, "1GiB": 1 << 30, "3TiB": 3 << 40, "8388607TiB": 8388607 << 40, "9223372036854775807": 1<<63 - 1,
	} {
		n, problem := parseSize(s)
		if n != want || problem != "" {
			t.Errorf("%s: %d %s", s, n, problem)
		}
		if again, _ := parseSize(FormatSize(n)); again != n {
			t.Errorf("%s is written as %s", s, FormatSize(n))
		}
	}
	for _, s := range []string{"", "B", "KiB", "1 GiB", "1gib", "1GB", "1K", "1.5GiB", "-1", "-1MiB", "+1", "0x10", "1_000", "8388608TiB", "9223372036854775808", "99999999999999999999", "٣"} {
		if n, problem := parseSize(s); problem == "" {
			t.Errorf("%q is %d bytes", s, n)
		}
	}
	for _, s := range []string{"", "2", "m", "2 m", "-1s", "1d", "1ns", "0.1ms", "99999999999h", "1e3s", strings.Repeat("9", 400) + "s"} {
		if d, problem := parseDuration(s); problem == "" {
			t.Errorf("%q is %v", s, d)
		}
	}
}
