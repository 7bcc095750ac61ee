package tests

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// provable is a place where some calls were made, and their ids by what they did.
func provable(t *testing.T) (p *place, ids map[string]string) {
	t.Helper()
	p = newPlace(t, shTool+`
[tools.exists]
description = "Tells whether a file is there."
command = ["ls", "--", "{path}"]
risk = "READ"
[tools.exists.params.path]
type = "string"
required = true
[tools.exists.params.tags]
type = "array"
items = "string"
`)
	p.env = append(p.env, "TOOLRUN_SESSION_ID=S")
	for _, name := range []string{"tests/a.py", "b.txt"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(p.work, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(p.work, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := p.serve()
	ids = map[string]string{}
	for _, c := range []struct {
		name, tool string
		args       object
	}{
		{"first", "exists", object{"path": "tests/a.py", "tags": []string{"one", "two"}}},
		{"missing", "exists", object{"path": "tests/missing.py"}},
		{"other", "exists", object{"path": "b.txt"}},
		{"piped", "sh", sh("ls nothere | cat")},
		{"plain", "sh", sh("ls tests")},
	} {
		ids[c.name] = s.call(c.tool, c.args).ToolCallID
	}
	s.stdin.Close()
	s.wait(patience)
	return p, ids
}

func TestProveAnswersAQuestionOfTheRecord(t *testing.T) {
	t.Parallel()
	p, ids := provable(t)
	soon := time.Now().UTC().Add(time.Hour).Format(time.RFC3339)
	for _, c := range []struct {
		ask  string // the flags, "; " between them
		want string // whose receipt; "" none
		but  string // what is said on stderr where there is none
	}{
		{"--tool; exists", "other", ""},
		{"--tool; exists; --exit; 0; --arg; path=tests/*", "first", ""},
		{"--arg; path=tests/*; --arg; tags=two", "first", ""},
		{"--exit; 2", "missing", ""},
		{"--tool; sh; --exit; 0", "plain", ""},
		{"--tool; exists; --exit; 0; --session; S; --after; 1h", "other", ""},
		{"--tool; exists; --after; " + ids["missing"], "other", ""},
		{"--tool; sh; --arg; script=*cat", "piped", ""},
		{"--tool; sh; --exit; 0; --arg; script=*cat; --allow-shell", "piped", ""},
		{"--tool; exists; --until; " + soon, "other", ""},

		{"--tool; sh; --exit; 0; --arg; script=*cat", "", "may have been masked"},
		{"--tool; exists; --exit; 7", "", "it ended with exit, exit 2"},
		{"--tool; exists; --arg; path=*", "other", ""},
		{"--tool; exists; --arg; path=nothing/*", "", "no argument fits path=nothing/*"},
		{"--tool; exists; --arg; tags=three", "", "no argument fits tags=three"},
		{"--tool; deploy", "", "it is of exists"},
		{"--tool; exists; --after; " + ids["other"], "", "it stands before " + ids["other"]},
		{"--tool; exists; --after; " + soon, "", "it began before "},
		{"--tool; exists; --session; T", "", "nothing proved"},
		{"--tool; exists; --after; nobody", "", "--after"},
	} {
		args := append([]string{"prove"}, strings.Split(c.ask, "; ")...)
		got := p.query(args...)
		if c.want != "" {
			if got.code != 0 || !strings.Contains(got.stdout, `"tool_call_id":"`+ids[c.want]+`"`) {
				t.Errorf("%s: status %d, want the receipt of %s (%s)\n%s%s", c.ask, got.code, c.want, ids[c.want], got.stdout, got.stderr)
			}
			continue
		}
		if got.code != 3 || got.stdout != "" || !strings.Contains(got.stderr, c.but) {
			t.Errorf("%s: status %d, want 3 and %q\n%s%s", c.ask, got.code, c.but, got.stdout, got.stderr)
		}
	}
	// What comes out is checked by somebody else; as JSON there is what lacks.
	receipt := filepath.Join(p.root, "receipt.txt")
	if err := os.WriteFile(receipt, []byte(p.query("prove", "--tool", "exists", "--exit", "2").stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p.query("verify", receipt, "--key", filepath.Join(p.data, "checkpoint.pub")); got.code != 0 {
		t.Errorf("verify of the receipt: status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	got := p.query("prove", "--tool", "exists", "--exit", "7", "--json")
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	var near struct {
		Type   string   `json:"type"`
		CallID string   `json:"tool_call_id"`
		Lacks  []string `json:"lacks"`
	}
	if err := json.Unmarshal([]byte(lines[0]), &near); err != nil || got.code != 3 || len(lines) != 3 || near.Type != "nearest" || near.CallID != ids["other"] || len(near.Lacks) != 1 {
		t.Errorf("%v: status %d: %+v\n%s", err, got.code, near, got.stdout)
	}
	for _, args := range [][]string{{}, {ids["first"], "--tool", "exists"}, {"--arg", "path"}, {"--arg", "path=[", "--tool", "exists"}, {"--arg", "=a"}} {
		if got := p.query(append([]string{"prove"}, args...)...); got.code != 2 {
			t.Errorf("prove %v: status %d\n%s", args, got.code, got.stderr)
		}
	}
}

// Whatever somebody writes into the record by hand, it proves nothing, it is not signed for the asking, and it does not hide
// what is proved without it.
func TestForgedOrEditedRowsProveNothing(t *testing.T) {
	t.Parallel()
	p, ids := provable(t)
	p.damaged = true
	ledger, checkpoints := filepath.Join(p.data, "ledger.jsonl"), filepath.Join(p.data, "checkpoints")
	lines := strings.SplitAfter(readFile(t, ledger), "\n")
	signed := readFile(t, checkpoints)
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what string, code int, text string, args ...string) {
		t.Helper()
		got := p.query(append([]string{"prove"}, args...)...)
		if got.code != code || !strings.Contains(got.stdout+got.stderr, text) || code != 0 && got.stdout != "" {
			t.Errorf("%s: status %d, want %d and %q\n%s%s", what, got.code, code, text, got.stdout, got.stderr)
		}
		if readFile(t, checkpoints) != signed {
			t.Errorf("%s: something was signed", what)
			write(checkpoints, signed)
		}
	}
	forged := strings.NewReplacer(`"`+ids["first"]+`"`, `"forged"`, `"seq":0,`, `"seq":5,`).Replace(lines[0])
	write(ledger, strings.Join(lines, "")+forged)
	expect("a row that was added", 4, "no tool_call", "forged")
	expect("a row that was added, asked for", 0, `"tool_call_id":"`+ids["first"]+`"`, "--tool", "exists", "--exit", "0", "--arg", "path=tests/a.py")
	expect("a row that was added, and no other fits", 3, "it does not verify", "--tool", "exists", "--exit", "0", "--after", ids["plain"])

	twin := strings.NewReplacer(`"seq":0,`, `"seq":5,`, `"session_id":"S"`, `"session_id":"T"`).Replace(lines[0])
	write(ledger, strings.Join(lines, "")+twin)
	expect("a row with the id of another one", 3, "another row with this id was signed", "--tool", "exists", "--session", "T")
	expect("a row with the id of another one, beside it", 0, `"session_id":"S"`, "--tool", "exists", "--session", "S", "--arg", "path=tests/a.py")
	write(ledger, strings.Join(lines, "")+forged)

	// With its lines in the trace of the run, which is sealed.
	rows := p.rows()
	trace := filepath.Join(p.data, "runs", rows[0].RunID+".jsonl")
	whole := readFile(t, trace)
	var more strings.Builder
	for line := range strings.Lines(whole) {
		if strings.Contains(line, `"tool_call_id":"`+ids["first"]+`"`) {
			more.WriteString(strings.ReplaceAll(line, `"`+ids["first"]+`"`, `"forged"`))
		}
	}
	write(trace, whole+more.String())
	expect("a row that was added with its lines", 4, "after the run had ended", "forged")
	expect("a row that was added with its lines, asked for", 3, "it does not verify", "--tool", "exists", "--exit", "0", "--after", ids["plain"])
	write(trace, whole)

	edit := func(i int, old, new string) {
		t.Helper()
		if !strings.Contains(lines[i], old) {
			t.Fatalf("no %s in %s", old, lines[i])
		}
		write(ledger, strings.Join(lines[:i], "")+strings.Replace(lines[i], old, new, 1)+strings.Join(lines[i+1:], ""))
	}
	edit(1, `"exit_code":2`, `"exit_code":0`)
	expect("an exit code that was edited", 3, "exit_code", "--tool", "exists", "--exit", "0", "--arg", "path=tests/missing.py")
	edit(1, `"session_id":"S"`, `"session_id":"T"`)
	expect("a session that was edited", 3, "not what was signed", "--tool", "exists", "--session", "T")
	edit(0, `"started_at":"2`, `"started_at":"3`)
	expect("a time that was edited", 3, "nothing proved", "--tool", "exists", "--after", "2999-01-01")
	write(ledger, strings.Join(lines, ""))

	object := objectPath(p.data, rows[0].InputHash)
	content := readFile(t, object)
	write(object, strings.Replace(content, "a.py", "c.py", 1))
	expect("arguments that were edited", 3, "no argument fits", "--tool", "exists", "--arg", "path=tests/c.py")
	write(object, content)
	output := objectPath(p.data, *rows[0].OutputHash)
	content = readFile(t, output)
	write(output, "something else\n")
	expect("an output that was changed", 3, "it does not verify", "--tool", "exists", "--arg", "path=tests/a.py")
	write(output, content)
	expect("as it was", 0, `"tool_call_id":"`+ids["first"]+`"`, "--tool", "exists", "--arg", "path=tests/a.py")
}

func TestProveAsksSealedMonthsToo(t *testing.T) {
	t.Parallel()
	p := barePlace(t, "")
	p.damaged = true
	calls := threeMonths(newPast(p))
	p.query("sessions") // closes what the past left, which signs
	p.archived(0)
	for _, c := range []struct {
		ask  []string
		want int // index of a call
	}{
		{[]string{"--tool", "say", "--session", "winter"}, 2},
		{[]string{"--tool", "say", "--session", "winter", "--exit", "1"}, 1},
		{[]string{"--tool", "say", "--until", "2025-01-01", "--exit", "0"}, 0},
		{[]string{"--arg", "n=5", "--after", "2025-01-20"}, 4},
		{[]string{"--arg", "n=5", "--after", calls[3].id}, 4},
	} {
		got := p.query(append([]string{"prove"}, c.ask...)...)
		if got.code != 0 || !strings.Contains(got.stdout, `"tool_call_id":"`+calls[c.want].id+`"`) {
			t.Errorf("%v: status %d, want %s\n%s%s", c.ask, got.code, calls[c.want].id, got.stdout, got.stderr)
		}
	}
	if got := p.query("prove", "--arg", "n=5", "--hot"); got.code != 3 {
		t.Errorf("--hot: status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	// What cannot be read is damaged, and not missing.
	for _, c := range []struct {
		file, ask string
		code      int
	}{{"runs.tar.zst", "prove", 4}, {"store.tar.zst", "output", 3}} {
		path := filepath.Join(p.data, "archive", "2025-01", c.file)
		good := readFile(t, path)
		bad := []byte(good)
		bad[len(bad)/4] ^= 1
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := p.query(c.ask, calls[3].id); got.code != c.code || !strings.Contains(got.stderr, c.file+": damaged archive") {
			t.Errorf("%s with a damaged %s: status %d\n%s%s", c.ask, c.file, got.code, got.stdout, got.stderr)
		}
		if err := os.WriteFile(path, []byte(good), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
