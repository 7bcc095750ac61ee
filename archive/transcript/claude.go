package transcript

import (
	"encoding/json"
	"strings"

	"toolrun/archive/internal/late"
)

// claudeLine is a line of Claude Code's .claude/projects/<folder>/<session>.jsonl (2.1). Other types of lines repeat what
// was sent to the model, with reminders added, and are not read.
type claudeLine struct {
	Type      string `json:"type"`
	SessionID string `json:"sessionId"`
	Sidechain bool   `json:"isSidechain"` // of a subagent, whose lines older versions wrote among those of the session
	Timestamp string `json:"timestamp"`
	Message   struct {
		ID      string          `json:"id"`
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
		Usage   *claudeUsage    `json:"usage"`
	} `json:"message"`
	ToolUseResult json.RawMessage `json:"toolUseResult"`
	MCPMeta       *serverResult   `json:"mcpMeta"`
}

type claudeUsage struct {
	Input         int64 `json:"input_tokens"`
	CacheCreation int64 `json:"cache_creation_input_tokens"`
	CacheRead     int64 `json:"cache_read_input_tokens"`
	Output        int64 `json:"output_tokens"`
}

// block is a part of an Anthropic message.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// blocks reads a content: a string is one block of text.
func blocks(raw json.RawMessage) []block {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return []block{{Type: "text", Text: s}}
	}
	var list []block
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

// mcpName is mcp__SERVER__TOOL, as Claude Code and Qwen Code show it.
var mcpName = late.Regexp(`^mcp__(.+?)__(.+)$`)

func splitMCP(name string) (server, tool string) {
	if m := mcpName().FindStringSubmatch(name); m != nil {
		return m[1], m[2]
	}
	return "", name
}

type claudeReader struct {
	*builder
	counts map[string]*Call // by the id of the model's answer, each block of which is a line: its first call
}

func newClaude(path string) reader {
	return &claudeReader{builder: newBuilder(path, Claude), counts: map[string]*Call{}}
}

func (c *claudeReader) line(text []byte) error {
	var l claudeLine
	if err := json.Unmarshal(text, &l); err != nil {
		return err
	}
	if l.Type != "assistant" && l.Type != "user" {
		return nil
	}
	if c.t.SessionID == "" {
		c.t.SessionID, c.t.Sub = l.SessionID, l.Sidechain
	}
	if l.Type == "user" {
		c.user(&l)
		return nil
	}
	for _, b := range blocks(l.Message.Content) {
		switch b.Type {
		case "text":
			if l.Sidechain == c.t.Sub {
				c.said(b.Text)
			}
		case "tool_use":
			c.toolUse(&l, b)
		}
	}
	if first := c.counts[l.Message.ID]; first != nil && l.Message.Usage != nil {
		first.count(l.Message.Usage) // the last line of an answer has the whole number
	}
	return nil
}

func (c *claudeReader) toolUse(l *claudeLine, b block) {
	if c.counts[l.Message.ID] == nil {
		c.turn++
	}
	server, tool := splitMCP(b.Name)
	call := c.call(Call{ID: b.ID, Name: b.Name, Server: server, Tool: tool, Args: object(b.Input), At: clock(l.Timestamp), Model: l.Message.Model, Provider: "anthropic"})
	if c.counts[l.Message.ID] == nil {
		c.counts[l.Message.ID] = call
	} else if call.InputTokens == nil && call != c.counts[l.Message.ID] {
		call.InputTokens, call.OutputTokens = new(int64), new(int64)
	}
}

// count takes the tokens of an answer.
func (c *Call) count(u *claudeUsage) {
	in, out := u.Input+u.CacheCreation+u.CacheRead, u.Output
	if c.OutputTokens != nil {
		out = max(out, *c.OutputTokens)
	}
	c.InputTokens, c.OutputTokens = &in, &out
}

func (c *claudeReader) user(l *claudeLine) {
	for _, b := range blocks(l.Message.Content) {
		if b.Type != "tool_result" {
			continue
		}
		r := c.result(b.ToolUseID)
		r.At, r.Error = clock(l.Timestamp), b.IsError
		for _, text := range texts(b.Content) {
			r.view(claudeView(text))
		}
		for _, text := range texts(l.ToolUseResult) {
			r.view(claudeView(strings.TrimPrefix(text, "Error: ")))
		}
		if l.MCPMeta != nil {
			l.MCPMeta.addTo(r)
		} else if b.IsError {
			r.Refused = claudeRefusal().MatchString(strings.Join(texts(b.Content), "\n"))
		}
	}
}

// claudeRefusal is how Claude Code answers in place of a tool.
var claudeRefusal = late.Regexp(`^(<tool_use_error>|Error: No such tool|No such tool available|InputValidationError|Claude requested permissions|Permission to use|The user doesn't want to proceed|This command requires approval)`)
