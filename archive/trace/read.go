package trace

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
)

// Line is one line of a run's file as it is read; fields that its type does not have are zero.
type Line struct {
	No     int         `json:"-"`
	Torn   bool        `json:"-"` // the last line, and no newline ends it
	Raw    []byte      `json:"-"` // valid until the next line
	Type   string      `json:"type"`
	RunID  string      `json:"run_id"`
	TS     string      `json:"ts"`
	CallID redact.Text `json:"tool_call_id"`
	Name   redact.Text `json:"name"`
	Flags  []string    `json:"flags"`

	// catalog
	StartedAt               string         `json:"started_at"`
	CatalogNames            []string       `json:"catalog_names"`
	CatalogSHA256           string         `json:"catalog_sha256"` // also of a tool_call
	CatalogDefinitionSHA256 string         `json:"catalog_definition_sha256"`
	DefinitionSHA256        jsontext.Value `json:"definition_sha256"` // {name: hash}; of a tool_call one hash
	SchemaSHA256            jsontext.Value `json:"schema_sha256"`     // {name: hash}; of a tool_call one hash or null
	Version                 string         `json:"toolrun_version"`
	Host                    string         `json:"host"`
	PID                     int            `json:"pid"`
	Autonomous              []string       `json:"autonomous"`

	// session
	SessionID redact.Text  `json:"session_id"` // also of a tool_call
	Client    *redact.Text `json:"client"`     // also of a tool_call
	Protocol  string       `json:"protocol"`
	Role      *redact.Text `json:"role"`

	// tool_call
	Known          bool          `json:"known"`
	ArgsSHA256     string        `json:"args_sha256"`
	Arguments      redact.JSON   `json:"arguments"`
	SessionFrom    string        `json:"session_from"`
	Turn           int           `json:"turn"`
	Attempt        int           `json:"attempt"`
	RiskClass      ledger.OrNull `json:"risk_class"`
	Held           bool          `json:"held"`
	ApprovalStatus ledger.OrNull `json:"approval_status"` // also of an approval
	ApprovedBy     redact.JSON   `json:"approved_by"`
	ClientCallID   *redact.Text  `json:"client_call_id"`
	ParentCallID   *redact.Text  `json:"parent_call_id"`
	Model          *redact.Text  `json:"model"`
	Provider       *redact.Text  `json:"provider"`
	InputTokens    *int64        `json:"input_tokens"`
	OutputTokens   *int64        `json:"output_tokens"`
	TraceID        ledger.OrNull `json:"trace_id"`
	SpanID         ledger.OrNull `json:"span_id"`
	Redactions     int           `json:"redactions"`
	Payloads       string        `json:"payloads"`

	// approval
	By redact.JSON `json:"by"`

	// tool_result
	ExitCode    *int        `json:"exit_code"`
	OutputBytes int64       `json:"output_bytes"`
	OutputHead  redact.Text `json:"output_head"`
	ClosedBy    string      `json:"closed_by"`

	// rejected_line
	Code   int    `json:"code"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`

	// catalog_unused
	UnusedNames []string `json:"unused_names"`
}

// ParseLine reads one line: a JSON object with a type and a run_id. Types and keys that it does not know pass.
func ParseLine(text []byte) (*Line, error) {
	line := &Line{}
	if err := json.Unmarshal(text, line); err != nil {
		var bad *jsontext.SyntacticError
		if errors.As(err, &bad) {
			return nil, fmt.Errorf("not valid JSON: %w at byte %d", bad.Err, bad.ByteOffset)
		}
		return nil, err
	}
	if line.Type == "" || line.RunID == "" {
		return nil, errors.New("no type or no run_id")
	}
	if (line.Type == TypeToolCall || line.Type == TypeToolResult || line.Type == TypeApproval) && line.CallID.String() == "" {
		return nil, errors.New("no tool_call_id")
	}
	return line, nil
}

// Lines yields every line of a run's file as it was when the iteration began. A damaged line is yielded as a
// *[ledger.Damage] and the iteration goes on; after any other error it ends.
func Lines(path string) iter.Seq2[*Line, error] {
	return func(yield func(*Line, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			yield(nil, err)
			return
		}
		LinesOf(f, info.Size())(yield)
	}
}

// LinesOf is Lines of the first size bytes of an open file.
func LinesOf(f *os.File, size int64) iter.Seq2[*Line, error] {
	return LinesFrom(f.Name(), io.NewSectionReader(f, 0, size))
}

// LinesFrom is Lines of what r holds; name is the file's.
func LinesFrom(name string, r io.Reader) iter.Seq2[*Line, error] {
	return func(yield func(*Line, error) bool) {
		for raw, err := range jsonl.Lines(r) {
			if err != nil {
				yield(nil, err)
				return
			}
			bad, line := raw.Damaged(), (*Line)(nil)
			if bad == nil {
				line, bad = ParseLine(raw.Text)
			}
			if bad != nil {
				if raw.Torn {
					bad = jsonl.ErrTorn
				}
				if !yield(nil, &ledger.Damage{File: name, Line: raw.No, Err: bad}) {
					return
				}
				continue
			}
			line.No, line.Torn, line.Raw = raw.No, raw.Torn, raw.Text
			if !yield(line, nil) {
				return
			}
		}
	}
}
