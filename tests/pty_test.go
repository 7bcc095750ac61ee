package tests

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// ptyTool is shTool at a terminal.
const ptyTool = `
[tools.tty]
description = "Runs a script with sh at a terminal."
command = ["sh", "-c", "{script}"]
risk = "READ"
pty = true
[tools.tty.params.script]
type = "string"
required = true
`

func TestTheEndOfATerminalIsNoErrorAndItsBytesAreKept(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "[tools.ab]\ndescription = \"A test.\"\ncommand = [\"printf\", 'a\\nb\\n']\nrisk = \"READ\"\npty = true\n")
	s := p.serve()
	together(t, 100, func(int) {
		f := s.call("ab", nil)
		expect(t, f, 0)
		if f.Stdout != "a\nb\n" || f.Stderr != "" || f.OutputHash == nil || *f.OutputHash != "58055bdcc73787eb88c78d36f0b4939e9c5dc1c3ad17e25cc85a6833cf1a0cab" {
			t.Errorf("stdout %q, stderr %q, output_hash %s", f.Stdout, f.Stderr, show(f.OutputHash))
		}
	})
	for _, r := range p.rows() {
		if r.ErrorMessage != nil || slices.Contains(r.Enforced, "notty") {
			t.Fatalf("error_message %s, enforced %v", show(r.ErrorMessage), r.Enforced)
		}
	}
}

func TestWhoHoldsATerminalOpenIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	s := newPlace(t, ptyTool).serve()
	began := time.Now()
	f := s.call("tty", sh("sleep 63.1 & echo bg; exit 0"))
	expect(t, f, 0)
	if f.Stdout != "bg\n" || f.StdoutBytes != 4 || time.Since(began) > 8*time.Second {
		t.Errorf("after %v: %q of %d bytes", time.Since(began), f.Stdout, f.StdoutBytes)
	}
	noProcess(t, "sleep 63.1")
}

func TestATerminalHasItsSizeAndAType(t *testing.T) {
	t.Parallel()
	const script = `stty size; echo "$TERM"; echo "${LINES-none} ${COLUMNS-none}"`
	s := newPlace(t, fixed("plain", script, "pty = true")+fixed("sized", script, "pty = { rows = 50, cols = 200 }")+
		fixed("named", script, "pty = true", `env = { TERM = "dumb" }`)).serve()
	for tool, want := range map[string]string{
		"plain": "24 80\nxterm-256color\nnone none\n", "sized": "50 200\nxterm-256color\nnone none\n", "named": "24 80\ndumb\nnone none\n",
	} {
		if f := s.call(tool, nil); f.Stdout != want {
			t.Errorf("%s: %q, want %q", tool, f.Stdout, want)
		}
	}
}

func TestATerminalOfNoSizeIsRefusedAtLoad(t *testing.T) {
	t.Parallel()
	for _, pty := range []string{"{ rows = 0 }", "{ cols = 0 }", "{ rows = 70000 }", "{ rows = 24, cols = 70000 }", "{ row = 24 }", `"yes"`, "24"} {
		p := barePlace(t, fixed("sized", "true", "pty = "+pty))
		if got := p.run("catalog", "check"); got.code != 2 || !strings.Contains(got.stderr, "tools.toml:7: tools.sized.pty") {
			t.Errorf("pty = %s: exit status %d, %s", pty, got.code, got.stderr)
		}
	}
}

func TestATerminalIsReadAsAPersonWouldHaveRead(t *testing.T) {
	t.Parallel()
	raw := "\x1b[?25lLo\rLoading\r\n"
	for i := 1; i <= 43; i++ {
		raw += fmt.Sprintf("p %d%%\r", i)
	}
	raw += "\r\n\x1b]0;t\x07\x1b[0mdone\r\n"
	p := newPlace(t, "[tools.spin]\ndescription = \"A test.\"\ncommand = [\"cat\", \"spinner\"]\nrisk = \"READ\"\npty = true\n")
	p.write("spinner", strings.ReplaceAll(raw, "\r\n", "\n"), 0o644)
	s := p.serve()
	f := s.call("spin", nil)
	if f.Stdout != "Loading\np 43%\ndone\n" || strings.ContainsRune(f.Text, 0x1b) || f.StdoutBytes != int64(len(raw)) {
		t.Errorf("stdout %q of %d bytes, want %d", f.Stdout, f.StdoutBytes, len(raw))
	}
	if got := p.object(*f.OutputHash); got != raw {
		t.Errorf("stored %q, want %q", got, raw)
	}
	if got := p.query("show", f.ToolCallID); !strings.Contains(got.stdout, "Loading p 43% done") || strings.ContainsRune(got.stdout, 0x1b) {
		t.Errorf("show says\n%s", got.stdout)
	}
}

