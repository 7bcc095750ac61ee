package tests

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// askTools ask a person: one by its class, one by its word.
const askTools = `
[tools.deploy]
description = "A test."
command = ["sh", "-c", "echo $1 >> deployed; echo deployed $1", "deploy", "{to}"]
risk = "SEND"
timeout = "5s"
[tools.deploy.params.to]
type = "string"
required = true
dash = true
[tools.peek]
description = "A test."
command = ["sh", "-c", "echo peeked"]
risk = "READ"
approval = "ask"
`

// approvalRow is what a row says of an approval.
type approvalRow struct {
	HoldMS     int64     `json:"hold_ms"`
	ApprovedBy *answerer `json:"approved_by"`
	DeclinedBy *answerer `json:"declined_by"`
}

type answerer struct {
	Via string  `json:"via"`
	UID *int    `json:"uid"`
	TTY *string `json:"tty"`
	PID *int    `json:"pid"`
	Exe *string `json:"exe"`
}

func (r *row) approval(t testing.TB) (a approvalRow) {
	t.Helper()
	if err := json.Unmarshal(r.raw, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// waiting waits until so many calls are held, as toolrun pending lists them.
func (p *place) waiting(n int) (list []map[string]any) {
	p.t.Helper()
	eventually(p.t, patience, fmt.Sprintf("%d calls are held", n), func() bool {
		list = nil
		for line := range strings.Lines(p.query("pending", "--json").stdout) {
			var call map[string]any
			if err := json.Unmarshal([]byte(line), &call); err != nil {
				p.t.Fatal(err)
			}
			list = append(list, call)
		}
		return len(list) == n
	})
	return list
}

// atTerminal runs toolrun as a person does who sits at a terminal of their own. Its output is taken from it.
func (p *place) atTerminal(args ...string) (ran, int) {
	p.t.Helper()
	cmd := exec.Command(toolrun, append(args, "--data", p.data)...)
	cmd.Dir, cmd.Env, cmd.Stdin = p.root, p.env, terminal(p.t.(*testing.T))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return finish(p.t, cmd), cmd.ProcessState.Pid()
}

// deployed is what the tool really did.
func (p *place) deployed() string {
	content, _ := os.ReadFile(filepath.Join(p.work, "deployed"))
	return string(content)
}

func (p *place) configure(text string) {
	p.t.Helper()
	if err := os.MkdirAll(p.data, 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.data, "config.toml"), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func only(t testing.TB, rows []row) row {
	t.Helper()
	if len(rows) != 1 {
		t.Fatalf("%d rows, want 1", len(rows))
	}
	return rows[0]
}

func TestAHeldCallIsAllowedFromASecondTerminal(t *testing.T) {
	t.Parallel()
	p := newPlace(t, askTools)
	s := p.serve()
	id := s.begin("deploy", object{"to": "prod\x1b[2J\u202e"})
	call := p.waiting(1)[0]
	name := call["tool_call_id"].(string)
	if call["tool_name"] != "deploy" || call["risk_class"] != "SEND" || fmt.Sprint(call["write"]) != "["+p.work+"]" || fmt.Sprint(call["network"]) != "[none]" ||
		call["cwd"] != p.work || !strings.HasSuffix(toJSON(call["argv"]), `"deploy","prod\u001b[2J`+"\u202e\"]") {
		t.Errorf("pending: %v", call)
	}
	// What people see holds all of it, and nothing that moves a cursor or turns the text around.
	seen := p.query("pending").stdout
	for _, part := range []string{"deploy, SEND", `\u001b[2J\u202e`, p.work, "none", "toolrun allow " + name} {
		if !strings.Contains(seen, part) {
			t.Errorf("pending does not show %q:\n%s", part, seen)
		}
	}
	if strings.ContainsAny(seen, "\x1b\u202e") {
		t.Errorf("pending is not escaped: %q", seen)
	}
	if r := p.query("allow", name); r.code != 1 || !strings.Contains(r.stderr, "needs a terminal") {
		t.Errorf("without a terminal: %+v", r)
	}
	if p.deployed() != "" || len(p.rows()) != 0 {
		t.Fatal("it ran, and nobody had allowed it")
	}
	r, pid := p.atTerminal("allow", name)
	if r.code != 0 || !strings.Contains(r.stdout, "allowed: deploy") || strings.ContainsAny(r.stdout, "\x1b\u202e") {
		t.Fatalf("allow: %+v", r)
	}
	expect(t, s.facts(id, patience), 0)
	row := only(t, p.rows())
	a := row.approval(t)
	if show(row.Approval) != "approved" || a.ApprovedBy == nil || a.HoldMS == 0 {
		t.Fatalf("%s", row.raw)
	}
	by := a.ApprovedBy
	if by.Via != "terminal" || *by.UID != os.Getuid() || *by.PID != pid || !strings.HasPrefix(*by.TTY, "/dev/pts/") || *by.Exe != toolrun {
		t.Errorf("approved_by: %s", toJSON(by))
	}
	if story := p.query("show", name).stdout; !strings.Contains(story, *by.TTY) {
		t.Errorf("show does not say who allowed it:\n%s", story)
	}
	if r, _ := p.atTerminal("allow", name); r.code != 1 || !strings.Contains(r.stderr, "no call") {
		t.Errorf("allowed twice: %+v", r)
	}
	if got := p.query("pending").stdout; got != "no call waits for an answer\n" {
		t.Errorf("pending: %q", got)
	}
}

func TestADeniedCallDoesNotRunAndTheAgentIsToldWhy(t *testing.T) {
	t.Parallel()
	p := newPlace(t, askTools)
	s := p.serve()
	id := s.begin("deploy", object{"to": "prod"})
	name := p.waiting(1)[0]["tool_call_id"].(string)
	if r := p.query("deny", name[:len(name)-1], "--reason", "not on a Friday"); r.code != 0 {
		t.Fatalf("deny: %+v", r)
	}
	f := s.facts(id, patience)
	expect(t, f, "declined")
	row := only(t, p.rows())
	if !strings.Contains(f.Text, "not on a Friday") || !strings.Contains(show(row.ErrorMessage), "not on a Friday") || show(row.Approval) != "denied" || row.approval(t).DeclinedBy == nil || p.deployed() != "" {
		t.Errorf("%q\n%s", f.Text, row.raw)
	}
}

func TestACallThatNobodyAnswersIsOverAfterApprovalWait(t *testing.T) {
	t.Parallel()
	p := newPlace(t, askTools)
	p.configure("approval_wait = \"400ms\"\n")
	s := p.serve()
	began := time.Now()
	f := s.call("peek", nil)
	expect(t, f, "approval_unavailable")
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("it waited %v", took)
	}
	if row := only(t, p.rows()); row.Status != "blocked" || row.Approval != nil || row.approval(t).HoldMS < 400 {
		t.Errorf("%s", row.raw)
	}
}

func TestCancellingAHeldCallIsItsEnd(t *testing.T) {
	t.Parallel()
	p := newPlace(t, askTools)
	s := p.serve()
	s.send(callLine(7, "deploy", object{"to": "prod"}))
	name := p.waiting(1)[0]["tool_call_id"].(string)
	s.send(request(nil, "notifications/cancelled", object{"requestId": 7}))
	p.waiting(0)
	if r, _ := p.atTerminal("allow", name); r.code != 1 {
		t.Errorf("allowed after it was taken back: %+v", r)
	}
	s.send(request(8, "ping", nil))
	s.answer(8, patience)
	if _, err := s.tryAnswer("7", 0); err == nil {
		t.Error("a cancelled call was answered")
	}
	if row := only(t, p.rows()); row.Outcome != "cancelled" || row.Status != "blocked" || p.deployed() != "" {
		t.Errorf("%s", row.raw)
	}
}

func TestAHeldCallDiesWithItsServerAndIsClosedByTheNextProcess(t *testing.T) {
	t.Parallel()
	p := newPlace(t, askTools)
	s := p.serve()
	s.begin("deploy", object{"to": "prod"})
	name := p.waiting(1)[0]["tool_call_id"].(string)
	s.kill()
	if left, _ := os.ReadDir(filepath.Join(p.data, "pending")); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
	if r, _ := p.atTerminal("allow", name); r.code != 1 || !strings.Contains(r.stderr, "no call") {
		t.Errorf("allowed after the kill: %+v", r)
	}
	row := only(t, p.rows())
	if row.Outcome != "interrupted" || row.Approval != nil || !slices.Contains(row.Flags, "CLOSED_LATER") || !strings.Contains(show(row.ErrorMessage), "nothing was started") || p.deployed() != "" {
		t.Errorf("%s", row.raw)
	}
	if left, _ := os.ReadDir(filepath.Join(p.data, "pending")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestASignalEndsAHeldCallAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t, askTools)
	s := p.serve()
	id := s.begin("deploy", object{"to": "prod"})
	p.waiting(1)
	s.cmd.Process.Signal(syscall.SIGTERM)
	expect(t, s.facts(id, patience), "interrupted")
	if code := s.wait(patience); code != 130 {
		t.Errorf("exit %d", code)
	}
	if left, _ := os.ReadDir(filepath.Join(p.data, "pending")); len(left) != 0 || p.deployed() != "" {
		t.Errorf("left behind: %v; %q", left, p.deployed())
	}
}

func TestAHeldCallIsAnsweredAfterTheEndOfStdin(t *testing.T) {
	t.Parallel()
	p := newPlace(t, askTools)
	s := p.serve()
	id := s.begin("deploy", object{"to": "prod"})
	name := p.waiting(1)[0]["tool_call_id"].(string)
	s.stdin.Close()
	if r, _ := p.atTerminal("allow", name); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	expect(t, s.facts(id, patience), 0)
	if code := s.wait(patience); code != 0 {
		t.Errorf("exit %d", code)
	}
}

func TestManyHeldCallsTakeNoPlaceAndEachGetsItsOwnAnswer(t *testing.T) {
	t.Parallel()
	p := newPlace(t, askTools+shTool)
	s := p.serve("--jobs", "1")
	const n = 12
	for i := range n {
		s.send(callLine(i, "deploy", object{"to": fmt.Sprint("-", i)}))
	}
	held := p.waiting(n)
	expect(t, s.call("sh", sh("true")), 0)
	var wait sync.WaitGroup
	for _, call := range held {
		name, to := call["tool_call_id"].(string), call["arguments"].(map[string]any)["to"].(string)
		wait.Go(func() {
			var r ran
			if strings.ContainsAny(to[len(to)-1:], "02468") {
				r, _ = p.atTerminal("allow", name)
			} else {
				r = p.query("deny", name, "--reason", to)
			}
			if r.code != 0 {
				t.Errorf("%s: %+v", name, r)
			}
		})
	}
	wait.Wait()
	for i := range n {
		f := s.facts(i, patience)
		if i%2 == 0 && f.Stdout != fmt.Sprintf("deployed -%d\n", i) || i%2 == 1 && (f.Outcome != "declined" || !strings.Contains(f.Text, fmt.Sprintf(": -%d;", i))) {
			t.Errorf("%d: %s", i, f.Text)
		}
	}
	if got := strings.Count(p.deployed(), "\n"); got != n/2 {
		t.Errorf("%d ran", got)
	}
}

func TestAToolInItsBoxCannotReachWhatIsHeld(t *testing.T) {
	t.Parallel()
	p := newPlace(t, askTools+shTool+`
[tools.open]
description = "A test."
command = ["sh", "-c", "{script}"]
risk = "READ"
sandbox = { network = "host", read = ["/tmp"] }
[tools.open.params.script]
type = "string"
required = true
`)
	s := p.serve()
	s.begin("deploy", object{"to": "prod"})
	name := p.waiting(1)[0]["tool_call_id"].(string)
	script := "cd " + p.root + "; ls -a data data/pending; grep -a pending /proc/net/unix; for f in data/pending/*; do cat $f; done; echo"
	for _, tool := range []string{"sh", "open"} {
		f := s.call(tool, object{"script": script})
		if strings.Contains(f.Stdout, ".sock") || strings.Contains(f.Stdout, ".json") || strings.Contains(f.Stdout, name) {
			t.Errorf("%s: %s", tool, f.Text)
		}
	}
	p.query("deny", name)
}

func TestACallOnATerminalAsksThere(t *testing.T) {
	t.Parallel()
	p := newPlace(t, askTools)
	for typed, want := range map[string]int{"y\n": 0, "\n": 125, "no\n": 125, "\x04": 125} {
		tty, master := terminalPair(t)
		cmd := p.command("call", "deploy", "to="+fmt.Sprintf("%q", typed))
		cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		screen := make(chan string, 1)
		go func() { screen <- readUntil(master, "[y/N]") }()
		if seen := <-screen; !strings.Contains(seen, "deploy, SEND") || !strings.Contains(seen, "network") {
			t.Errorf("asked: %q", seen)
		}
		master.WriteString(typed)
		go readUntil(master, "\x00")
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Errorf("%q: exit %d, want %d", typed, code, want)
		}
	}
	ran := 0
	for _, r := range p.rows() {
		a := r.approval(t)
		switch {
		case r.Outcome == "ok" && a.ApprovedBy.Via == "call" && strings.HasPrefix(*a.ApprovedBy.TTY, "/dev/pts/"):
			ran++
		case r.Outcome != "declined" || a.DeclinedBy.Via != "call":
			t.Errorf("%s", r.raw)
		}
	}
	if ran != 1 {
		t.Errorf("%d ran", ran)
	}
}

func TestACallWithoutATerminalIsHeld(t *testing.T) {
	t.Parallel()
	p := newPlace(t, askTools)
	done := make(chan ran, 1)
	go func() { done <- p.run("call", "peek") }()
	name := p.waiting(1)[0]["tool_call_id"].(string)
	if r, _ := p.atTerminal("allow", name); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if r := <-done; r.code != 0 || r.stdout != "peeked\n" {
		t.Errorf("%+v", r)
	}
}

func TestAnAutonomousRunAsksNobodyAndSaysSo(t *testing.T) {
	t.Parallel()
	p := newPlace(t, askTools)
	p.configure("approval_wait = \"200ms\"\n")
	s := p.serve("--autonomous", "SEND,DESTRUCTIVE")
	expect(t, s.call("deploy", object{"to": "prod"}), 0)
	expect(t, s.call("peek", nil), "approval_unavailable")
	rows := p.rows()
	if show(rows[0].Approval) != "autonomous" || rows[1].Approval != nil {
		t.Errorf("%s\n%s", rows[0].raw, rows[1].raw)
	}
	trace, err := os.ReadFile(filepath.Join(p.data, "runs", rows[0].RunID+".jsonl"))
	if err != nil || !strings.Contains(strings.SplitN(string(trace), "\n", 2)[0], `"autonomous":["SEND","DESTRUCTIVE"]`) {
		t.Errorf("%v: %.300s", err, trace)
	}
	if r := p.run("serve", "--autonomous", "READ"); r.code != 2 {
		t.Errorf("%+v", r)
	}
}

func TestADeclaredRetryIsARowForEachAttempt(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `
[tools.flaky]
description = "A test."
command = ["sh", "-c", "echo x >> tries; n=$(wc -l < tries); echo try $n; [ $n -ge 3 ] || exit 75"]
risk = "READ"
retry = { max = 4, on = ["exit:75"], backoff = "50ms" }
[tools.slow]
description = "A test."
command = ["sh", "-c", "exec sleep 65.7"]
risk = "READ"
timeout = "300ms"
retry = { max = 1, backoff = "0s" }
[tools.again]
description = "A test."
command = ["sh", "-c", "exit 75"]
risk = "READ"
retry = { max = 1, backoff = "1h" }
`)
	s := p.serve()
	f := s.call("flaky", nil)
	expect(t, f, 0)
	if f.Stdout != "try 3\n" || !strings.HasSuffix(f.ToolCallID, "#3") {
		t.Errorf("the answer is not the last attempt's: %s", f.Text)
	}
	expect(t, s.call("slow", nil), "timeout")
	noProcess(t, "sleep 65.7")
	id := s.begin("again", nil)
	eventually(t, patience, "the first attempt of again has failed", func() bool { return len(p.rows()) == 6 })
	s.kill() // between two attempts
	var got []string
	for _, r := range p.rows() {
		got = append(got, fmt.Sprintf("%s %d %s %s", r.ToolName, r.Attempt, r.Status, r.Outcome))
	}
	want := []string{"flaky 1 retry exit", "flaky 2 retry exit", "flaky 3 success ok", "slow 1 retry timeout", "slow 2 timeout timeout", "again 1 retry exit", "again 2 error interrupted"}
	p.run("call", "slow") // the next process closes what is open
	for _, r := range p.rows()[len(got):] {
		got = append(got, fmt.Sprintf("%s %d %s %s", r.ToolName, r.Attempt, r.Status, r.Outcome))
	}
	slices.Sort(got)
	slices.Sort(want)
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("no row %q in %q (call %d)", w, got, id)
		}
	}
}
