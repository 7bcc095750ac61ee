package transcript

import "encoding/json"

// serverResult is a result of MCP as clients keep it beside what the model saw.
type serverResult struct {
	Content           json.RawMessage `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	IsError           bool            `json:"isError"`
	Meta              struct {
		CallID string `json:"toolrun/tool_call_id"`
	} `json:"_meta"`
}

// addTo puts all that the server said into r.
func (s serverResult) addTo(r *Result) {
	for _, text := range texts(s.Content) {
		r.view(recordView(text))
	}
	if text := string(object(s.StructuredContent)); text != "" {
		r.view(View{Text: text})
	}
	r.Error = r.Error || s.IsError
	if s.Meta.CallID != "" {
		r.CallID = s.Meta.CallID
	}
}