func TestAFloodOfFramesBecomesTheLastOfThem(t *testing.T) {
	t.Parallel()
	s := newPlace(t, fixed("frames", `echo first; i=0; while [ $i -lt 20000 ]; do printf 'frame %d of many\r' $i; i=$((i+1)); done; echo; echo FATAL-LAST; exit 2`, "pty = true")).serve()
	f := s.call("frames", nil)
	expect(t, f, 2)
	if !strings.HasPrefix(f.Stdout, "first\n") || !strings.HasSuffix(f.Stdout, "frame 19999 of many\nFATAL-LAST\n") || len(f.Stdout) > 500 || !f.Truncated {
		t.Errorf("truncated %t, %d bytes: %.600q", f.Truncated, len(f.Stdout), f.Stdout)
	}
	if !strings.Contains(f.Text, "exit status 2: FATAL-LAST") {
		t.Errorf("the verdict does not tell the last line: %.300s", f.Text)
	}
}

func TestACharacterCutByAPauseIsWholeOnPipesAndTerminals(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool+ptyTool)
	s := p.serve()
	for tool, end := range map[string]string{"sh": "\n", "tty": "\r\n"} {
		f := s.call(tool, sh(`printf "\342\202"; sleep 0.3; printf "\254\n"`))
		if f.Stdout != "€\n" || p.object(*f.OutputHash) != "€"+end {
			t.Errorf("%s: %q", tool, f.Stdout)
		}
		f = s.call(tool, sh(`printf "\342\202"`))
		if strings.TrimSuffix(f.Stdout, "\n") != "\ufffd" || p.object(*f.OutputHash) != "\xe2\x82" || !strings.Contains(f.Text, "not all of it UTF-8") {
			t.Errorf("%s, half a character: %q", tool, f.Text)
		}
	}
}

func TestSignalsAtATerminalAreNoExitCodes(t *testing.T) {
	t.Parallel()
	p := newPlace(t, ptyTool)
	s := p.serve()
	for _, signal := range []string{"KILL", "TERM", "SEGV"} {
		f := s.call("tty", sh("printf before; kill -"+signal+" $$"))
		if f.ExitCode != nil || f.Signal == nil || *f.Signal != "SIG"+signal || !f.IsError || f.Stdout != "before\n" || p.object(*f.OutputHash) != "before" {
			t.Errorf("%s: exit_code %s, signal %s, stdout %q", signal, show(f.ExitCode), show(f.Signal), f.Stdout)
		}
	}
}

func TestSecretCutAnywhereAtATerminalIsMasked(t *testing.T) {
	t.Parallel()
	const assemble = "t=gh; t=${t}p_$(printf %036d 0 | tr 0 A); printf 'before '; "
	p := newPlace(t, ptyTool)
	s := p.serve()
	together(t, len(token)-1, func(i int) {
		script := fmt.Sprintf("printf %%s $t | head -c %d; sleep 0.05; printf %%s $t | tail -c +%d; echo ' after'", i+1, i+2)
		if f := s.call("tty", sh(assemble+script)); f.Stdout != "before [REDACTED] after\n" {
			t.Errorf("cut after %d bytes: %q", i+1, f.Stdout)
		}
	})
	if f := s.call("tty", sh(assemble+`printf '%s\033[0m%s\n' $(printf %s $t | head -c 20) $(printf %s $t | tail -c +21)`)); strings.Contains(f.Text, token) {
		t.Errorf("a secret with a colour in the middle is shown whole: %s", f.Text)
	}
	nowhere(t, p, s, token)
}

