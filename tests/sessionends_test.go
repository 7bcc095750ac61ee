package tests

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// processRows are the rows of programs that stayed.
func (p *place) processRows() (own []row) {
	for _, r := range p.rows() {
		if slices.Contains(r.Flags, "PROCESS") {
			own = append(own, r)
		}
	}
	return own
}

// Whatever ends the server, and whatever a session is doing then: no process is left, and each program has one end.
func TestAServerThatEndsAtAnyMomentOfASessionLeavesNothing(t *testing.T) {
	t.Parallel()
	const nap = "sleep 66.1"
	moments := map[string]func(s *server, handles []string){
		"starting": func(s *server, _ []string) {
			for range 8 {
				s.begin("tty_start", nil)
			}
		},
		"sending": func(s *server, handles []string) {
			for _, h := range handles {
				s.begin("tty_send", object{"handle": h, "input": strings.Repeat("echo some line\n", 60000)})
			}
		},
		"reading": func(s *server, handles []string) {
			for _, h := range handles {
				s.begin("tty_read", object{"handle": h, "pattern": "never", "wait_ms": 1500})
			}
		},
		"stopping": func(s *server, handles []string) {
			for _, h := range handles {
				s.begin("tty_stop", object{"handle": h})
			}
		},
	}
	ends := map[string]func(s *server){
		"kill -9": func(s *server) { s.kill() },
		"SIGTERM": func(s *server) { s.signal(15) },
		"EOF":     func(s *server) { s.stdin.Close() },
	}
	type try struct{ moment, end string }
	var tries []try
	for moment := range moments {
		for end := range ends {
			tries = append(tries, try{moment, end})
		}
	}
	together(t, len(tries), func(i int) {
		name := tries[i].moment + ", " + tries[i].end
		p := newPlace(t, shellTool("tty", "pty = true")+shellTool("shell"))
		s := p.serve()
		handles := []string{s.open("tty", nil), s.open("tty", nil)}
		piped := s.open("shell", nil)
		for _, h := range handles {
			s.stay("tty_send", object{"handle": h, "input": "trap '' HUP TERM; echo up; " + nap + "; " + nap})
			s.stay("tty_read", object{"handle": h, "pattern": "up"})
		}
		s.stay("shell_send", object{"handle": piped, "input": "setsid " + nap + " & echo up"})
		s.stay("shell_read", object{"handle": piped, "pattern": "up"})
		moments[tries[i].moment](s, handles)
		time.Sleep(time.Duration(i) * 3 * time.Millisecond) // any moment will do
		ends[tries[i].end](s)
		s.wait(patience)
		p.recover()
		ended := map[string]int{}
		for _, r := range p.processRows() {
			ended[r.ToolCallID]++
			if r.Outcome != "interrupted" && !(tries[i].moment == "stopping" && r.Outcome == "cancelled") {
				t.Errorf("%s: %s", name, r.raw)
			}
		}
		for _, h := range append(handles, piped) {
			if ended[h] != 1 {
				t.Errorf("%s: handle %s has %d rows", name, h, ended[h])
			}
		}
		if got := p.query("verify"); got.code != 0 {
			t.Errorf("%s: verify: %s%s", name, got.stdout, got.stderr)
		}
	})
	noProcess(t, nap)
}

