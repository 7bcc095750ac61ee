package tests

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// shellTool declares a shell that stays open, with further keys.
func shellTool(name string, more ...string) string {
	return fmt.Sprintf("[tools.%s]\ndescription = \"A shell.\"\ncommand = [\"sh\"]\nrisk = \"READ\"\nmode = \"session\"\n%s\n", name, strings.Join(more, "\n"))
}

// program is what a call of a program that stays tells of it.
type program struct {
	Handle   string  `json:"handle"`
	Running  bool    `json:"running"`
	HeldBack int     `json:"held_back_bytes"`
	Waited   string  `json:"waited_for"`
	Outcome  *string `json:"outcome"`
	ExitCode *int    `json:"exit_code"`
	Signal   *string `json:"signal"`
}

// stay is a call of a program that stays.
func (s *server) stay(tool string, args any) (facts, program) {
	s.t.Helper()
	a := s.answer(s.begin(tool, args), patience)
	f, err := factsOf(a)
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", tool, err, s.stderr)
	}
	var told struct {
		StructuredContent struct{ Process *program }
	}
	if err := json.Unmarshal(a.Result, &told); err != nil {
		s.t.Fatal(err)
	}
	if told.StructuredContent.Process == nil {
		return f, program{}
	}
	return f, *told.StructuredContent.Process
}

// open starts a session and gives its handle.
func (s *server) open(tool string, args any) string {
	s.t.Helper()
	f, p := s.stay(tool+"_start", args)
	if f.Outcome != "ok" || !p.Running || strings.TrimSpace(f.Stdout) != p.Handle {
		s.t.Fatalf("%s_start: %s", tool, f.Text)
	}
	return p.Handle
}

func TestAShellStaysOpenAndIsTalkedTo(t *testing.T) {
	t.Parallel()
	for _, more := range []string{"", "pty = true"} {
		p := newPlace(t, shellTool("shell", more))
		s := p.serve()
		h := s.open("shell", nil)
		if f, _ := s.stay("shell_send", object{"handle": h, "input": "X=41; cd /tmp"}); f.Outcome != "ok" {
			t.Fatal(f.Text)
		}
		s.stay("shell_send", object{"handle": h, "input": `echo "<$((X+1)) $PWD>"`})
		f, state := s.stay("shell_read", object{"handle": h, "pattern": `<42 /tmp>`})
		if !strings.Contains(f.Stdout, "<42 /tmp>") || state.Waited != "pattern" || !state.Running || state.HeldBack != 0 {
			t.Errorf("%s: %q, %+v", more, f.Stdout, state)
		}
		if f, _ := s.stay("shell_list", nil); !strings.Contains(f.Stdout, h+" still runs") {
			t.Errorf("list: %q", f.Stdout)
		}
		s.stay("shell_send", object{"handle": h, "input": "echo last; exit 3"})
		f, state = s.stay("shell_read", object{"handle": h, "pattern": "never", "wait_ms": 20000})
		if !strings.Contains(f.Stdout, "last") || state.Running || state.ExitCode == nil || *state.ExitCode != 3 || state.Waited != "end" {
			t.Errorf("%s: %q, %+v", more, f.Stdout, state)
		}
		rows := p.rows()
		own := slices.IndexFunc(rows, func(r row) bool { return r.ToolCallID == h })
		if own < 0 || len(rows) != 8 {
			t.Fatalf("%d rows, that of the handle is %d", len(rows), own)
		}
		r := rows[own]
		if r.ToolName != "shell_start" || r.ExitCode == nil || *r.ExitCode != 3 || !slices.Contains(r.Flags, "PROCESS") || !strings.Contains(string(r.raw), `"parent_call_id":"`+rows[0].ToolCallID+`"`) {
			t.Errorf("%s", r.raw)
		}
		if whole := p.object(*r.OutputHash); !strings.Contains(whole, "<42 /tmp>") || !strings.Contains(whole, "last") {
			t.Errorf("the stream of the session is %q", whole)
		}
	}
}

