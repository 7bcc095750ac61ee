package transcript

import (
	"encoding/json"
	"strings"
	"time"

	"toolrun/archive/internal/late"
)

// codexLine is a line of Codex's .codex/sessions/<date>/rollout-<time>-<session>.jsonl (0.171).
type codexLine struct {
	Timestamp string       `json:"timestamp"`
	Type      string       `json:"type"`
	Payload   codexPayload `json:"payload"`
}

type codexPayload struct {
	Type string `json:"type"`

	// session_meta, turn_context
	ID            string `json:"id"`
	SessionID     string `json:"session_id"`
	ModelProvider string `json:"model_provider"`
	Model         string `json:"model"`

	// response_item
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"`
	Arguments json.RawMessage `json:"arguments"`
	Input     json.RawMessage `json:"input"`  // of a custom_tool_call
	Action    json.RawMessage `json:"action"` // of a local_shell_call or a web_search_call
	CallID    string          `json:"call_id"`
	Output    json.RawMessage `json:"output"`

	// event_msg
	Item struct {
		Type   string        `json:"type"`
		ID     string        `json:"id"`
		Status string        `json:"status"`
		Result *serverResult `json:"result"`
		Error  *struct {
			Message string `json:"message"`
		} `json:"error"`
	} `json:"item"`

	// token_usage_record, and token_count of an event_msg
	Usage *codexUsage `json:"usage"`
	Info  *struct {
		Last *codexUsage `json:"last_token_usage"`
	} `json:"info"`
}

type codexUsage struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
}

type codexReader struct {
	*builder
	model, provider string
	first           *Call // of the answer that is being read
}

func newCodex(path string) reader { return &codexReader{builder: newBuilder(path, Codex)} }

func (c *codexReader) line(text []byte) error {
	var l codexLine
	if err := json.Unmarshal(text, &l); err != nil {
		return err
	}
	p := &l.Payload
	switch {
	case l.Type == "session_meta":
		if c.t.SessionID == "" {
			c.t.SessionID = p.SessionID
			if c.t.SessionID == "" {
				c.t.SessionID = p.ID
			}
		}
		c.provider = p.ModelProvider
	case l.Type == "turn_context" && p.Model != "":
		c.model = p.Model
	case l.Type == "response_item":
		c.item(p, clock(l.Timestamp))
	case l.Type == "token_usage_record":
		c.count(p.Usage)
	case l.Type == "event_msg" && p.Type == "token_count" && p.Info != nil:
		c.count(p.Info.Last)
	case l.Type == "event_msg" && p.Item.Type == "McpToolCall" && p.Item.ID != "":
		r := c.result(p.Item.ID)
		r.Error = r.Error || p.Item.Status == "failed"
		switch {
		case p.Item.Result != nil:
			p.Item.Result.addTo(r)
		case p.Item.Error != nil:
			r.Refused = true
			r.view(View{Text: p.Item.Error.Message})
		}
	}
	return nil
}

func (c *codexReader) item(p *codexPayload, at time.Time) {
	switch p.Type {
	case "message":
		if p.Role == "assistant" {
			c.said(strings.Join(texts(p.Content), "\n"))
		}
	case "function_call", "custom_tool_call", "local_shell_call", "web_search_call":
		call := Call{ID: p.CallID, Name: p.Name, Tool: p.Name, Args: object(p.Arguments), At: at, Model: c.model, Provider: c.provider}
		if p.Name == "" {
			call.Name, call.Tool, call.Args = strings.TrimSuffix(p.Type, "_call"), strings.TrimSuffix(p.Type, "_call"), object(p.Action)
		}
		if p.Namespace != "" {
			call.Server, call.Name = strings.TrimPrefix(p.Namespace, "mcp__"), p.Namespace+"__"+p.Name
		} else {
			call.Server, call.Tool = splitMCP(call.Name)
		}
		if c.first == nil {
			c.turn++
		}
		made := c.call(call)
		if c.first == nil {
			c.first = made
		} else if made != c.first && made.InputTokens == nil {
			made.InputTokens, made.OutputTokens = new(int64), new(int64)
		}
	case "function_call_output", "custom_tool_call_output":
		r := c.result(p.CallID)
		r.At = at
		for _, text := range codexTexts(p.Output) {
			if codexRefusal().MatchString(text) {
				r.Refused, r.Error = true, true
			}
			r.view(codexView(text))
		}
	}
}

// count gives the tokens of an answer to its first call. It is told once, or twice in two forms: the first counts.
func (c *codexReader) count(u *codexUsage) {
	if c.first == nil || u == nil {
		return
	}
	c.first.InputTokens, c.first.OutputTokens = &u.Input, &u.Output
	c.first = nil
}

// codexTexts are the texts of an output: a string, an array of parts, or an object with a content.
func codexTexts(raw json.RawMessage) []string {
	var o struct {
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &o) == nil && o.Content != nil {
		raw = o.Content
	}
	list := texts(raw)
	if len(list) > 1 { // the wall time is a part of its own
		return []string{strings.Join(list, "\n")}
	}
	return list
}

// codexRefusal is how Codex answers in place of a tool.
var codexRefusal = late.Regexp(`^(unsupported call|failed to parse function arguments|tool call error: .*(?i:transport closed|connection closed)|user rejected MCP tool call)`)