func TestProgramsThatDoNotWantToEndAreEnded(t *testing.T) {
	t.Parallel()
	const nap = "sleep 66.2"
	hostile := map[string]string{
		"ignores": `trap "" HUP TERM INT QUIT TSTP; echo up; while :; do ` + nap + `; done`,
		"flees":   `(setsid sh -c "setsid ` + nap + ` & ` + nap + `" &); echo up; exec ` + nap,
		"closes":  `echo up; exec <&- >&- 2>&-; ` + nap,
		"floods":  `echo up; exec yes ` + strings.Repeat("y", 60),
		"silent":  `exec ` + nap,
		"raw":     `stty raw -isig -echo 2>/dev/null; echo up; exec ` + nap,
		"resizes": `stty rows 2 cols 5 2>/dev/null; echo up; exec ` + nap,
		"stopped": `echo up; kill -STOP $$; ` + nap,
		"prompts": `printf 'up> '; exec ` + nap,
	}
	var catalog strings.Builder
	for name, script := range hostile {
		for _, pty := range []string{"false", "true"} {
			catalog.WriteString(fixed(name+"_"+pty, script, `mode = "session"`, "pty = "+pty, `limits = { output_total = "1TiB" }`)) // none ends by it
		}
	}
	p := newPlace(t, catalog.String())
	s := p.serve()
	together(t, 2*len(hostile), func(i int) {
		name := slices.Sorted(maps.Keys(hostile))[i/2] + []string{"_false", "_true"}[i%2]
		h := s.open(name, nil)
		wait := 20000
		if strings.HasPrefix(name, "silent") {
			wait = 300
		}
		began := time.Now()
		// On a busy machine a flood is past what a read keeps before the first read comes.
		f, state := s.stay(name+"_read", object{"handle": h, "pattern": "up|yyyy", "wait_ms": wait})
		if wait == 300 && (state.Waited != "time" || f.StdoutBytes != 0 || time.Since(began) < 300*time.Millisecond) || wait > 300 && state.Waited != "pattern" {
			t.Errorf("%s: %s", name, f.Text)
		}
		if f, _ := s.stay(name+"_send", object{"handle": h, "input": "hello"}); f.Outcome != "ok" && f.Outcome != "invalid_arguments" {
			t.Errorf("%s: %s", name, f.Text)
		}
		if f, state := s.stay(name+"_stop", object{"handle": h}); f.Outcome != "ok" || state.Running || state.Outcome == nil {
			t.Errorf("%s: %s", name, f.Text)
		}
		if r := p.rowOf(h); r.Outcome != "cancelled" || r.OutputHash == nil {
			t.Errorf("%s: %s", name, r.raw)
		}
		if f, _ := s.stay(name+"_send", object{"handle": h, "input": "late"}); f.Outcome != "invalid_arguments" || !strings.Contains(f.Text, "has ended") {
			t.Errorf("%s, when it has ended: %s", name, f.Text)
		}
	})
	noProcess(t, nap)
}

func TestAProgramThatNeverReadsHoldsNothingUp(t *testing.T) {
	t.Parallel()
	for _, pty := range []string{"false", "true"} {
		p := newPlace(t, fixed("deaf", "echo up; exec sleep 66.3", `mode = "session"`, "pty = "+pty))
		s := p.serve()
		h := s.open("deaf", nil)
		s.stay("deaf_read", object{"handle": h, "pattern": "up"})
		lines := strings.Repeat(strings.Repeat("x", 1023)+"\n", 1024)
		if f, _ := s.stay("deaf_send", object{"handle": h, "input": lines + "x"}); f.Outcome != "invalid_arguments" || !strings.Contains(f.Text, "1048576") {
			t.Errorf("more than can wait: %s", f.Text)
		}
		began := time.Now()
		if f, _ := s.stay("deaf_send", object{"handle": h, "input": lines}); f.Outcome != "ok" || time.Since(began) > 10*time.Second {
			t.Errorf("after %v: %.500s", time.Since(began), f.Text)
		}
		var f facts
		for range 4 {
			if f, _ = s.stay("deaf_send", object{"handle": h, "input": lines}); f.Outcome == "busy" {
				break
			}
		}
		if f.Outcome != "busy" || !strings.Contains(f.Text, "does not read") {
			t.Errorf("%.500s", f.Text)
		}
		if f, state := s.stay("deaf_stop", object{"handle": h}); state.Running {
			t.Errorf("%s", f.Text)
		}
		noProcess(t, "sleep 66.3")
	}
}