func TestHandlesBelongToTheirSessionAndEndWithTheRun(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shellTool("shell")+shellTool("quick", `timeout = "700ms"`)+shellTool("bored", `idle = "500ms"`))
	s := p.serve()
	h, quick, bored := s.open("shell", nil), s.open("quick", nil), s.open("bored", nil)
	for name, args := range map[string]object{"another tool's": {"handle": quick}, "nobody's": {"handle": "x"}} {
		if f, _ := s.stay("shell_stop", args); f.Outcome != "invalid_arguments" || !strings.Contains(f.Text, `"handle"`) {
			t.Errorf("%s handle: %s", name, f.Text)
		}
	}
	s.send(request(900, "tools/call", object{"name": "shell_read", "arguments": object{"handle": h}, "_meta": object{"toolrun/session_id": "somebody-else"}}))
	if f := s.facts(900, patience); f.Outcome != "invalid_arguments" {
		t.Errorf("the handle of another session: %s", f.Text)
	}
	if got := p.run("call", "shell_send", "handle="+h, "input=echo intruder"); got.code != 125 || !strings.Contains(got.stderr, "in this session and run") {
		t.Errorf("the handle of another run: exit status %d, %s", got.code, got.stderr)
	}
	if got := p.run("call", "shell_start"); got.code != 0 || !strings.Contains(got.stderr, "ends with this command") {
		t.Errorf("a start by toolrun call: exit status %d, %s", got.code, got.stderr)
	}
	if r := p.rowOf(quick); r.Outcome != "timeout" || !strings.Contains(*r.ErrorMessage, "timed out after 700ms") {
		t.Errorf("%s", r.raw)
	}
	if r := p.rowOf(bored); r.Outcome != "timeout" || !strings.Contains(*r.ErrorMessage, "no call used it") {
		t.Errorf("%s", r.raw)
	}
	began := time.Now()
	s.signal(15)
	s.wait(patience)
	r := p.rowOf(h)
	at, err := time.Parse(time.RFC3339, r.EndedAt)
	if err != nil || r.Outcome != "interrupted" || at.Sub(began) > time.Second {
		t.Errorf("ended %v after the signal: %s", at.Sub(began), r.raw)
	}
}

// rowOf waits for the row with this id.
func (p *place) rowOf(id string) (r row) {
	p.t.Helper()
	eventually(p.t, patience, "no row "+id, func() bool {
		rows, _ := readRows(p.data)
		i := slices.IndexFunc(rows, func(r row) bool { return r.ToolCallID == id })
		if i >= 0 {
			r = rows[i]
		}
		return i >= 0
	})
	return r
}

func TestABuildInTheBackgroundIsPolledPastTheClientsLimit(t *testing.T) {
	t.Parallel()
	p := newPlace(t, fixed("build", "echo compiling; until [ -e go-on ]; do sleep 0.05; done; echo linking; echo oops >&2; exit 2", `mode = "background"`, `sandbox = { read = ["."] }`))
	s := p.serve()
	h := s.open("build", nil)
	eventually(t, patience, "the build begins", func() bool {
		f, state := s.stay("build_poll", object{"handle": h, "wait_ms": 50})
		return state.Running && state.Waited == "time" && strings.Contains(f.Stdout, "compiling")
	})
	if f, state := s.stay("build_poll", object{"handle": h, "wait_ms": 0}); f.StdoutBytes != 0 || !state.Running || !strings.Contains(f.Text, "still runs") {
		t.Errorf("%s", f.Text)
	}
	if f, _ := s.stay("build_list", nil); !strings.Contains(f.Stdout, h+" still runs") {
		t.Errorf("list: %s", f.Stdout)
	}
	p.write("go-on", "", 0o644)
	f, state := s.stay("build_poll", object{"handle": h, "wait_ms": 30000})
	if f.Stdout != "linking\n" || f.Stderr != "oops\n" || state.Running || state.ExitCode == nil || *state.ExitCode != 2 || f.IsError || !strings.Contains(f.Text, "has ended: FAILED") {
		t.Errorf("%s %+v", f.Text, state)
	}
	if f, _ := s.stay("build_list", nil); !strings.Contains(f.Stdout, h+" has ended: FAILED") {
		t.Errorf("list: %s", f.Stdout)
	}
	r := p.rowOf(h)
	if r.Outcome != "exit" || p.object(*r.OutputHash) != "compiling\nlinking\n" || p.object(*r.StderrHash) != "oops\n" {
		t.Errorf("%s", r.raw)
	}
	if err := syscall.Unlink(p.work + "/go-on"); err != nil {
		t.Fatal(err)
	}
	stopped := s.open("build", nil)
	if _, state := s.stay("build_stop", object{"handle": stopped}); state.Running || *state.Outcome != "cancelled" {
		t.Errorf("%+v", state)
	}
	if r := p.rowOf(stopped); r.Outcome != "cancelled" || *r.ErrorMessage != "stopped by build_stop" || r.Signal == nil || *r.Signal != "SIGKILL" {
		t.Errorf("%s", r.raw)
	}
}

