package transcript

import (
	"encoding/json"
	"strings"

	"toolrun/archive/internal/late"
)

// geminiLine is a line of Gemini CLI's .gemini/tmp/<folder>/chats/session-<time>-<id>.jsonl (0.61): the head, or a message.
// A message that changed is written again, whole, under its id.
type geminiLine struct {
	SessionID string          `json:"sessionId"`
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Timestamp string          `json:"timestamp"`
	Content   json.RawMessage `json:"content"`
	Model     string          `json:"model"`
	Tokens    *struct {
		Input    int64 `json:"input"`
		Output   int64 `json:"output"`
		Thoughts int64 `json:"thoughts"`
	} `json:"tokens"`
	ToolCalls []geminiCall `json:"toolCalls"`
	Messages  []geminiLine `json:"messages"` // of a session that is one document
}

type geminiCall struct {
	ID        string           `json:"id"`
	Name      string           `json:"name"`
	Args      json.RawMessage  `json:"args"`
	Status    string           `json:"status"`
	Timestamp string           `json:"timestamp"`
	Result    []googleResponse `json:"result"`
}

// googleResponse is a part of a message that answers a function call.
type googleResponse struct {
	FunctionResponse struct {
		ID       string `json:"id"`
		Response struct {
			Output json.RawMessage `json:"output"`
			Error  json.RawMessage `json:"error"`
		} `json:"response"`
	} `json:"functionResponse"`
}

type geminiReader struct {
	*builder
	answers map[string]bool
}

func newGemini(path string) reader {
	return &geminiReader{builder: newBuilder(path, Gemini), answers: map[string]bool{}}
}

func (g *geminiReader) line(text []byte) error {
	var l geminiLine
	if err := json.Unmarshal(text, &l); err != nil {
		return err
	}
	if g.t.SessionID == "" {
		g.t.SessionID = l.SessionID
	}
	for i := range l.Messages {
		g.message(&l.Messages[i])
	}
	g.message(&l)
	return nil
}

func (g *geminiReader) message(l *geminiLine) {
	if l.Type != "gemini" {
		return
	}
	if len(l.ToolCalls) > 0 && !g.answers[l.ID] {
		g.answers[l.ID] = true
		g.turn++
	}
	said := strings.Join(texts(l.Content), "\n")
	for i, t := range l.ToolCalls {
		// The id is NAME__ and the model's own.
		id, name := strings.TrimPrefix(t.ID, t.Name+"__"), geminiName().FindStringSubmatch(t.Name)
		call := Call{ID: id, Name: t.Name, Tool: t.Name, Args: object(t.Args), At: clock(l.Timestamp), Model: l.Model, Provider: "gemini"}
		if name != nil {
			call.Server, call.Tool = name[1], name[2]
		}
		made := g.call(call)
		if i > 0 {
			made.InputTokens, made.OutputTokens = new(int64), new(int64)
		} else if l.Tokens != nil {
			out := l.Tokens.Output + l.Tokens.Thoughts
			made.InputTokens, made.OutputTokens = &l.Tokens.Input, &out
		}
		if t.Status != "success" && t.Status != "error" && t.Status != "cancelled" {
			continue
		}
		r := g.result(id)
		r.At, r.Error = clock(t.Timestamp), t.Status != "success"
		for _, part := range t.Result {
			g.response(r, part)
		}
	}
	if len(l.ToolCalls) == 0 {
		g.said(said)
	}
}

// response reads one part of a result.
func (g *geminiReader) response(r *Result, part googleResponse) {
	for _, text := range texts(part.FunctionResponse.Response.Output) {
		r.view(geminiView(text))
	}
	for _, text := range texts(part.FunctionResponse.Response.Error) {
		if inner, ok := reportedError(text); ok {
			inner.addTo(r)
			continue
		}
		r.Refused = r.Refused || geminiRefusal().MatchString(text)
		r.view(View{Text: text})
	}
}

// reportedError is the server's result in the sentence by which Gemini CLI and Qwen Code tell the model of an error:
// "… reported tool error for function call: {…} with response: [{…}]".
func reportedError(text string) (serverResult, bool) {
	_, rest, ok := strings.Cut(text, " with response: ")
	if !ok {
		return serverResult{}, false
	}
	var parts []struct {
		FunctionResponse struct {
			Response serverResult `json:"response"`
		} `json:"functionResponse"`
	}
	dec := json.NewDecoder(strings.NewReader(rest))
	if dec.Decode(&parts) != nil || len(parts) != 1 {
		return serverResult{}, false
	}
	return parts[0].FunctionResponse.Response, true
}

// geminiName is mcp_SERVER_TOOL; a server with "_" in its name cannot be told from its tool.
var geminiName = late.Regexp(`^mcp_([^_]+)_(.+)$`)

// geminiRefusal is how Gemini CLI answers in place of a tool.
var geminiRefusal = late.Regexp(`not found\. Did you mean|not found in registry|^params must|^params/|Transport closed|Connection closed|Not connected`)