func TestWhatIsTypedAtATerminalIsReadWholeOrRefused(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "[tools.typed]\ndescription = \"A test.\"\ncommand = [\"sh\", \"-c\", \"wc -c\"]\nrisk = \"READ\"\npty = true\nstdin = \"{text}\"\n[tools.typed.params.text]\ntype = \"string\"\nrequired = true\n")
	s := p.serve()
	lines := strings.Repeat(strings.Repeat("x", 4094)+"\n", 40)
	if f := s.call("typed", object{"text": lines}); strings.TrimSpace(f.Stdout) != fmt.Sprint(len(lines)) {
		t.Errorf("%q of %d bytes", f.Stdout, len(lines))
	}
	f := s.call("typed", object{"text": "a\n" + strings.Repeat("x", 4096) + "\n"})
	if f.Outcome != "invalid_arguments" || !strings.Contains(f.Text, `"text"`) || !strings.Contains(f.Text, "4095") {
		t.Errorf("%s: %s", f.Outcome, f.Text)
	}
	if rows := p.rows(); len(rows) != 2 || rows[1].Outcome != "invalid_arguments" || rows[1].OutputHash != nil {
		t.Errorf("%d rows", len(rows))
	}
}

func TestStderrOfATerminalIsItsOutput(t *testing.T) {
	t.Parallel()
	p := newPlace(t, ptyTool)
	s := p.serve()
	f := s.call("tty", sh("echo out; echo err >&2; exit 3"))
	if f.Stdout != "out\nerr\n" || f.Stderr != "" || f.StderrHash != nil || !strings.Contains(f.Text, "exit status 3: err") {
		t.Errorf("stdout %q, stderr %q: %s", f.Stdout, f.Stderr, f.Text)
	}
	b := barePlace(t, fixed("both", "true", "pty = true", `stderr = "separate"`))
	if got := b.run("catalog", "check"); got.code != 2 || !strings.Contains(got.stderr, "tools.both.stderr") {
		t.Errorf("exit status %d: %s", got.code, got.stderr)
	}
	shown := barePlace(t, "[defaults]\nstderr = \"separate\"\n"+ptyTool).run("catalog", "show", "tty", "--json")
	lines := strings.Split(strings.TrimSpace(shown.stdout), "\n")
	if !json.Valid([]byte(lines[0])) || shown.code != 0 {
		t.Errorf("exit status %d: %s", shown.code, shown.stderr)
	}
}

// What a model was told of a terminal is no other result than what is stored, though a terminal drew it.
func TestAnAuditDrawsWhatATerminalShowed(t *testing.T) {
	t.Parallel()
	p := newPlace(t, ptyTool+shellTool("shell", "pty = true"))
	s := p.serve()
	var messages []object
	n := 0
	tell := func(tool string, args object) facts {
		t.Helper()
		n++
		id := fmt.Sprintf("toolu_%d", n)
		s.send(request(n, "tools/call", object{"name": tool, "arguments": args, "_meta": object{"toolrun/tool_call_id": id}}))
		f := s.facts(n, patience)
		messages = append(messages,
			object{"role": "assistant", "content": []object{{"type": "tool_use", "id": id, "name": tool, "input": args}}},
			object{"role": "user", "content": []object{{"type": "tool_result", "tool_use_id": id, "content": f.Text}}})
		return f
	}
	tell("tty", object{"script": "printf before"})
	tell("tty", object{"script": `printf 'p 1%%\rp 43%%\r\n\033[31mred\033[0m\n'; exit 3`})
	tell("tty", object{"script": "seq 5000"})
	tell("tty", object{"script": "seq 50000"}) // more than an answer is made of as a whole
	h := strings.TrimSpace(tell("shell_start", object{}).Stdout)
	tell("shell_start", object{})
	tell("shell_list", object{})
	tell("shell_send", object{"handle": h, "input": `printf '\033[1mbold\033[0m\n'; seq 3`})
	if f := tell("shell_read", object{"handle": h, "pattern": "3\n"}); !strings.Contains(f.Text, "bold\n1\n2\n3\n") {
		t.Fatalf("%s", f.Text)
	}
	tell("shell_stop", object{"handle": h})
	s.stdin.Close()
	s.wait(patience)
	audit := func(change func(string) string) ran {
		file := p.writeOutside("messages.json", change(toJSON(object{"messages": messages})))
		return p.query("audit", "--all", file)
	}
	if got := audit(func(text string) string { return text }); got.code != 0 || strings.Count(got.stdout, "✓  paired") != n || strings.Count(got.stdout, "not compared") != 1 {
		t.Errorf("status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got := audit(func(text string) string { return strings.Replace(text, `p 43%\nred`, `p 44%\nred`, 1) }); got.code != 3 || !strings.Contains(got.stdout, "stdout is not what is stored") {
		t.Errorf("status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}
