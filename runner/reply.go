package runner

import (
	"fmt"
	"strings"

	"toolrun/archive/ledger"
)

// Facts is what a caller is told of a call besides the text: the keys of structuredContent, in this order.
type Facts struct {
	Status        string        `json:"status"`
	Outcome       string        `json:"outcome"`
	ExitCode      *int          `json:"exit_code"`
	Signal        ledger.OrNull `json:"signal"`
	Message       string        `json:"message,omitzero"` // of a refusal, or what is wrong with the record
	Stdout        string        `json:"stdout"`
	Stderr        string        `json:"stderr"`
	StdoutBytes   int64         `json:"stdout_bytes"`
	StderrBytes   int64         `json:"stderr_bytes"`
	StdoutLossy   bool          `json:"stdout_lossy,omitzero"` // bytes that are not UTF-8 were replaced here, not in the store
	StderrLossy   bool          `json:"stderr_lossy,omitzero"`
	Truncated     bool          `json:"truncated"` // something that the tool wrote is not shown here
	DurationMS    int64         `json:"duration_ms"`
	OutputHash    ledger.OrNull `json:"output_hash"`
	StderrHash    ledger.OrNull `json:"stderr_hash"`
	ToolCallID    ledger.OrNull `json:"tool_call_id"` // this and the rest: null where there is no row
	RunID         ledger.OrNull `json:"run_id"`
	Seq           *int64        `json:"seq"`
	CatalogSHA256 ledger.OrNull `json:"catalog_sha256"`
	Process       *Process      `json:"process,omitzero"` // only of a program that stays
}

// outcomeUnavailable is in replies only: no row holds it, since there is none.
const outcomeUnavailable = "ledger_unavailable"

// Facts gives the reply as data.
func (r Reply) Facts() Facts {
	if r.Row == nil {
		return Facts{Status: ledger.StatusError, Outcome: outcomeUnavailable, Message: r.verdict()}
	}
	row := r.Row
	message := r.Message
	if r.Err != nil {
		message = r.verdict()
	}
	return Facts{
		Status:        row.Status,
		Outcome:       row.Outcome,
		ExitCode:      row.ExitCode,
		Signal:        row.Signal,
		Message:       message,
		Stdout:        r.Stdout.Text,
		Stderr:        r.Stderr.Text,
		StdoutBytes:   row.OutputBytes,
		StderrBytes:   row.StderrBytes,
		StdoutLossy:   r.Stdout.Lossy,
		StderrLossy:   r.Stderr.Lossy,
		Truncated:     row.Truncated || r.Stdout.LeftOut > 0 || r.Stderr.LeftOut > 0,
		DurationMS:    row.DurationMS,
		OutputHash:    row.OutputHash,
		StderrHash:    row.StderrHash,
		ToolCallID:    ledger.OrNull(row.ToolCallID.String()),
		RunID:         ledger.OrNull(row.RunID),
		Seq:           &row.Seq,
		CatalogSHA256: ledger.OrNull(row.CatalogSHA256),
		Process:       r.Process,
	}
}

// IsError is false only where the tool succeeded, and that is on the record.
func (r Reply) IsError() bool {
	return r.Err != nil || r.Row == nil || r.Row.Status != ledger.StatusSuccess
}

// Text gives the reply as a model reads it: the verdict in the first and in the last line, since clients cut either end,
// and what the tool wrote between them. A refusal says what to do next.
func (r Reply) Text() string {
	verdict := r.verdict()
	if r.Row == nil || r.Message != "" {
		return verdict
	}
	var b strings.Builder
	b.Grow(2*len(verdict) + len(r.Stdout.Text) + len(r.Stderr.Text) + 256)
	b.WriteString(verdict)
	b.WriteByte('\n')
	section(&b, "stdout", r.Stdout, r.Row.OutputBytes, "output_hash", r.Row.OutputHash)
	section(&b, "stderr", r.Stderr, r.Row.StderrBytes, "stderr_hash", r.Row.StderrHash)
	if r.Row.OutputBytes+r.Row.StderrBytes == 0 {
		b.WriteString("(no output)\n")
	}
	if r.Process != nil {
		b.WriteString("--- " + r.Process.Text() + " ---\n")
	}
	b.WriteString(verdict)
	return b.String()
}

// section writes one stream under a heading that says how much of it is shown and how to get the rest.
func section(b *strings.Builder, name string, p Preview, written int64, hashName string, hash ledger.OrNull) {
	if written == 0 && p.Text == "" {
		return
	}
	fmt.Fprintf(b, "--- %s, %d bytes", name, written)
	if p.LeftOut > 0 {
		fmt.Fprintf(b, ", %d of them left out below", p.LeftOut)
		if hash != "" {
			fmt.Fprintf(b, "; %s %s", hashName, hash)
		}
	}
	if p.Lossy {
		b.WriteString(", not all of it UTF-8")
	}
	b.WriteString(" ---\n")
	b.WriteString(p.Text)
	if !strings.HasSuffix(p.Text, "\n") {
		b.WriteByte('\n')
	}
}

// verdict is one line: how the call ended.
func (r Reply) verdict() string {
	switch {
	case r.Err != nil:
		return "ERROR: " + r.Err.Error()
	case r.Row == nil:
		return "ERROR: " + ErrLedgerUnavailable.Error()
	case r.Message != "":
		return "REFUSED: " + strings.Join(strings.Fields(r.Message), " ") // on one line, whatever the caller named
	}
	return r.Row.Verdict()
}