func TestWhatIsTypedIsAskedForLikeWhatIsStarted(t *testing.T) {
	t.Parallel()
	p := newPlace(t, strings.Replace(shellTool("outward"), "READ", "SEND", 1))
	s := p.serve()
	allow := func(id int, allowed bool) facts {
		t.Helper()
		held := p.waiting(1)[0]["tool_call_id"].(string)
		if !allowed {
			if got := p.query("deny", held, "--reason", "no"); got.code != 0 {
				t.Fatal(got.stderr)
			}
		} else if got, _ := p.atTerminal("allow", held); got.code != 0 {
			t.Fatal(got.stderr)
		}
		return s.facts(id, patience)
	}
	f := allow(s.begin("outward_start", nil), true)
	h := strings.TrimSpace(f.Stdout)
	if f = allow(s.begin("outward_send", object{"handle": h, "input": "echo denied"}), false); f.Outcome != "declined" {
		t.Errorf("%s", f.Text)
	}
	if f = allow(s.begin("outward_send", object{"handle": h, "input": "echo allowed"}), true); f.Outcome != "ok" {
		t.Errorf("%s", f.Text)
	}
	f, _ = s.stay("outward_read", object{"handle": h, "pattern": "allowed"}) // asks nobody
	if f.Stdout != "allowed\n" {
		t.Errorf("%s", f.Text)
	}
	s.stay("outward_stop", object{"handle": h})
	if r := p.rowOf(h); r.Outcome != "ok" || r.Approval == nil || *r.Approval != "approved" || !strings.Contains(string(r.raw), `"approved_by":{`) {
		t.Errorf("%s", r.raw)
	}
}

func TestASecretThatIsTypedIsNowhere(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery-41"
	p := newPlace(t, "[secrets]\nTYPED = { env = \"TYPED\" }\n"+shellTool("shell", "pty = true")+shellTool("piped"))
	p.env = append(p.env, "TYPED="+secret)
	s := p.serve()
	for _, tool := range []string{"shell", "piped"} {
		h := s.open(tool, nil)
		s.stay(tool+"_send", object{"handle": h, "input": `echo now; read -r typed; echo "length ${#typed}"; echo "$typed"; echo finished`})
		s.stay(tool+"_read", object{"handle": h, "pattern": "now"})
		s.stay(tool+"_send", object{"handle": h, "input": secret})
		f, _ := s.stay(tool+"_read", object{"handle": h, "pattern": "finished"})
		if !strings.Contains(f.Stdout, fmt.Sprintf("length %d", len(secret))) || !strings.Contains(f.Stdout, "[REDACTED]") {
			t.Errorf("%q", f.Stdout)
		}
		s.stay(tool+"_send", object{"handle": h, "input": "printf gh; printf p_AAAAAAAAAAAA; sleep 64.5"})
		eventually(t, patience, "what may become a secret is held back", func() bool {
			f, state := s.stay(tool+"_read", object{"handle": h, "wait_ms": 100})
			if strings.Contains(f.Stdout, "ghp_") {
				t.Fatalf("it is shown: %s", f.Text)
			}
			return state.HeldBack == 16 && strings.Contains(f.Text, "16 bytes are held back")
		})
		s.stay(tool+"_stop", object{"handle": h})
	}
	nowhere(t, p, s, secret)
}

func TestALineThatATerminalWouldCutIsNotTyped(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "[tools.count]\ndescription = \"A test.\"\ncommand = [\"sh\", \"-c\", 'head -n 1 | wc -c; head -n 1 | wc -c']\nrisk = \"READ\"\nmode = \"session\"\npty = true\n")
	s := p.serve()
	h := s.open("count", nil)
	s.stay("count_send", object{"handle": h, "input": strings.Repeat("x", 3000), "enter": false})
	for _, enter := range []bool{true, false} {
		if f, _ := s.stay("count_send", object{"handle": h, "input": strings.Repeat("y", 1200), "enter": enter}); f.Outcome != "invalid_arguments" || !strings.Contains(f.Text, `"input"`) {
			t.Errorf("%s", f.Text)
		}
	}
	s.stay("count_send", object{"handle": h, "input": strings.Repeat("y", 1095)})
	s.stay("count_send", object{"handle": h, "input": "next"})
	f, _ := s.stay("count_read", object{"handle": h, "pattern": "never", "wait_ms": 20000})
	if f.Stdout != "4096\n5\n" {
		t.Errorf("%q", f.Stdout)
	}
}

