// Package ledger is the row and its encoding, and the file ledger.jsonl: append and iterate.
//
// The process that waited on a child appends its row, by one write under a lock that all processes of the data
// directory share; a row is never changed. The keys and their meaning are in archive/FORMAT.md.
package ledger

import (
	"toolrun/archive/redact"
)

// Status of a row.
const (
	StatusSuccess = "success"
	StatusError   = "error"
	StatusTimeout = "timeout"
	StatusBlocked = "blocked" // refused: nothing was started
	StatusRetry   = "retry"   // this attempt failed and another follows
)

// OrNull is a string whose zero value is JSON null.
type OrNull string

// Row is one attempt or one refusal, in the order of its keys on disk. The first 24 keys are always present.
type Row struct {
	ToolCallID       redact.Text  `json:"tool_call_id"`
	SessionID        redact.Text  `json:"session_id"`
	Turn             int          `json:"turn"`
	ToolName         redact.Text  `json:"tool_name"`
	RiskClass        OrNull       `json:"risk_class"`
	Status           string       `json:"status"`
	Attempt          int          `json:"attempt"`
	StartedAt        string       `json:"started_at"` // RFC 3339, UTC, milliseconds
	EndedAt          string       `json:"ended_at"`
	DurationMS       int64        `json:"duration_ms"`
	InputSummary     redact.Text  `json:"input_summary"`
	InputHash        string       `json:"input_hash"`
	OutputSummary    redact.Text  `json:"output_summary"`
	OutputHash       OrNull       `json:"output_hash"`
	OutputBytes      int64        `json:"output_bytes"` // what the tool wrote, before cap and redaction
	ErrorType        OrNull       `json:"error_type"`
	ErrorMessage     *redact.Text `json:"error_message"`
	Model            *redact.Text `json:"model"`
	Provider         *redact.Text `json:"provider"`
	InputTokens      *int64       `json:"input_tokens"`
	OutputTokens     *int64       `json:"output_tokens"`
	EstimatedCostUSD *float64     `json:"estimated_cost_usd"`
	ParentCallID     *redact.Text `json:"parent_call_id"`
	ApprovalStatus   OrNull       `json:"approval_status"`

	Seq              int64        `json:"seq"` // set by Append
	RunID            string       `json:"run_id"`
	ClientCallID     *redact.Text `json:"client_call_id"`
	CatalogSHA256    string       `json:"catalog_sha256"`
	SchemaSHA256     OrNull       `json:"schema_sha256"`
	DefinitionSHA256 OrNull       `json:"definition_sha256"`
	Known            bool         `json:"known"`
	Flags            []string     `json:"flags"`
	Outcome          string       `json:"outcome"`
	ExitCode         *int         `json:"exit_code"`
	Signal           OrNull       `json:"signal"`
	StoredBytes      int64        `json:"stored_bytes"` // length of the object output_hash names
	StderrHash       OrNull       `json:"stderr_hash"`
	StderrBytes      int64        `json:"stderr_bytes"`
	Truncated        bool         `json:"truncated"` // an object of this row is capped
	Argv             redact.JSON  `json:"argv"`      // array of strings, or {"sha256": …}, or null; see ArgvHash
	ExePath          *redact.Text `json:"exe_path"`
	ExeSHA256        OrNull       `json:"exe_sha256"`
	Cwd              *redact.Text `json:"cwd"`
	User             OrNull       `json:"user"` // "uid:gid" inside and outside the box
	CPUMS            *int64       `json:"cpu_ms"`
	MemoryPeakBytes  *int64       `json:"memory_peak_bytes"`
	OOMKills         *int64       `json:"oom_kills"`
	PidsLimitHit     *bool        `json:"pids_limit_hit"`
	PidsPeak         *int64       `json:"pids_peak"`
	ThrottledMS      *int64       `json:"throttled_ms"`
	Enforced         []string     `json:"enforced"`
	HoldMS           int64        `json:"hold_ms"`
	Redactions       int          `json:"redactions"`
	RepeatOf         *redact.Text `json:"repeat_of"` // the previous row's tool_call_id
	Repeat           int          `json:"repeat"`
	Role             *redact.Text `json:"role"`
	Client           *redact.Text `json:"client"` // name/version
	TraceID          OrNull       `json:"trace_id"`
	SpanID           OrNull       `json:"span_id"`
	SessionFrom      string       `json:"session_from"` // "meta", "env" or "run"

	ApprovedBy redact.JSON `json:"approved_by,omitzero"` // an Answerer: who allowed it
	DeclinedBy redact.JSON `json:"declined_by,omitzero"` // an Answerer: who said no

	Connections        []Connection `json:"connections,omitzero"` // at most 1000; nil: the call had no proxy
	ConnectionsOmitted int          `json:"connections_omitted,omitzero"`
	Payloads           string       `json:"payloads,omitzero"`
	ClosedBy           string       `json:"closed_by,omitzero"`
}
