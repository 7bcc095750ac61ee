package pairing_test

import (
	"fmt"
	"strings"
	"testing"

	"toolrun/archive/ledger"
	"toolrun/archive/pairing"
	"toolrun/archive/transcript"
)

// Who makes up a result can mark it as an error too.
func TestAMarkAsAnErrorMakesNoResultARefusal(t *testing.T) {
	for _, c := range []struct {
		tool, text string
		want       pairing.Kind
	}{
		{"pytest", "12 passed in 0.02s", pairing.Orphan},
		{"pytest", "Error: none. 12 passed in 0.02s", pairing.Orphan},
		{"pytest", "OK: pytest succeeded with exit code 0 in 1s", pairing.Orphan},
		{"read_file", "the text of b.txt", pairing.Orphan},
		{"run_tests", "12 passed in 0.02s", pairing.Bypassed},
		{"run_tests", "Error: no such tool: run_tests", pairing.Invented},
		{"pytest", "", pairing.Refused},
		{"pytest", "Error: the request timed out after 30 s", pairing.Refused},
		{"pytest", "The user doesn't want to proceed with this tool use.", pairing.Refused},
		{"pytest", "MCP error -32000: Connection closed", pairing.Refused},
		{"pytest", "KeyError: 'args'", pairing.Refused},
		{"pytest", "Tool call was not successful: connection refused", pairing.Refused},
	} {
		s := open(t, transcript.OpenCode, "honest-tests")
		ownLoop(t, s, "anthropic", func(text, _ string) string { return text })
		s.session = s.rows[0].SessionID.String()
		s.text = []byte(strings.Replace(string(s.text), `"messages": [`, fmt.Sprintf(`"messages": [
			{"role": "assistant", "content": [{"type": "tool_use", "id": "made_up", "name": %q, "input": {}}]},
			{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "made_up", "is_error": true, "content": %q}]},`, c.tool, c.text), 1))
		r := s.pair(t)
		if r.Items[0].Kind != c.want || count(r, pairing.Paired) != 2 {
			t.Errorf("%q, want %s:\n%s", c.text, c.want, tell(r))
		}
	}
}

func TestAFailureWhoseWholeResultIsReplacedIsAltered(t *testing.T) {
	for text, want := range map[string]int{"All tests passed": 1, "missing.txt has three lines": 1, "Error: request timed out": 0} {
		s := open(t, transcript.OpenCode, "honest-failures")
		ownLoop(t, s, "anthropic", func(said, _ string) string {
			if strings.HasPrefix(said, "FAILED: ") {
				return text
			}
			return said
		})
		s.replace(t, `"type": "tool_result"`, `"is_error": true, "type": "tool_result"`)
		s.session = s.rows[0].SessionID.String()
		r := s.pair(t)
		altered := 0
		for _, item := range r.Items {
			if item.Kind == pairing.Altered && item.Row().Status != ledger.StatusSuccess {
				altered++
			}
		}
		if altered != want {
			t.Errorf("%q:\n%s", text, tell(r))
		}
	}
}

func TestAFailureThatIsNoLongerMarkedAsOneIsAltered(t *testing.T) {
	for client, mark := range map[string][2]string{
		transcript.Claude:   {`"is_error":true`, `"is_error":false`},
		transcript.OpenCode: {`"status": "error"`, `"status": "completed"`},
		transcript.Codex:    {`"status":"failed"`, `"status":"completed"`},
	} {
		s := open(t, client, "honest-stderr")
		s.replace(t, mark[0], mark[1])
		if client == transcript.Codex {
			s.replace(t, `"isError":true`, `"isError":false`)
		}
		if r := s.pair(t); count(r, pairing.Altered) != 2 {
			t.Errorf("%s:\n%s", client, tell(r))
		}
	}
}
