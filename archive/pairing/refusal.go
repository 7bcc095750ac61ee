package pairing

import (
	"slices"

	"toolrun/archive/internal/late"
	"toolrun/archive/ledger"
	"toolrun/archive/transcript"
)

// A client that answers in place of a tool (it knows no such tool, the arguments do not fit, nobody allowed it, it waited too
// long, the server is gone) has words for that. A mark as an error alone makes no result such an answer: whoever makes up a
// result can set it.

// refusal is how such answers begin. Measured with Claude Code 2.1, Codex 0.171, Gemini CLI 0.61, OpenCode 1.18 and Qwen
// Code 0.24; a loop of one's own writes the error that it caught.
var refusal = late.Regexp(`(?i)^[\s\W]*(?:` +
	`tool_use_error\b|(?:mcp |tool call |internal |api )?\w*error\b|\w*exception\b|traceback\b` +
	`|failed to\b|(?:could|can|did|do|does)(?: not|n't)\b|cannot\b|unable\b|timed? ?out\b` +
	`|(?:aborted|cancell?ed|interrupted|rejected|denied|skipped|refused|unauthorized|forbidden)\b` +
	`|(?:unsupported|unknown|no such|invalid|missing|unregistered|undefined) (?:tool|function|call|name|arguments?|params?|parameters?|input|required|property|field|key|value)\b` +
	`|params(?: must\b|/)|permission\b|claude requested permissions|this command requires approval|output redirection to\b[^\n]*\bneeds approval` +
	`|(?:the |this |your )?(?:mcp )?(?:request|operation|call|tool|function|user|server|transport|connection|socket|stream|arguments)\b[^\n]{0,160}?\b(?:timed out|time-?out|cancell?ed|aborted|interrupted|rejected|denied|declined|dismissed|doesn't want|not allowed|closed|lost|refused|reset|disconnected|not connected|not found|unavailable|invalid|does not exist|(?:is )?not (?:defined|available|registered|known))\b` +
	`|not connected\b)`)

// result is what only a result says, however an answer begins.
var result = late.Regexp(`(?i)\b\d+ (?:\w+ )?(?:pass(?:ed|es|ing)?|fail(?:ed|ures?|ing))\b|\b(?:all|every|everything)\b[^\n]{0,40}\bpass(?:ed|es|ing)?\b|\bsucce(?:ss|ssful|ssfully|eded|eds)\b|\b(?:deployed|redeployed)\b|\bexit(?:ed)?(?: with)?(?: code| status)?:? \d`)

// negated is what sounds like a result and is none.
var negated = late.Regexp(`(?i)\b(?:not|never|no|without)(?: \w+)? succe\w+|\bnot (?:yet )?deployed\b`)

func saysResult(text string) bool { return result().MatchString(negated().ReplaceAllString(text, "")) }

// byItself tells whether the client answered a call of one of toolrun's tools by itself, as far as its words tell; an error
// without words is one.
func byItself(r *transcript.Result) bool {
	return (r.Refused || r.Error) && !slices.ContainsFunc(r.Views, func(v transcript.View) bool {
		return v.Text != "" && (!refusal().MatchString(v.Text) || saysResult(v.Text))
	})
}

// didNotRun tells whether a tool of the agent did not run, by the agent's own mark for that.
func didNotRun(r *transcript.Result) bool {
	return r.Refused && !slices.ContainsFunc(r.Views, func(v transcript.View) bool { return saysResult(v.Text) })
}

// unmarked tells whether the transcript has toolrun's answer to a call that failed, without the mark that the client gives to
// each of these. Codex has it where it kept what the server said; of a loop of one's own it is known where it marked another.
func (p *pairer) unmarked(item *Item, row *ledger.Row) bool {
	r := item.Call.Result
	if r == nil || r.Error || row.Status == ledger.StatusSuccess || item.From.Format == transcript.Codex && r.CallID == "" {
		return false
	}
	if !item.From.Prefixed() {
		return slices.ContainsFunc(p.items, func(other *Item) bool { return other.From == item.From && p.marked(other) })
	}
	return slices.ContainsFunc(r.Views, func(v transcript.View) bool { return looksOurs(v.Text) })
}

// marked tells whether a result that toolrun gave to a failure is marked as an error.
func (p *pairer) marked(item *Item) bool {
	row, r := item.Row(), item.Call.Result
	return row != nil && row.Status != ledger.StatusSuccess && r != nil && r.Error && agree(r, row, p.shown(row), p.prefixed).held()
}

// falselyMarked tells whether a loop of one's own marked a success as an error. One that goes by exit codes alone marks each
// that is not 0.
func falselyMarked(item *Item, row *ledger.Row) bool {
	r := item.Call.Result
	return item.From.Format == transcript.Anthropic && r != nil && r.Error && row.Status == ledger.StatusSuccess && (row.ExitCode == nil || *row.ExitCode == 0)
}
