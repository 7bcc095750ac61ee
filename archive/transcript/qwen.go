package transcript

import (
	"encoding/json"

	"toolrun/archive/internal/late"
)

// qwenLine is a line of Qwen Code's .qwen/projects/<folder>/chats/<session>.jsonl (0.24).
type qwenLine struct {
	Type      string `json:"type"`
	SessionID string `json:"sessionId"`
	Timestamp string `json:"timestamp"`
	Model     string `json:"model"`
	Message   struct {
		Parts []struct {
			Text         string `json:"text"`
			Thought      bool   `json:"thought"`
			FunctionCall *struct {
				ID   string          `json:"id"`
				Name string          `json:"name"`
				Args json.RawMessage `json:"args"`
			} `json:"functionCall"`
			googleResponse
		} `json:"parts"`
	} `json:"message"`
	Usage *struct {
		Prompt     int64 `json:"promptTokenCount"`
		Candidates int64 `json:"candidatesTokenCount"`
		Thoughts   int64 `json:"thoughtsTokenCount"`
	} `json:"usageMetadata"`
	ToolCallResult *struct {
		CallID          string `json:"callId"`
		Status          string `json:"status"`
		ErrorType       string `json:"errorType"`
		ExecutionStatus string `json:"executionStatus"`
	} `json:"toolCallResult"`
}

type qwenReader struct{ *builder }

func newQwen(path string) reader { return &qwenReader{newBuilder(path, Qwen)} }

func (q *qwenReader) line(text []byte) error {
	var l qwenLine
	if err := json.Unmarshal(text, &l); err != nil {
		return err
	}
	if q.t.SessionID == "" {
		q.t.SessionID = l.SessionID
	}
	switch l.Type {
	case "assistant":
		q.assistant(&l)
	case "tool_result":
		for _, part := range l.Message.Parts {
			q.response(&l, part.googleResponse)
		}
	}
	return nil
}

func (q *qwenReader) assistant(l *qwenLine) {
	n := 0
	for _, part := range l.Message.Parts {
		if part.Text != "" && !part.Thought {
			q.said(part.Text)
		}
		f := part.FunctionCall
		if f == nil {
			continue
		}
		if n++; n == 1 {
			q.turn++
		}
		server, tool := splitMCP(f.Name)
		call := q.call(Call{ID: f.ID, Name: f.Name, Server: server, Tool: tool, Args: object(f.Args), At: clock(l.Timestamp), Model: l.Model})
		if n > 1 {
			call.InputTokens, call.OutputTokens = new(int64), new(int64)
		} else if l.Usage != nil {
			out := l.Usage.Candidates + l.Usage.Thoughts
			call.InputTokens, call.OutputTokens = &l.Usage.Prompt, &out
		}
	}
}

func (q *qwenReader) response(l *qwenLine, part googleResponse) {
	f := part.FunctionResponse
	if f.ID == "" {
		return
	}
	r := q.result(f.ID)
	r.At = clock(l.Timestamp)
	if t := l.ToolCallResult; t != nil {
		r.Error = t.Status == "error"
		r.Refused = t.ExecutionStatus == "not_started"
	}
	for _, text := range texts(f.Response.Output) {
		for _, v := range qwenViews(text) {
			r.view(v)
		}
	}
	for _, text := range texts(f.Response.Error) {
		r.Error = true
		if inner, ok := reportedError(text); ok {
			inner.addTo(r)
			continue
		}
		r.Refused = r.Refused || qwenRefusal().MatchString(text)
		r.view(View{Text: text})
	}
}

// qwenRefusal is how Qwen Code answers in place of a tool.
var qwenRefusal = late.Regexp(`not found on MCP server|not found in registry|^params must|^params/|Connection closed|Not connected`)
