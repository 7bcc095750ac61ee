package transcript

import (
	"encoding/json"
	"strings"
	"time"
)

// messagesReader reads what a loop of one's own keeps: the messages of the OpenAI chat API, the items of its responses API,
// or the messages of the Anthropic API, as a document, as an array, or one a line. A request has "messages" or "input", an
// answer of the API "choices", "output" or "content" beside its usage.
type messagesReader struct {
	*builder
	model    string
	provider string
}

func newMessages(path string) reader { return &messagesReader{builder: newBuilder(path, OpenAI)} }

type message struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Model     string          `json:"model"`
	Provider  string          `json:"provider"`
	SessionID string          `json:"session_id"`
	Timestamp string          `json:"timestamp"`
	CreatedAt float64         `json:"created"`

	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`

	// responses API
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	CallID    string          `json:"call_id"`

	// documents
	Messages []message       `json:"messages"`
	Input    json.RawMessage `json:"input"`
	Output   json.RawMessage `json:"output"` // of a response an array, of a function_call_output a string
	Choices  []struct {
		Message message `json:"message"`
	} `json:"choices"`
	Usage *struct {
		Prompt        *int64 `json:"prompt_tokens"`
		Completion    *int64 `json:"completion_tokens"`
		Input         *int64 `json:"input_tokens"`
		Output        *int64 `json:"output_tokens"`
		CacheCreation int64  `json:"cache_creation_input_tokens"`
		CacheRead     int64  `json:"cache_read_input_tokens"`
	} `json:"usage"`
}

func (m *messagesReader) line(text []byte) error {
	var list []message
	if json.Unmarshal(text, &list) == nil {
		for i := range list {
			m.message(&list[i])
		}
		return nil
	}
	var one message
	if err := json.Unmarshal(text, &one); err != nil {
		return err
	}
	m.message(&one)
	return nil
}

func (m *messagesReader) message(in *message) {
	if in.SessionID != "" && m.t.SessionID == "" {
		m.t.SessionID = in.SessionID
	}
	if in.Model != "" {
		m.model = in.Model
	}
	if in.Provider != "" {
		m.provider = in.Provider
	}
	calls := len(m.t.Calls)
	for i := range in.Messages {
		m.message(&in.Messages[i])
	}
	for _, raw := range []json.RawMessage{in.Input, in.Output} {
		var items []message
		if json.Unmarshal(raw, &items) == nil {
			for i := range items {
				m.message(&items[i])
			}
		}
	}
	for i := range in.Choices {
		m.message(&in.Choices[i].Message)
	}
	at := clock(in.Timestamp)
	if in.CreatedAt > 0 {
		at = time.Unix(int64(in.CreatedAt), 0)
	}
	switch {
	case in.Type == "function_call":
		m.add(len(m.t.Calls) == calls, Call{ID: in.CallID, Name: in.Name, Args: object(in.Arguments), At: at})
	case in.Type == "function_call_output":
		r := m.result(in.CallID)
		r.At = at
		for _, text := range texts(in.Output) {
			r.view(View{Text: text})
		}
	case in.Role == "tool":
		r := m.result(in.ToolCallID)
		r.At = at
		r.view(View{Text: strings.Join(texts(in.Content), "\n")})
	case in.Role == "assistant":
		m.assistant(in, at)
	case in.Role == "user":
		m.results(in, at)
	}
	if u := in.Usage; u != nil && len(m.t.Calls) > calls {
		first := m.t.Calls[calls]
		switch {
		case u.Input != nil && u.Output != nil:
			n := *u.Input + u.CacheCreation + u.CacheRead
			first.InputTokens, first.OutputTokens = &n, u.Output
		case u.Prompt != nil && u.Completion != nil:
			first.InputTokens, first.OutputTokens = u.Prompt, u.Completion
		}
		for _, c := range m.t.Calls[calls+1:] {
			c.InputTokens, c.OutputTokens = new(int64), new(int64)
		}
	}
}

func (m *messagesReader) add(first bool, c Call) {
	if first {
		m.turn++
	}
	c.Server, c.Tool = splitMCP(c.Name)
	c.Model, c.Provider = m.model, m.provider
	m.call(c)
}

func (m *messagesReader) assistant(in *message, at time.Time) {
	n := 0
	for _, c := range in.ToolCalls {
		n++
		m.add(n == 1, Call{ID: c.ID, Name: c.Function.Name, Args: object(c.Function.Arguments), At: at})
	}
	for _, b := range blocks(in.Content) {
		switch b.Type {
		case "tool_use":
			m.t.Format = Anthropic
			n++
			m.add(n == 1, Call{ID: b.ID, Name: b.Name, Args: object(b.Input), At: at})
		case "text", "output_text":
			if n == 0 {
				m.said(b.Text)
			}
		}
	}
}

// results are those of a user's message of the Anthropic API.
func (m *messagesReader) results(in *message, at time.Time) {
	for _, b := range blocks(in.Content) {
		if b.Type != "tool_result" {
			continue
		}
		m.t.Format = Anthropic
		r := m.result(b.ToolUseID)
		r.At, r.Error = at, b.IsError
		for _, text := range texts(b.Content) {
			r.view(View{Text: text})
		}
	}
}
