package runner

import (
	"encoding/json"
	"errors"

	"toolrun/archive/ledger"
	"toolrun/archive/redact"
)

// Causes: context.Cause of a call's context says why the call ended before its tool did.
var (
	// ErrCancelled: the client took the call back (notifications/cancelled).
	ErrCancelled = errors.New("call cancelled by the client")
	// ErrInterrupted: toolrun was told to stop while the call ran, or must end it for another reason; see [Interrupted].
	ErrInterrupted error = Interrupted("toolrun was told to stop")
)

// Interrupted is the cause of a call's end that toolrun itself brings about. All of them are ErrInterrupted.
type Interrupted string

// Error gives the reason.
func (why Interrupted) Error() string { return "call interrupted: " + string(why) }

// Is makes every Interrupted one.
func (why Interrupted) Is(target error) bool { return target == ErrInterrupted }

// ErrLedgerUnavailable: the record of a call cannot be written, so the tool did not run and no row exists.
var ErrLedgerUnavailable = ledger.ErrUnavailable

// Request is one call as it came in: nothing of it has been checked but that Name is a string.
type Request struct {
	// Name is the tool's name as the caller sent it; no such tool need exist.
	Name string
	// Arguments is the raw JSON value of the arguments, digit for digit; it need not be an object. Nil: there were none.
	Arguments json.RawMessage
	Origin    Origin
	// Refusal is set where the transport cannot accept the call: it is put on the record and never run. The transport has
	// its own answer; the reply tells it the row.
	Refusal Refusal
	// Ask asks whether the call may run, where the tool asks a person first; nil where the caller has no way of its own.
	Ask Ask
	// Progress is told the latest line of output while the tool runs; nil where nobody asked. It must not block.
	Progress func(redact.Text)
}

// Refusal is why a transport refuses a call whose name it could read. The zero value refuses nothing.
type Refusal struct {
	Outcome string // ledger.OutcomeInvalidArguments or ledger.OutcomeSandboxUnavailable
	Reason  string // a sentence, which repeats nothing of the call
}

// Origin is who called, as far as the caller said. Empty strings, zeros and nil mean: not told.
type Origin struct {
	CallID       string // the client's own id of the call, never the JSON-RPC id
	SessionID    string // empty: the runner takes the run id
	SessionFrom  string // "meta", "env" or "run": where SessionID came from
	TurnID       string // the client's name of the turn
	Turn         int    // ordinal from 1; 0 where unknown
	Model        string
	Provider     string
	ParentCallID string
	InputTokens  *int64
	OutputTokens *int64
	Client       string // name/version
	Protocol     string // MCP version in force
	TraceID      string // W3C trace context, lower-case hex
	SpanID       string
}

// Reply is the end of one call: its row, and what the caller is told of the output.
type Reply struct {
	// Row is the call's row as it stands in the ledger; nil where there is none, and then Err is set.
	Row    *ledger.Row
	Stdout Preview
	Stderr Preview
	// Process is set where the call was of a program that stays.
	Process *Process
	// Message is a sentence for the model where the call was refused.
	Message string
	// Err is ErrLedgerUnavailable (perhaps wrapped) where no row exists and nothing ran, or, beside a Row, where the row
	// could not be synced as durability = "row" promises.
	Err error
}

// Preview is the part of a stream that a reply carries: valid UTF-8, redacted, its head, a mark and its tail.
type Preview struct {
	Text    string
	Lossy   bool  // bytes that are not UTF-8 were replaced; the stored object has them
	LeftOut int64 // redacted bytes between head and tail that are not in Text
}
