package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// agentSessions is what real agents wrote of scripted sessions, and the record of each; see the package that reads it.
const agentSessions = "../archive/pairing/testdata"

// told is the session of an agent, copied to be audited: HOME has its transcript where the agent keeps it.
type told struct {
	data, home, transcript string
	session                string // as the ledger has it
}

// homes is where each agent keeps the transcript of a session.
var homes = map[string]string{
	"claude": ".claude/projects/-home-dev-project-work/%s.jsonl",
	"codex":  ".codex/sessions/2026/12/01/rollout-2026-12-01T01-42-34-%s.jsonl",
	"gemini": ".gemini/tmp/work/chats/session-2026-12-01T01-43-3c557b58.jsonl",
	"qwen":   ".qwen/projects/-home-dev-project-work/chats/%s.jsonl",
}

func tell(t testing.TB, client, name string) *told {
	t.Helper()
	root := t.TempDir()
	x := &told{data: filepath.Join(root, "data"), home: filepath.Join(root, "home")}
	from := filepath.Join(agentSessions, client, name)
	if err := os.CopyFS(x.data, os.DirFS(filepath.Join(from, "data"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(x.data, 0o700); err != nil {
		t.Fatal(err)
	}
	if client != "opencode" { // which tells times as numbers too
		x.yesterday(t, filepath.Join(x.data, "ledger.jsonl"))
	}
	rows, problems := readRows(x.data)
	if len(rows) == 0 || len(problems) > 0 {
		t.Fatal(rows, problems)
	}
	x.session = rows[0].SessionID
	files, err := filepath.Glob(filepath.Join(from, "transcript.*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	x.transcript = filepath.Join(root, filepath.Base(files[0]))
	if place := homes[client]; place != "" {
		x.transcript = filepath.Join(x.home, strings.Replace(place, "%s", x.session, 1))
	}
	if err := os.MkdirAll(filepath.Dir(x.transcript), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(x.transcript, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if client != "opencode" {
		x.yesterday(t, x.transcript)
	}
	return x
}

// yesterday moves the times of a file there, whatever the clock says now.
func (x *told) yesterday(t testing.TB, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	day := time.Now().UTC().AddDate(0, 0, -1).Format("2006-01-02T")
	if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte("2026-12-01T"), []byte(day)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// toolrun runs a command on the record of the session, in its home.
func (x *told) toolrun(t testing.TB, args ...string) (stdout string, status int) {
	t.Helper()
	cmd := exec.Command(toolrun, append(args, "--data", x.data)...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + x.home}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	if errs.Len() > 0 {
		t.Logf("toolrun %s: %s", strings.Join(args, " "), errs.String())
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// findings are the lines of audit --json that are findings, as "kind tool" and "mark sentence".
func findings(t testing.TB, out string) (list []string) {
	t.Helper()
	for line := range strings.Lines(out) {
		var l struct {
			Type, Kind, Mark, Sentence string
			Tool                       string `json:"tool_name"`
			Finding                    bool
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if l.Finding {
			list = append(list, strings.TrimSpace(l.Kind+l.Mark+" "+l.Tool+l.Sentence))
		}
	}
	return list
}

var agentNames = []string{"claude", "codex", "gemini", "opencode", "qwen"}

func TestAuditGivesNoAlarmForHonestAgents(t *testing.T) {
	t.Parallel()
	for _, client := range agentNames {
		for _, name := range []string{"honest-tests", "honest-parallel", "honest-failures", "honest-odd", "honest-cut", "honest-stderr", "honest-retries", "honest-cancelled", "honest-handles", "honest-binary"} {
			x := tell(t, client, name)
			if out, status := x.toolrun(t, "audit", x.transcript); status != 0 || !strings.Contains(out, " paired") {
				t.Errorf("%s/%s: status %d\n%s", client, name, status, out)
			}
		}
	}
}

func TestAuditFindsWhatAnAgentDidNotTellTruly(t *testing.T) {
	t.Parallel()
	shell := map[string]string{"claude": "Bash", "codex": "exec_command", "gemini": "run_shell_command", "opencode": "bash", "qwen": "run_shell_command"}
	for _, client := range agentNames {
		x := tell(t, client, "deceit")
		text, err := os.ReadFile(x.transcript)
		if err != nil {
			t.Fatal(err)
		}
		// The model made up a tool, wrote a file behind toolrun's back and claimed three things. One result is changed here.
		if text = bytes.ReplaceAll(text, []byte(`b.txt\n`), []byte(`c.txt\n`)); bytes.Contains(text, []byte(`b.txt\\n`)) {
			text = bytes.ReplaceAll(text, []byte(`b.txt\\n`), []byte(`c.txt\\n`))
		}
		if err := os.WriteFile(x.transcript, text, 0o600); err != nil {
			t.Fatal(err)
		}
		out, status := x.toolrun(t, "audit", "--json", x.transcript)
		want := []string{
			"invented run_tests", "bypassed " + shell[client], "altered read_file",
			"without evidence I ran the test suite and all 12 tests pass.", "without evidence I also deployed the release to production.", "contradicted missing.txt was read without errors.",
		}
		if got := findings(t, out); !slices.Equal(got, want) || status != 3 {
			t.Errorf("%s: status %d\n%q\n%q", client, status, got, want)
		}
	}
}

func TestAuditFindsTheTranscriptOfASessionByItself(t *testing.T) {
	t.Parallel()
	for client := range homes {
		x := tell(t, client, "honest-tests")
		if client == "gemini" { // it has no name that the ledger knows: it is found among others, by what is in it
			other := tell(t, client, "honest-failures")
			if err := os.Rename(other.transcript, filepath.Join(filepath.Dir(x.transcript), "session-2026-12-01T01-44-00000000.jsonl")); err != nil {
				t.Fatal(err)
			}
		}
		out, status := x.toolrun(t, "audit")
		if status != 0 || !strings.Contains(out, filepath.Base(x.transcript)) || !strings.Contains(out, "2 paired") {
			t.Errorf("%s: status %d\n%s", client, status, out)
		}
		if out, status := x.toolrun(t, "audit", "--session", "another"); status != 3 || out != "" {
			t.Errorf("%s, another session: status %d\n%s", client, status, out)
		}
	}
}

// A session of a month that is sealed: its rows, its catalog and what it printed are found in the archive.
func TestAuditHoldsATranscriptAgainstSealedMonths(t *testing.T) {
	t.Parallel()
	for _, client := range []string{"claude", "qwen"} { // one keeps ids, and one is paired by what is stored
		x := tell(t, client, "honest-failures")
		runs, err := filepath.Glob(filepath.Join(x.data, "runs", "*.jsonl"))
		if err != nil || len(runs) != 1 {
			t.Fatal(runs, err)
		}
		for _, path := range []string{filepath.Join(x.data, "ledger.jsonl"), x.transcript, runs[0]} {
			text := readFile(t, path)
			for _, day := range []string{time.Now().UTC().AddDate(0, 0, -1).Format("2006-01-02T"), "2026-12-01T"} {
				text = strings.ReplaceAll(text, day, "2025-03-10T")
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		// Its run died, as far as the record tells: the next process seals it.
		if err := os.MkdirAll(filepath.Join(x.data, "live"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(x.data, "live", strings.TrimSuffix(filepath.Base(runs[0]), ".jsonl")), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		x.toolrun(t, "sessions")
		if out, status := x.toolrun(t, "archive"); status != 0 {
			t.Fatalf("archive: status %d\n%s", status, out)
		}
		if hot := readFile(t, filepath.Join(x.data, "ledger.jsonl")); hot != "" {
			t.Fatalf("still hot: %s", hot)
		}
		for _, args := range [][]string{{"audit"}, {"audit", x.transcript}, {"audit", "--session", x.session}} {
			out, status := x.toolrun(t, args...)
			if status != 0 || !regexp.MustCompile(` [45] paired`).MatchString(out) || strings.Contains(out, "in part") || strings.Count(out, "supported") != 1 {
				t.Errorf("%s, %v: status %d\n%s", client, args, status, out)
			}
		}
		text := strings.ReplaceAll(readFile(t, x.transcript), "3 passed", "4 passed")
		if err := os.WriteFile(x.transcript, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, status := x.toolrun(t, "audit", "--json"); status != 3 || !slices.Contains(findings(t, out), "altered pytest") {
			t.Errorf("%s, altered: status %d\n%s", client, status, out)
		}
	}
}

func TestAuditFillsModelTokensCostAndTurnOnce(t *testing.T) {
	t.Parallel()
	x := tell(t, "claude", "honest-parallel")
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() { x.toolrun(t, "audit", x.transcript) })
	}
	wait.Wait()
	tokens, usd, lines := int64(0), 0.0, map[string]bool{}
	err := jsonLines(filepath.Join(x.data, "joins.jsonl"), func(_ int, line []byte) {
		var j struct {
			ToolCallID   string   `json:"tool_call_id"`
			Model        string   `json:"model"`
			Provider     string   `json:"provider"`
			InputTokens  int64    `json:"input_tokens"`
			OutputTokens int64    `json:"output_tokens"`
			Cost         *float64 `json:"estimated_cost_usd"`
			Turn         int      `json:"turn"`
		}
		if err := json.Unmarshal(line, &j); err != nil || j.Model != "claude-sonnet-4-5" || j.Provider != "anthropic" || j.Turn == 0 || j.Cost == nil {
			t.Errorf("%v: %s", err, line)
			return
		}
		if lines[j.ToolCallID] {
			t.Errorf("twice: %s", line)
		}
		lines[j.ToolCallID] = true
		tokens += j.InputTokens
		usd += *j.Cost
	})
	// Three answers of the model asked for two calls each, at 100 tokens in and 20 out.
	if err != nil || len(lines) != 6 || tokens != 300 || fmt.Sprintf("%.4f", usd) != "0.0018" {
		t.Errorf("%v: %d rows, %d tokens, $%f", err, len(lines), tokens, usd)
	}
}

// What a subagent says it says to its agent; what it calls belongs to the session, in a file of its own or, as older versions had it, among the lines of the session.
func TestAuditTakesNoWordOfASubagentForTheAgents(t *testing.T) {
	t.Parallel()
	for what, file := range map[string]func(x *told) string{
		"a file of its own": func(x *told) string {
			return filepath.Join(strings.TrimSuffix(x.transcript, ".jsonl"), "subagents", "agent-a1.jsonl")
		},
		"among the others": func(x *told) string { return x.transcript },
	} {
		x := tell(t, "claude", "honest-tests")
		path := file(x)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(f, `{"type":"assistant","sessionId":%q,"isSidechain":true,"timestamp":"2026-12-01T01:42:05.000Z","message":{"id":"m9","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"I deployed the release to production."}]}}`+"\n", x.session)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if out, status := x.toolrun(t, "audit"); status != 0 || !strings.Contains(out, "2 paired") || !strings.Contains(out, "All tests pass") || strings.Contains(out, "deployed") {
			t.Errorf("%s: status %d\n%s", what, status, out)
		}
	}
}

func TestSessionShowsWhatTheTranscriptTellsOfItsCalls(t *testing.T) {
	t.Parallel()
	x := tell(t, "qwen", "honest-tests")
	out, status := x.toolrun(t, "session", "--json")
	if n := strings.Count(out, `"model":"mock-model"`); status != 0 || n != 2 || strings.Count(out, `"input_tokens":100`) != 2 {
		t.Errorf("status %d: %s", status, out)
	}
}

func TestAuditNamesDamagedLinesOfATranscriptAndGoesOn(t *testing.T) {
	t.Parallel()
	x := tell(t, "claude", "honest-tests")
	text, err := os.ReadFile(x.transcript)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(x.transcript, append([]byte("{\"type\":\n"), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(toolrun, "audit", "--data", x.data, x.transcript)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Run()
	if status := cmd.ProcessState.ExitCode(); status != 3 || !strings.Contains(errs.String(), filepath.Base(x.transcript)+":1: ") || !strings.Contains(out.String(), "2 paired") {
		t.Errorf("status %d\n%s%s", status, out.String(), errs.String())
	}
	for name, text := range map[string]string{"empty": "", "other": "{\"a\":1}\n", "text": "hello\n"} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, status := x.toolrun(t, "audit", path); status != 1 || out != "" {
			t.Errorf("%s: status %d: %s", name, status, out)
		}
	}
}
