// Package transcript reads what agents write of their own sessions: which tools they asked for, what came back, and what
// they said at the end. Each client has a form of its own; here they become one.
//
// It reads, and judges nothing: whether a call really happened is for package pairing to say. What the form does not tell
// is left empty and not guessed. A line that cannot be read is an entry of Damaged, and the rest is still read.
package transcript

import (
	"encoding/json"
	"time"
)

// Formats.
const (
	Claude    = "claude"
	Codex     = "codex"
	Gemini    = "gemini"
	OpenCode  = "opencode"
	Qwen      = "qwen"
	OpenAI    = "openai"    // the messages of a chat completion or the items of a response
	Anthropic = "anthropic" // the messages of a request
)

// Transcript is one session, or the part of it that one file holds.
type Transcript struct {
	Path      string
	Format    string
	SessionID string // "" where the file does not tell; of a subagent that of the session that it is a part of
	Sub       bool   // it is a subagent's: what it says at the end it says to the agent
	Calls     []*Call
	Stray     []Stray // results of calls that the file does not have
	Final     string  // the last thing that the model said, where no call came after it
	Damaged   []error // *jsonl.Damage
}

// Prefixed tells whether the client puts the name of a server before the names of its tools, so that a bare name is one
// of its own tools.
func (t *Transcript) Prefixed() bool { return t.Format != OpenAI && t.Format != Anthropic }

// Call is a tool that the model asked for.
type Call struct {
	ID     string          // the model's id for it
	Name   string          // as the model said it
	Server string          // of Name, "" where the form does not tell them apart
	Tool   string          // the rest of Name, or all of it
	Args   json.RawMessage // nil where they are no JSON

	At           time.Time // zero where it is not told
	Turn         int       // the ordinal, from 1, of the model's answers that asked for a tool
	Model        string
	Provider     string
	InputTokens  *int64 // of the answer that asked for it, cached ones too; of several calls of one answer the first has them
	OutputTokens *int64

	Result *Result // nil: none was written
}

// Result is what the client kept of a call's end.
type Result struct {
	At      time.Time
	Views   []View // each form in which the client kept it
	Error   bool   // the client took it for an error
	Refused bool   // the client says that it answered by itself: the call never reached a server
	CallID  string // toolrun/tool_call_id, where the client kept the result's _meta
}

// View is a result in one form, without the client's wrapping.
type View struct {
	Text string
	Cut  bool   // Text is only the beginning
	Tail string // and this the end, where one was kept
}

// Stray is a result whose call the file does not have.
type Stray struct {
	CallID string
	Result *Result
}

// builder puts calls and results together in the order of the file.
type builder struct {
	t     *Transcript
	calls map[string]*Call
	turn  int
	stray map[string]int // index in t.Stray
}

func newBuilder(path, format string) *builder {
	return &builder{t: &Transcript{Path: path, Format: format}, calls: map[string]*Call{}, stray: map[string]int{}}
}

// call adds a call; one with an id that is known already is the same, told again.
func (b *builder) call(c Call) *Call {
	if known := b.calls[c.ID]; known != nil && c.ID != "" {
		return known
	}
	c.Turn = b.turn
	b.t.Calls = append(b.t.Calls, &c)
	if c.ID != "" {
		b.calls[c.ID] = &c
	}
	b.t.Final = ""
	return &c
}

// result finds or makes the result of a call. A result whose call comes later in the file is put to it by finish.
func (b *builder) result(id string) *Result {
	if c := b.calls[id]; c != nil {
		if c.Result == nil {
			c.Result = &Result{}
		}
		return c.Result
	}
	if i, ok := b.stray[id]; ok {
		return b.t.Stray[i].Result
	}
	b.stray[id] = len(b.t.Stray)
	b.t.Stray = append(b.t.Stray, Stray{id, &Result{}})
	return b.t.Stray[len(b.t.Stray)-1].Result
}

// said is text of the model.
func (b *builder) said(text string) {
	if text != "" {
		b.t.Final = text
	}
}

func (b *builder) finish() *Transcript {
	kept := b.t.Stray[:0]
	for _, s := range b.t.Stray {
		if c := b.calls[s.CallID]; c != nil && c.Result == nil {
			c.Result = s.Result
			continue
		}
		kept = append(kept, s)
	}
	b.t.Stray = kept
	return b.t
}

// view adds a form of the result, once.
func (r *Result) view(v View) {
	if v.Text == "" && v.Tail == "" {
		return
	}
	for _, have := range r.Views {
		if have == v {
			return
		}
	}
	r.Views = append(r.Views, v)
}

// clock reads a time as clients write it; zero where it is none.
func clock(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

// object is raw where it is a JSON object, or the object that a JSON string holds; else nil.
func object(raw json.RawMessage) json.RawMessage {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		raw = json.RawMessage(s)
	}
	var o map[string]json.RawMessage
	if json.Unmarshal(raw, &o) != nil || o == nil {
		return nil
	}
	return raw
}

// texts are the texts of a message's content: a string, or an array of parts with a text each.
func texts(raw json.RawMessage) (list []string) {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return []string{s}
	}
	var parts []struct {
		Text    *string         `json:"text"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return nil
	}
	for _, p := range parts {
		if p.Text != nil {
			list = append(list, *p.Text)
		} else if p.Content != nil {
			list = append(list, texts(p.Content)...)
		}
	}
	return list
}
