package tests

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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
	ended := func(h string) (r row) {
		eventually(t, patience, "no row of the program", func() bool {
			rows, _ := readRows(p.data)
			i := slices.IndexFunc(rows, func(r row) bool { return r.ToolCallID == h })
			if i >= 0 {
				r = rows[i]
			}
			return i >= 0
		})
		return r
	}
	if r := ended(quick); r.Outcome != "timeout" || !strings.Contains(*r.ErrorMessage, "timed out after 700ms") {
		t.Errorf("%s", r.raw)
	}
	if r := ended(bored); r.Outcome != "timeout" || !strings.Contains(*r.ErrorMessage, "no call used it") {
		t.Errorf("%s", r.raw)
	}
	began := time.Now()
	s.signal(15)
	s.wait(patience)
	r := ended(h)
	at, err := time.Parse(time.RFC3339, r.EndedAt)
	if err != nil || r.Outcome != "interrupted" || at.Sub(began) > time.Second {
		t.Errorf("ended %v after the signal: %s", at.Sub(began), r.raw)
	}
}