func TestAServerIsAskedOverLoopbackInItsOwnBox(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "[tools.bash]\ndescription = \"A shell.\"\ncommand = [\"bash\", \"--norc\"]\nrisk = \"READ\"\nmode = \"session\"\n"+shTool)
	s := p.serve()
	h := s.open("bash", nil)
	s.stay("bash_send", object{"handle": h, "input": `perl -MIO::Socket::INET -e '$|=1; $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 8765, Listen => 5) or die; print "listening\n"; while ($c = $s->accept) { print $c "served\n"; close $c }' &`})
	if f, state := s.stay("bash_read", object{"handle": h, "pattern": "listening"}); state.Waited != "pattern" {
		t.Fatalf("%s", f.Text)
	}
	s.stay("bash_send", object{"handle": h, "input": "cat < /dev/tcp/127.0.0.1/8765"})
	if f, _ := s.stay("bash_read", object{"handle": h, "pattern": "served"}); f.Stdout != "served\n" {
		t.Errorf("%s", f.Text)
	}
	if f := s.call("sh", sh("bash -c 'cat < /dev/tcp/127.0.0.1/8765'")); f.ExitCode == nil || *f.ExitCode == 0 {
		t.Errorf("another box reached it: %s", f.Text)
	}
}

func TestControlCEndsWhatRunsInTheShell(t *testing.T) {
	t.Parallel()
	s := newPlace(t, "[tools.bash]\ndescription = \"A shell.\"\ncommand = [\"bash\", \"--norc\", \"-i\"]\nrisk = \"READ\"\nmode = \"session\"\npty = true\nenv = { PS1 = \"ready> \" }\n").serve()
	h := s.open("bash", nil)
	s.stay("bash_read", object{"handle": h, "pattern": "ready>"})
	s.stay("bash_send", object{"handle": h, "input": "echo sleeping; sleep 1000"})
	s.stay("bash_read", object{"handle": h, "pattern": "(?m)^sleeping"})
	s.stay("bash_send", object{"handle": h, "input": "\x03"})
	s.stay("bash_read", object{"handle": h, "pattern": "ready>"})
	s.stay("bash_send", object{"handle": h, "input": "echo status $?"})
	if f, _ := s.stay("bash_read", object{"handle": h, "pattern": "status 130"}); !strings.Contains(f.Stdout, "status 130") {
		t.Errorf("%s", f.Text)
	}
}

func TestSessionsDroppedInEveryWayLeaveNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shellTool("shell")+shellTool("tty", "pty = true")+shellTool("short", `timeout = "300ms"`)+shellTool("bored", `idle = "300ms"`))
	s := p.serve()
	var mu sync.Mutex
	handles := map[string]string{}
	together(t, 200, func(i int) {
		way := []string{"stop", "exit", "kill", "idle", "timeout"}[i%5]
		tool := []string{"shell", "tty"}[i/5%2]
		if other := map[string]string{"timeout": "short", "idle": "bored"}[way]; other != "" {
			tool = other
		}
		h := s.open(tool, nil)
		mu.Lock()
		handles[h] = way
		mu.Unlock()
		if way == "timeout" || way == "idle" {
			return
		}
		s.stay(tool+"_send", object{"handle": h, "input": "sleep 64.3 & echo up"})
		s.stay(tool+"_read", object{"handle": h, "pattern": "up"})
		switch way {
		case "stop":
			s.stay(tool+"_stop", object{"handle": h})
		case "exit":
			s.stay(tool+"_send", object{"handle": h, "input": "exit 7"})
		case "kill":
			s.stay(tool+"_send", object{"handle": h, "input": "kill -9 $$"})
		}
	})
	want := map[string]string{"stop": "ok", "exit": "exit", "kill": "signal", "idle": "timeout", "timeout": "timeout"}
	for h, way := range handles {
		r := p.rowOf(h)
		late := way == "stop" && r.Outcome == "cancelled" // a slow machine: it did not end within the grace of a stop
		if r.Outcome != want[way] && !late {
			t.Errorf("%s: %s", way, r.raw)
		}
	}
	noProcess(t, "sleep 64.3")
	open := []string{s.open("shell", nil), s.open("tty", nil)}
	s.stay("shell_send", object{"handle": open[0], "input": "sleep 64.3 &"})
	s.kill()
	noProcess(t, "sleep 64.3")
	p.recover()
	for _, h := range open {
		if r := p.rowOf(h); r.Outcome != "interrupted" || !slices.Contains(r.Flags, "CLOSED_LATER") || !slices.Contains(r.Flags, "PROCESS") {
			t.Errorf("%s", r.raw)
		}
	}
	if got := p.query("verify"); got.code != 0 {
		t.Errorf("verify: %s%s", got.stdout, got.stderr)
	}
}

