package pairing_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"toolrun/archive/claims"
	"toolrun/archive/ledger"
	"toolrun/archive/pairing"
	"toolrun/archive/redact"
	"toolrun/archive/transcript"
)

type object = map[string]any

// ownLoop makes of a session what a loop of one's own would have kept of it: the calls and answers of OpenCode's transcript, in
// the messages of an API. answer says what it keeps of an answer.
func ownLoop(t *testing.T, s *session, form string, answer func(text, stdout string) string) {
	t.Helper()
	var e struct {
		Messages []struct {
			Info  struct{ Role string }
			Parts []struct {
				Type, Text, Tool, CallID string
				State                    struct {
					Status, Output, Error string
					Input                 json.RawMessage
				}
			}
		}
	}
	if err := json.Unmarshal(s.text, &e); err != nil {
		t.Fatal(err)
	}
	var list []object
	id := 0
	for _, m := range e.Messages {
		var calls, results []object
		text := ""
		for _, p := range m.Parts {
			switch {
			case p.Type == "text":
				text = p.Text
			case p.Type == "tool":
				id++
				call, name, said := fmt.Sprint("call_", id), strings.TrimPrefix(p.Tool, "box_"), p.State.Output+p.State.Error
				if p.Tool == "invalid" {
					name, said = "run_tests", "unknown tool: run_tests"
				}
				_, stdout, _ := strings.Cut(said, " ---\n")
				stdout, _, _ = strings.Cut(stdout, "\nOK: ")
				said = answer(said, stdout)
				switch form {
				case "chat", "chat lines":
					calls = append(calls, object{"id": call, "type": "function", "function": object{"name": name, "arguments": string(p.State.Input)}})
					results = append(results, object{"role": "tool", "tool_call_id": call, "content": said})
				case "responses":
					calls = append(calls, object{"type": "function_call", "call_id": call, "name": name, "arguments": string(p.State.Input)})
					results = append(results, object{"type": "function_call_output", "call_id": call, "output": said})
				case "anthropic":
					calls = append(calls, object{"type": "tool_use", "id": call, "name": name, "input": p.State.Input})
					results = append(results, object{"type": "tool_result", "tool_use_id": call, "content": []object{{"type": "text", "text": said}}})
				}
			}
		}
		switch {
		case m.Info.Role != "assistant":
			list = append(list, object{"role": "user", "content": text})
		case form == "responses":
			list = append(append(list, calls...), results...)
			if len(calls) == 0 {
				list = append(list, object{"type": "message", "role": "assistant", "content": []object{{"type": "output_text", "text": text}}})
			}
		case form == "anthropic":
			list = append(list, object{"role": "assistant", "content": append([]object{{"type": "text", "text": text}}, calls...)})
			if len(results) > 0 {
				list = append(list, object{"role": "user", "content": results})
			}
		case len(calls) > 0:
			list = append(append(list, object{"role": "assistant", "content": text, "tool_calls": calls}), results...)
		default:
			list = append(list, object{"role": "assistant", "content": text})
		}
	}
	var whole any = list
	switch form {
	case "responses":
		whole = object{"model": "gpt", "input": list}
	case "anthropic":
		whole = object{"model": "claude", "messages": list}
	}
	text, err := json.MarshalIndent(whole, "", " ")
	if form == "chat lines" {
		text = nil
		for _, m := range list {
			line, _ := json.Marshal(m)
			text = append(append(text, line...), '\n')
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	s.text, s.name = text, "messages.json"
}

var forms = []string{"chat", "chat lines", "responses", "anthropic"}

func TestMessagesOfOnesOwnLoopAreHeldAgainstTheRows(t *testing.T) {
	whole := func(text, _ string) string { return text }
	onlyStdout := func(text, stdout string) string {
		if stdout == "" || !strings.HasPrefix(text, "OK: ") {
			return text
		}
		return stdout
	}
	for _, form := range forms {
		for what, answer := range map[string]func(string, string) string{"the whole answer": whole, "stdout only": onlyStdout} {
			s := open(t, transcript.OpenCode, "honest-tests")
			ownLoop(t, s, form, answer)
			if r := s.pair(t); r.Findings > 0 || count(r, pairing.Paired) != 2 {
				t.Errorf("%s, %s:\n%s", form, what, tell(r))
			}
			s.replace(t, "3 passed", "4 passed")
			s.session = s.rows[0].SessionID.String()
			if r := s.pair(t); count(r, pairing.Altered) != 1 {
				t.Errorf("%s, %s, altered:\n%s", form, what, tell(r))
			}
			s = open(t, transcript.OpenCode, "honest-tests")
			ownLoop(t, s, form, answer)
			s.session = s.rows[0].SessionID.String()
			s.without(1)
			if r := s.pair(t); count(r, pairing.Orphan) != 1 || count(r, pairing.Paired) != 1 {
				t.Errorf("%s, %s, without a row:\n%s", form, what, tell(r))
			}
		}
		s := open(t, transcript.OpenCode, "deceit")
		ownLoop(t, s, form, whole)
		r := s.pair(t)
		var got []string
		for _, item := range r.Items {
			if item.Kind.Finding() {
				got = append(got, string(item.Kind)+" "+item.Tool)
			}
		}
		if want := []string{"invented run_tests", "bypassed bash"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q\n%s", form, got, want, tell(r))
		}
		list, err := transcript.Read(s.write(t), transcript.Window{})
		if err != nil {
			t.Fatal(err)
		}
		if marks := claims.Judge(list[0].Final, r.Rows, s.catalog(r.Rows[0].RunID), s.content); len(marks) != 3 {
			t.Errorf("%s: %+v", form, marks)
		}
	}
}

// Where the session of messages is not known, nothing is said of their calls, for nobody knows what toolrun had then.
func TestMessagesOfNoKnownSessionAreAccusedOfNothing(t *testing.T) {
	only := func(_, stdout string) string { return stdout }
	unmatched := func(what string, s *session, alike ...string) {
		t.Helper()
		r := s.pair(t)
		if count(r, pairing.Unmatched) != 2 || r.Findings > 0 || !r.Unmatched() || !slices.Equal(r.Alike, alike) {
			t.Errorf("%s: alike %q\n%s", what, r.Alike, tell(r))
		}
	}
	s := open(t, transcript.OpenCode, "honest-tests")
	ownLoop(t, s, "chat", only)
	rows := s.rows
	s.rows = nil
	unmatched("no rows", s)
	s.rows = open(t, transcript.OpenCode, "honest-failures").rows
	unmatched("rows of other calls", s)

	another := func(row *ledger.Row) *ledger.Row {
		other := *row
		other.SessionID, other.ToolCallID = redact.Plain("another"), redact.Plain(row.ToolCallID.String()+"@another")
		return &other
	}
	s.rows = slices.Clone(rows)
	for _, row := range rows {
		s.rows = append(s.rows, another(row))
	}
	unmatched("two sessions with the same calls", s, rows[0].SessionID.String(), "another")
	s.rows = append(slices.Clone(rows), another(rows[0]))
	if r := s.pair(t); count(r, pairing.Paired) != 2 || r.Findings > 0 {
		t.Errorf("of a session that has one of the calls, in the same run:\n%s", tell(r))
	}

	may := pairing.Alike(readOne(t, s))
	for _, row := range rows {
		if !may(row) {
			t.Errorf("%s %s may not be one of the calls", row.ToolName, row.InputSummary)
		}
	}
	other := *rows[0]
	other.InputHash = strings.Repeat("0", 64)
	if may(&other) {
		t.Error("a row with other arguments may be one of the calls")
	}
}

func readOne(t *testing.T, s *session) []*transcript.Transcript {
	t.Helper()
	list, err := transcript.Read(s.write(t), transcript.Window{})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
