// Package trace is the record of one run of toolrun: the file runs/<run_id>.jsonl.
//
// A run's file is written by one process, which holds an flock on it for as long as it lives: a file that nobody holds
// and that did not end in order is a dead run, which the next process closes. A tool starts only after its tool_call line
// is in the file; its tool_result follows its row. The keys are in archive/FORMAT.md.
package trace

import (
	"time"

	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
)

// Types of a line.
const (
	TypeCatalog      = "catalog"
	TypeSession      = "session"
	TypeToolCall     = "tool_call"
	TypeApproval     = "approval"
	TypeToolResult   = "tool_result"
	TypeRejectedLine = "rejected_line"
	TypeUnused       = "catalog_unused"
)

// Flags of a line or a row.
const (
	FlagUnknownTool      = "UNKNOWN_TOOL"
	FlagDuplicateID      = "DUPLICATE_ID"
	FlagUnusedTool       = "UNUSED_TOOL"
	FlagInvalidArguments = "INVALID_ARGUMENTS"
	FlagRedacted         = "REDACTED"
	FlagClosedLater      = "CLOSED_LATER"
)

// maxArgumentsBytes and maxArgumentsDepth bound the arguments of a tool_call line; longer and deeper ones, which common
// readers refuse (jq 1.6 over 256 levels, Python over about 1000), stand there as {"sha256": …}, which names the input object.
const (
	maxArgumentsBytes = 64 << 10
	maxArgumentsDepth = 100 // [] has 1
)

// OutputHeadChars is the length of output_head.
const OutputHeadChars = 240

// ErrTorn is what is wrong with a last line that no newline ends.
var ErrTorn = jsonl.ErrTorn

// ErrUnavailable means that the line cannot be written now and that nothing of it is in the file.
var ErrUnavailable = jsonl.ErrUnavailable

// Header is the first line of a run: its frozen catalog.
type Header struct {
	RunID                   string // UUID version 4, of archive.Dir.NewRunID
	StartedAt               time.Time
	CatalogNames            []string // sorted
	CatalogSHA256           string
	SchemaSHA256            map[string]string // by tool
	DefinitionSHA256        map[string]string
	CatalogDefinitionSHA256 string
	Role                    *redact.Text
	Version                 string // of toolrun
	Host                    string
	PID                     int
	Autonomous              []string // risk classes whose tools run unasked in this run, where they would ask
}

// Session is the first sight of a session in this run.
type Session struct {
	SessionID redact.Text
	Client    *redact.Text // name/version
	Protocol  string       // MCP version
}

// Call is an attempt or a refusal that is about to happen.
type Call struct {
	// Row holds what is known of the call before anything of it runs; the line takes from it tool_call_id, tool_name,
	// known, catalog_sha256, schema_sha256, input_hash, flags, and what a row needs that a crash leaves to another process.
	Row *ledger.Row
	// Arguments is the canonical redacted form; the zero value is null (no arguments are kept: payloads = "hash").
	Arguments redact.JSON
	// Held: the call waits for a person's answer. Nothing of it runs before its Approval line.
	Held bool
	// At is the line's ts; zero: now. A row that is closed later takes it as its started_at.
	At time.Time
}

// Approval is a person's answer for a held call.
type Approval struct {
	Row    *ledger.Row
	Answer string      // ledger.ApprovalApproved or ledger.ApprovalDenied
	By     redact.JSON // a ledger.Answerer
}

// Result is the end of a call whose row is on the record.
type Result struct {
	Row  *ledger.Row
	Head redact.Text // of the output; cut here to OutputHeadChars
}