func TestAPythonReplIsTalkedTo(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		skipFor(t, "no python3 here")
	}
	p := newPlace(t, fmt.Sprintf("[tools.py]\ndescription = \"Python.\"\ncommand = [%q, \"-q\"]\nrisk = \"READ\"\nmode = \"session\"\npty = true\n", python))
	s := p.serve()
	h := s.open("py", nil)
	ask := func(input, pattern string) string {
		t.Helper()
		s.stay("py_send", object{"handle": h, "input": input})
		f, state := s.stay("py_read", object{"handle": h, "pattern": pattern})
		if state.Waited != "pattern" {
			t.Fatalf("%s", f.Text)
		}
		return f.Stdout
	}
	s.stay("py_read", object{"handle": h, "pattern": ">>> "})
	ask("x = 6 * 7", ">>> ")
	if got := ask("print(f'<{x}>')", "<42>"); !strings.Contains(got, "<42>") || strings.ContainsRune(got, 0x1b) {
		t.Errorf("%q", got)
	}
	ask("1/0", "ZeroDivisionError")
	s.stay("py_send", object{"handle": h, "input": "exit(4)"})
	if _, state := s.stay("py_read", object{"handle": h, "pattern": "never", "wait_ms": 20000}); state.ExitCode == nil || *state.ExitCode != 4 {
		t.Errorf("%+v", state)
	}
}

func TestADebuggerHoldsACrashingProgram(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"gdb", "sleep"} {
		if _, err := exec.LookPath(program); err != nil {
			skipFor(t, "no "+program+" here")
		}
	}
	p := newPlace(t, "[tools.gdb]\ndescription = \"A debugger.\"\ncommand = [\"gdb\", \"-q\", \"-nx\", \"--args\", \"sh\", \"-c\", \"kill -SEGV $$\"]\nrisk = \"READ\"\nmode = \"session\"\npty = true\nsandbox = { ptrace = true }\n")
	s := p.serve()
	h := s.open("gdb", nil)
	s.stay("gdb_read", object{"handle": h, "pattern": `\(gdb\)`, "wait_ms": 60000})
	s.stay("gdb_send", object{"handle": h, "input": "set pagination off\nset debuginfod enabled off\nset disable-randomization off\nrun"})
	if f, state := s.stay("gdb_read", object{"handle": h, "pattern": "SIGSEGV", "wait_ms": 60000}); state.Waited != "pattern" {
		t.Fatalf("%s", f.Text)
	}
	s.stay("gdb_send", object{"handle": h, "input": "print 40 + 2"})
	if f, state := s.stay("gdb_read", object{"handle": h, "pattern": `\$1 = 42`, "wait_ms": 60000}); state.Waited != "pattern" {
		t.Fatalf("%s", f.Text)
	}
	if _, state := s.stay("gdb_stop", object{"handle": h}); state.Running {
		t.Errorf("%+v", state)
	}
}

// What README.md says of programs that stay is tried as it stands there: its tools, its loop, what that prints.
func TestTheShellOfTheReadmeIsTalkedTo(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		skipFor(t, "no python3 here")
	}
	blocks := fences.FindAllStringSubmatch(document(t, "README.md"), -1)
	var ask, loop, want, tools string
	for i, b := range blocks {
		switch {
		case b[1] == "python":
			ask = b[2][:strings.Index(b[2], "tools = ")]
		case b[1] == "py":
			loop, want = b[2], blocks[i+1][2]
		case b[1] == "toml" && strings.Contains(b[2], `mode = "background"`) && strings.HasPrefix(b[2], "[tools.shell]"):
			tools = b[2]
		}
	}
	p := launchPlace(t)
	p.write("tools.toml", tools, 0o644)
	if got := p.start0("trust"); got.code != 0 {
		t.Fatalf("trust: %s", got.stderr)
	}
	cmd := exec.Command(python, p.writeOutside("loop.py", ask+loop))
	cmd.Dir, cmd.Env = p.work, append(p.env, "TOOLRUN_DATA="+p.data)
	if got := finish(t, cmd); got.code != 0 || got.stdout != want {
		t.Errorf("status %d\n%s\nstdout %q\nREADME %q", got.code, got.stderr, got.stdout, want)
	}
}