func TestAProgramThatAsksItsTerminalIsAnsweredByWhoTypes(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "[tools.asks]\ndescription = \"A test.\"\ncommand = [\"bash\", \"-c\", '''stty -icanon; printf 'where\\033[c\\033[6n'; IFS= read -rsd R at; printf '\\r\\ngot %s\\r\\n' \"${{at#?}}\"''']\nrisk = \"READ\"\nmode = \"session\"\npty = true\n")
	s := p.serve()
	h := s.open("asks", nil)
	if f, state := s.stay("asks_read", object{"handle": h, "pattern": "where"}); state.Waited != "pattern" || strings.TrimSpace(f.Stdout) != "where" {
		t.Errorf("%q: %s", f.Stdout, f.Text)
	}
	if f, state := s.stay("asks_read", object{"handle": h, "wait_ms": 200}); !state.Running || strings.ContainsRune(f.Text, 0x1b) {
		t.Errorf("%q", f.Text)
	}
	s.stay("asks_send", object{"handle": h, "input": "\x1b[3;7R", "enter": false})
	if f, state := s.stay("asks_read", object{"handle": h, "pattern": "never", "wait_ms": 20000}); !strings.Contains(f.Stdout, "got [3;7") || state.ExitCode == nil {
		t.Errorf("%s", f.Text)
	}
}

func TestASecretIsMaskedHoweverItIsTypedAndShown(t *testing.T) {
	t.Parallel()
	const secret = "typed-in-two-parts-4471"
	p := newPlace(t, "[secrets]\nTYPED = { env = \"TYPED\" }\n"+shellTool("shell", "pty = true"))
	p.env = append(p.env, "TYPED="+secret)
	s := p.serve()
	h := s.open("shell", nil)
	s.stay("shell_send", object{"handle": h, "input": `stty echo; echo ready; read -r typed; echo "<$typed>"; echo finished`})
	s.stay("shell_read", object{"handle": h, "pattern": "ready"})
	s.stay("shell_send", object{"handle": h, "input": secret[:11], "enter": false})
	f, _ := s.stay("shell_read", object{"handle": h, "wait_ms": 300})
	if strings.Contains(f.Stdout, secret[:11]) {
		t.Errorf("the beginning of a secret is shown: %s", f.Text)
	}
	s.stay("shell_send", object{"handle": h, "input": secret[11:]})
	f, _ = s.stay("shell_read", object{"handle": h, "pattern": "finished"})
	if strings.Count(f.Stdout, "[REDACTED]") != 2 || strings.Contains(f.Stdout, "parts") {
		t.Errorf("%q", f.Stdout)
	}
	s.stay("shell_send", object{"handle": h, "input": "stty -echo; echo silent"})
	s.stay("shell_read", object{"handle": h, "pattern": "(?m)^silent"})
	s.stay("shell_send", object{"handle": h, "input": `printf '%s' "${typed%parts*}"; sleep 0.4; printf '%s\n' "${typed#*two-}"; echo over`})
	var shown strings.Builder
	eventually(t, patience, "the rest is printed", func() bool {
		f, _ := s.stay("shell_read", object{"handle": h, "wait_ms": 100})
		shown.WriteString(f.Stdout)
		return strings.Contains(shown.String(), "over")
	})
	if strings.Contains(shown.String(), "two-") || !strings.Contains(shown.String(), "[REDACTED]") {
		t.Errorf("%q", shown.String())
	}
	nowhere(t, p, s, secret)
}

