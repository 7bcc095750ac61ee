package tests

import (
	"encoding/json"
	"strings"
	"testing"
)

// tellsOfItself is an agent that has its server make one call, works once with a tool of its own, and writes both down where
// Claude Code does.
const tellsOfItself = `
for a; do case $a in --mcp-config=*) f=${a#*=};; --session-id=*) s=${a#*=};; esac; done
for pair in $(sed 's/.*"env":{\([^}]*\)}.*/\1/; s/","/" "/g; s/"//g' "$f"); do export "${pair%%:*}=${pair#*:}"; done
server=$(sed 's/.*"command":"\([^"]*\)".*/\1/' "$f")
at=$(date -u +%Y-%m-%dT%H:%M:%S.000Z)
printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_files","arguments":{},"_meta":{"claudecode/toolUseId":"toolu_1"}}}' | "$server" serve
mkdir -p "$HOME/.claude/projects/w"
cat > "$HOME/.claude/projects/w/$s.jsonl" <<E
{"type":"assistant","sessionId":"$s","timestamp":"$at","message":{"id":"m1","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"tool_use","id":"toolu_1","name":"mcp__box__list_files","input":{}}],"usage":{"input_tokens":1000,"output_tokens":100}}}
{"type":"assistant","sessionId":"$s","timestamp":"$at","message":{"id":"m2","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"tool_use","id":"toolu_2","name":"Bash","input":{"command":"rm -rf build"}}],"usage":{"input_tokens":1000,"output_tokens":100}}}
{"type":"user","sessionId":"$s","timestamp":"$at","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_2","content":"done"}]}}
E
`

func TestLaunchSaysWhatBypassedItAndWhatTheSessionCost(t *testing.T) {
	t.Parallel()
	p := launchPlace(t)
	p.agent("claude", tellsOfItself)
	got := p.start0("launch", "claude")
	for _, want := range []string{"1 call, 0 failed, 0 refused, $0.0045 for 1 call of known price", "bypassed toolrun, and is not on the record: Bash (1 call)", "1 finding in what it tells of itself: toolrun audit --session "} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("no %q in\n%s", want, got.stderr)
		}
	}
	got = p.start0("launch", "--json", "claude")
	lines := strings.Split(strings.TrimSpace(got.stderr), "\n")
	var s struct {
		Cost     float64 `json:"estimated_cost_usd"`
		Audited  bool
		Findings int
		Bypassed map[string]int
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &s); err != nil || !s.Audited || s.Findings != 1 || s.Bypassed["Bash"] != 1 || s.Cost != 0.0045 {
		t.Errorf("%v: %+v\n%s", err, s, got.stderr)
	}
}
