package main

import (
	"testing"

	"toolrun/archive/ledger"
	"toolrun/archive/pairing"
	"toolrun/archive/redact"
	"toolrun/archive/transcript"
)

// An answer of the model is paid once: what the client told of it at one attempt is not learned again for the next one.
func TestTokensOfAnAnswerAreLearnedOnce(t *testing.T) {
	in, out := int64(1000), int64(100)
	for name, first := range map[string]*ledger.Row{
		"none told":         {ToolCallID: redact.Plain("c"), Attempt: 1},
		"told of the first": {ToolCallID: redact.Plain("c"), Attempt: 1, InputTokens: &in, OutputTokens: &out},
	} {
		rows := []*ledger.Row{first, {ToolCallID: redact.Plain("c#2"), Attempt: 2}}
		report := &pairing.Report{Items: []pairing.Item{{Rows: rows, Call: &transcript.Call{Turn: 1, InputTokens: &in, OutputTokens: &out}}}}
		sum := int64(0)
		if first.InputTokens != nil {
			sum = *first.InputTokens
		}
		for _, j := range joinsOf(report, "test", nil) {
			if j.InputTokens != nil {
				sum += *j.InputTokens
			}
		}
		if sum != in {
			t.Errorf("%s: %d tokens of %d", name, sum, in)
		}
	}
}