// The disk fills while a session is open: what it prints then cannot be kept, so it is ended, and that is on the record.
func TestASessionThatADiskFillsUnderHasItsEnd(t *testing.T) {
	p := newPlace(t, shellTool("shell"))
	tinyData(t, p, "4m")
	s := p.serve()
	quiet, loud := s.open("shell", nil), s.open("shell", nil)
	s.stay("shell_send", object{"handle": quiet, "input": "echo kept"})
	s.stay("shell_read", object{"handle": quiet, "pattern": "kept"})
	s.stay("shell_send", object{"handle": loud, "input": "until [ -e go-on ]; do sleep 0.05; done; seq 100000; sleep 66.4"})
	free := fill(t, p)
	p.write("go-on", "", 0o644)
	r := p.rowOf(loud)
	if r.Outcome != "capture_failed" || r.OutputHash != nil || r.OutputBytes == 0 {
		t.Errorf("%s", r.raw)
	}
	noProcess(t, "sleep 66.4")
	if a := s.answer(s.begin("shell_send", object{"handle": quiet, "input": "echo never > typed"}), patience); !strings.Contains(string(a.Result), "ledger unavailable") || exists(p.work+"/typed") {
		t.Errorf("on a full disk: %s", a.Result)
	}
	free()
	if f, _ := s.stay("shell_list", nil); !strings.Contains(f.Stdout, quiet+" still runs") || !strings.Contains(f.Stdout, loud+" has ended: FAILED") {
		t.Errorf("%s", f.Text)
	}
	s.stay("shell_send", object{"handle": quiet, "input": "echo again; exit 5"})
	if f, state := s.stay("shell_read", object{"handle": quiet, "pattern": "never", "wait_ms": 20000}); f.Stdout != "again\n" || state.ExitCode == nil || *state.ExitCode != 5 {
		t.Errorf("%s", f.Text)
	}
	s.stdin.Close()
	s.wait(patience)
	p.checkedNow()
}

// Where the server may open few files, so few programs may be open that calls, and the record, have what they need.
func TestProgramsLeaveDescriptorsForCalls(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shellTool("tty", "pty = true")+shTool)
	serve := p.command("serve")
	cmd := exec.Command("sh", append([]string{"-c", `ulimit -n 1200; exec "$@"`, "sh"}, serve.Args...)...)
	cmd.Dir, cmd.Env = serve.Dir, serve.Env
	s := p.start(cmd)
	var open []string
	for {
		f, state := s.stay("tty_start", nil)
		if f.Outcome == "busy" {
			break
		}
		if open = append(open, state.Handle); f.Outcome != "ok" || len(open) > 40 {
			t.Fatalf("%d are open: %s", len(open), f.Text)
		}
	}
	if len(open) < 10 {
		t.Errorf("only %d may be open", len(open))
	}
	together(t, 32, func(i int) {
		expect(t, s.call("sh", sh("echo fine")), 0)
		h := open[i%len(open)]
		s.stay("tty_send", object{"handle": h, "input": "echo still here"})
		if f, _ := s.stay("tty_read", object{"handle": h, "pattern": "still here", "wait_ms": 1000}); f.Outcome != "ok" {
			t.Errorf("%s", f.Text)
		}
	})
}

// An ordinary user's programs run one user namespace deeper; they end as well.
func TestAnOrdinaryUsersSessionsEndToo(t *testing.T) {
	t.Parallel()
	needRoot(t)
	const nap = "sleep 66.5"
	p := userPlace(t, 65533, "[defaults]\nisolation = \"best-effort\"\n"+shellTool("tty", "pty = true"))
	if got := p.run("call", "tty_start"); got.code != 0 {
		skipFor(t, "no box for a user here: "+got.stderr)
	}
	s := p.serve()
	var handles []string
	for i, end := range []string{"", "exit 3", "kill -9 $$", "exec " + nap} {
		h := s.open("tty", nil)
		handles = append(handles, h)
		s.stay("tty_send", object{"handle": h, "input": "setsid " + nap + " & echo up; " + end})
		if f, state := s.stay("tty_read", object{"handle": h, "pattern": "up"}); state.Waited == "time" {
			t.Errorf("%d: %s", i, f.Text)
		}
	}
	s.stay("tty_stop", object{"handle": handles[0]})
	for i, want := range []string{"ok", "exit", "signal"} {
		if r := p.rowOf(handles[i]); r.Outcome != want && !(i == 0 && r.Outcome == "cancelled") {
			t.Errorf("%s: %s", want, r.raw)
		}
	}
	s.kill()
	noProcess(t, nap)
	p.recover()
	if r := p.rowOf(handles[3]); r.Outcome != "interrupted" {
		t.Errorf("%s", r.raw)
	}
	if got := p.query("verify"); got.code != 0 {
		t.Errorf("verify: %s%s", got.stdout, got.stderr)
	}
}
