package tests

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// asked is the line of a call with a _meta.
func asked(id any, script, meta string) string {
	return request(id, "tools/call", object{"name": "sh", "arguments": sh(script), "_meta": json.RawMessage(meta)})
}

// One client names its calls, one its calls, sessions, turns and models, one nothing: in each case the row says who asked.
func TestRowsSayWhoAskedAndWhereTheSessionCameFrom(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	p.env = append(p.env, "CLAUDE_CODE_SESSION_ID=claude-session", "TOOLRUN_ROLE=tester", "TOOLRUN_PROVIDER=anthropic", "TOOLRUN_MODEL=of-the-launch")
	s := p.serve()
	s.send(asked(1, "true", `{"claudecode/toolUseId":"toolu_1","progressToken":2}`))
	s.answer(1, patience)
	for n, turn := range []string{"t-a", "t-b", "t-b"} {
		s.send(asked(2+n, "true", `{"callId":"call_`+string(rune('1'+n))+`","sessionId":"codex-session","x-codex-turn-metadata":{"turn_id":"`+turn+`","model":"gpt-5"}}`))
		s.answer(2+n, patience)
	}
	s.send(asked(9, "true", `{"toolrun/session_id":"own","toolrun/turn":7,"toolrun/parent_call_id":"toolu_1","toolrun/provider":"ollama","toolrun/model":"m","toolrun/input_tokens":10,"toolrun/output_tokens":1}`))
	s.answer(9, patience)
	want := []string{
		`"tool_call_id":"toolu_1" "session_id":"claude-session" "turn":0 "model":"of-the-launch" "provider":"anthropic" "session_from":"env" "role":"tester"`,
		`"tool_call_id":"call_1" "session_id":"codex-session" "turn":1 "model":"gpt-5" "session_from":"meta"`,
		`"tool_call_id":"call_2" "turn":2`,
		`"tool_call_id":"call_3" "turn":2`,
		`"session_id":"own" "turn":7 "model":"m" "provider":"ollama" "input_tokens":10 "output_tokens":1 "estimated_cost_usd":0 "parent_call_id":"toolu_1" "session_from":"meta"`,
	}
	for i, r := range p.rows() {
		for _, member := range strings.Fields(want[i]) {
			if !strings.Contains(string(r.raw), member) {
				t.Errorf("row %d lacks %s: %s", i, member, r.raw)
			}
		}
	}
}

// An id is used once in a run; in a later one it is another call; and a client that replays a call after a crash, under the
// same JSON-RPC id, makes a call of its own.
func TestAnIdIsTakenOnceInARunAndAReplayIsACallOfItsOwn(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	s := p.serve()
	s.send(asked(1, "echo once", `{"claudecode/toolUseId":"toolu_1"}`))
	s.facts(1, patience)
	s.send(asked(2, "echo twice", `{"claudecode/toolUseId":"toolu_1"}`))
	expect(t, s.facts(2, patience), "duplicate_id")
	s.send(callLine(3, "sh", sh("echo read")))
	s.facts(3, patience)
	s.kill()
	s = p.serve()
	s.send(callLine(3, "sh", sh("echo read")))
	s.facts(3, patience)
	s.send(asked(4, "echo later", `{"claudecode/toolUseId":"toolu_1"}`))
	s.facts(4, patience)
	rows := p.rows()
	if len(rows) != 5 {
		t.Fatalf("%d rows", len(rows))
	}
	for i, id := range []string{"toolu_1", "toolu_1!1", rows[0].RunID[:8] + "-1", rows[3].RunID[:8] + "-1", "toolu_1@" + rows[3].RunID[:8]} {
		if rows[i].ToolCallID != id {
			t.Errorf("row %d has the id %q, want %q", i, rows[i].ToolCallID, id)
		}
	}
}

func TestARetryOfTheAgentIsToldAsOne(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	s := p.serve()
	const flaky = "test -e ok || { [ -e tried ] && touch ok; touch tried; exit 1; }"
	for range 4 {
		s.call("sh", sh(flaky))
	}
	var got []string
	rows := p.rows()
	for _, r := range rows {
		var v struct {
			Repeat   int     `json:"repeat"`
			RepeatOf *string `json:"repeat_of"`
		}
		if err := json.Unmarshal(r.raw, &v); err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.Repeat("r", v.Repeat)+strings.TrimPrefix(show(v.RepeatOf), r.RunID[:8]))
	}
	if strings.Join(got, " ") != "null r-1 rr-2 null" {
		t.Errorf("repeats %q, statuses %s %s %s %s", got, rows[0].Status, rows[1].Status, rows[2].Status, rows[3].Status)
	}
}

func TestAClientThatAskedHearsTheLastLineOfOutput(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	s := p.serve()
	s.send(asked(1, "echo first; echo 'compiling 1 of 2'; sleep 63.75", `{"progressToken":"tok"}`))
	s.send(callLine(2, "sh", sh("echo nobody asked; sleep 0.3")))
	s.facts(2, patience)
	eventually(t, 10*time.Second, "a notification with the last line", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, line := range s.lines {
			if strings.Contains(line, `"method":"notifications/progress"`) && strings.Contains(line, `"progressToken":"tok"`) && strings.Contains(line, `"message":"compiling 1 of 2"`) {
				return true
			}
		}
		return false
	})
	s.send(request(nil, "notifications/cancelled", object{"requestId": 1}))
	eventually(t, 10*time.Second, "the row", func() bool { rows, _ := readRows(p.data); return len(rows) == 2 })
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.lines {
		if strings.Contains(line, "nobody asked") && strings.Contains(line, "notifications/progress") {
			t.Errorf("a client that did not ask was told: %s", line)
		}
	}
}
