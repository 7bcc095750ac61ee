package tests

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// terminalPair opens a pseudo-terminal and gives both of its ends.
func terminalPair(t *testing.T) (tty, master *os.File) {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close(); master.Close() })
	return tty, master
}

// readUntil reads until the text came, or nothing comes any more.
func readUntil(r io.Reader, text string) string {
	var seen strings.Builder
	buf := make([]byte, 4096)
	for !strings.Contains(seen.String(), text) {
		n, err := r.Read(buf)
		seen.Write(buf[:n])
		if err != nil {
			break
		}
	}
	return seen.String()
}

// modernCall is a tools/call of a client of MCP 2026-07-28 that can ask its user. state and answer are those of a re-send.
func modernCall(id any, tool string, args any, state, answer string) string {
	params := object{"name": tool, "arguments": args, "_meta": object{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientInfo":         object{"name": "agent", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": object{"elicitation": object{"form": object{}}},
	}}
	if state != "" {
		params["requestState"] = state
		params["inputResponses"] = object{"approval": object{"action": "accept", "content": object{"answer": answer}}}
	}
	return request(id, "tools/call", params)
}

// asked waits for an InputRequiredResult and gives its requestState.
func (s *server) asked(id any) (state string) {
	s.t.Helper()
	var r struct {
		Type     string `json:"resultType"`
		State    string `json:"requestState"`
		Requests map[string]struct {
			Method string `json:"method"`
			Params struct {
				Message string `json:"message"`
			} `json:"params"`
		} `json:"inputRequests"`
	}
	a := s.answer(id, patience)
	if err := json.Unmarshal(a.Result, &r); err != nil || r.Type != "input_required" || r.Requests["approval"].Method != "elicitation/create" {
		s.t.Fatalf("%v: %s", err, toJSON(a))
	}
	if message := r.Requests["approval"].Params.Message; !strings.Contains(message, "SEND") || !strings.Contains(message, "prod") {
		s.t.Errorf("asked: %q", message)
	}
	return r.State
}

func TestAModernClientIsAskedAndItsAnswerIsTheSameCall(t *testing.T) {
	t.Parallel()
	p := newPlace(t, askTools)
	s := p.serve()
	to := object{"to": "prod"}
	s.send(modernCall(1, "deploy", to, "", ""))
	state := s.asked(1)
	s.send(modernCall(2, "deploy", to, state, "allow"))
	expect(t, s.facts(2, patience), 0)
	row := only(t, p.rows())
	if by := row.approval(t).ApprovedBy; show(row.Approval) != "approved" || by.Via != "input_required" || by.UID != nil || by.TTY != nil {
		t.Errorf("%s", row.raw)
	}
}

func TestAForgedOrReplayedRequestStateAllowsNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t, askTools)
	p.configure("approval_wait = \"20s\"\n")
	s := p.serve()
	prod, test := object{"to": "prod"}, object{"to": "prod, and test"}
	s.send(modernCall(1, "deploy", prod, "", ""), modernCall(2, "deploy", test, "", ""))
	state, other := s.asked(1), s.asked(2)
	flipped := []byte(state)
	flipped[3] ^= 1
	for i, try := range []string{
		modernCall(10, "deploy", prod, "AAAA", "allow"),
		modernCall(11, "deploy", prod, string(flipped), "allow"),
		modernCall(12, "deploy", test, state, "allow"), // other arguments
		modernCall(13, "deploy", prod, other, "allow"), // another call's
		modernCall(14, "peek", object{}, state, "allow"),
	} {
		s.send(try)
		if a := s.answer(10+i, patience); a.Error == nil || a.Error.Code != -32602 {
			t.Errorf("%s: %s", try, toJSON(a))
		}
	}
	if p.deployed() != "" {
		t.Fatalf("it ran: %q", p.deployed())
	}
	// None of that ended what waits.
	s.send(modernCall(20, "deploy", prod, state, "deny"))
	expect(t, s.facts(20, patience), "declined")
	s.send(modernCall(21, "deploy", prod, state, "allow"))
	if a := s.answer(21, patience); a.Error == nil {
		t.Errorf("replayed: %s", toJSON(a))
	}
	// Another process has another key.
	again := p.serve()
	again.send(modernCall(1, "deploy", test, other, "allow"))
	if a := again.answer(1, patience); a.Error == nil {
		t.Errorf("in another process: %s", toJSON(a))
	}
	if p.deployed() != "" {
		t.Errorf("it ran: %q", p.deployed())
	}
	for _, call := range p.waiting(1) {
		p.query("deny", call["tool_call_id"].(string))
	}
}

func TestAnOlderClientIsAskedByElicitationAndItsDeclineIsNoAnswer(t *testing.T) {
	t.Parallel()
	p := newPlace(t, askTools)
	s := p.serve()
	s.send(request(0, "initialize", object{"protocolVersion": "2025-06-18", "capabilities": object{"elicitation": object{}}, "clientInfo": object{"name": "agent", "version": "1"}}))
	s.answer(0, patience)
	s.send(request(nil, "notifications/initialized", nil))
	question := func(n int) (id string) {
		t.Helper()
		eventually(t, patience, "a question", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			seen := 0
			for _, line := range s.lines {
				var m answer
				if json.Unmarshal([]byte(line), &m) == nil && m.Method == "elicitation/create" {
					if seen++; seen == n {
						id = string(m.ID)
					}
				}
			}
			return id != ""
		})
		return id
	}
	first := s.begin("deploy", object{"to": "prod"})
	s.send(`{"jsonrpc":"2.0","id":` + question(1) + `,"result":{"action":"decline"}}`)
	name := p.waiting(1)[0]["tool_call_id"].(string)
	if r, _ := p.atTerminal("allow", name); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	expect(t, s.facts(first, patience), 0)
	second := s.begin("deploy", object{"to": "prod"})
	s.send(`{"jsonrpc":"2.0","id":` + question(2) + `,"result":{"action":"accept","content":{"answer":"allow"}}}`)
	expect(t, s.facts(second, patience), 0)
	rows := p.rows()
	if rows[0].approval(t).ApprovedBy.Via != "terminal" || rows[1].approval(t).ApprovedBy.Via != "elicitation" {
		t.Errorf("%s\n%s", rows[0].raw, rows[1].raw)
	}
}
