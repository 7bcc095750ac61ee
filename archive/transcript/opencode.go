package transcript

import (
	"encoding/json"
	"time"
)

// openCodeSession is what `opencode export SESSION` prints (1.18); the database has the same objects in rows.
type openCodeSession struct {
	Info struct {
		ID string `json:"id"`
	} `json:"info"`
	Messages []struct {
		Info  openCodeMessage `json:"info"`
		Parts []openCodePart  `json:"parts"`
	} `json:"messages"`
}

type openCodeMessage struct {
	Role       string `json:"role"`
	ModelID    string `json:"modelID"`
	ProviderID string `json:"providerID"`
	Tokens     *struct {
		Input     int64 `json:"input"`
		Output    int64 `json:"output"`
		Reasoning int64 `json:"reasoning"`
		Cache     struct {
			Read  int64 `json:"read"`
			Write int64 `json:"write"`
		} `json:"cache"`
	} `json:"tokens"`
}

type openCodePart struct {
	Type   string `json:"type"`
	Text   string `json:"text"`
	Tool   string `json:"tool"`
	CallID string `json:"callID"`
	State  struct {
		Status   string          `json:"status"`
		Input    json.RawMessage `json:"input"`
		Output   string          `json:"output"`
		Error    string          `json:"error"`
		Metadata struct {
			Truncated bool `json:"truncated"`
		} `json:"metadata"`
		Time struct {
			Start int64 `json:"start"` // milliseconds
			End   int64 `json:"end"`
		} `json:"time"`
	} `json:"state"`
}

type openCodeReader struct{ *builder }

func newOpenCodeExport(path string) reader { return &openCodeReader{newBuilder(path, OpenCode)} }

func (o *openCodeReader) line(text []byte) error {
	var s openCodeSession
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	o.t.SessionID = s.Info.ID
	for _, m := range s.Messages {
		o.message(&m.Info, m.Parts)
	}
	return nil
}

func (o *openCodeReader) message(m *openCodeMessage, parts []openCodePart) {
	if m.Role != "assistant" {
		return
	}
	n := 0
	for i := range parts {
		p := &parts[i]
		if p.Type == "text" {
			o.said(p.Text)
		}
		if p.Type != "tool" {
			continue
		}
		if n++; n == 1 {
			o.turn++
		}
		call := o.tool(p, m)
		switch {
		case n > 1:
			call.InputTokens, call.OutputTokens = new(int64), new(int64)
		case m.Tokens != nil:
			in, out := m.Tokens.Input+m.Tokens.Cache.Read+m.Tokens.Cache.Write, m.Tokens.Output+m.Tokens.Reasoning
			call.InputTokens, call.OutputTokens = &in, &out
		}
	}
}

// tool reads a part of type tool. The name is SERVER_TOOL, and does not tell them apart. A name that it does not know
// OpenCode writes as the tool "invalid", which says so.
func (o *openCodeReader) tool(p *openCodePart, m *openCodeMessage) *Call {
	call := Call{ID: p.CallID, Name: p.Tool, Tool: p.Tool, Args: object(p.State.Input), At: millis(p.State.Time.Start), Model: m.ModelID, Provider: m.ProviderID}
	refused := p.Tool == "invalid"
	if refused {
		var in struct {
			Tool string `json:"tool"`
		}
		if json.Unmarshal(p.State.Input, &in) == nil && in.Tool != "" {
			call.Name, call.Tool, call.Args = in.Tool, in.Tool, nil
		}
	}
	made := o.call(call)
	if p.State.Status != "completed" && p.State.Status != "error" {
		return made
	}
	r := o.result(p.CallID)
	r.At = millis(p.State.Time.End)
	r.Error, r.Refused = refused || p.State.Status == "error", refused
	r.view(openCodeView(p.State.Output, p.State.Metadata.Truncated))
	r.view(View{Text: p.State.Error})
	return made
}

func millis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
