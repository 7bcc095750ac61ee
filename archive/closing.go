package archive

import (
	"bytes"
	"io"
	"slices"

	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/archive/trace"
)

// closings are the ends that a tool_call line tells by its flags: refusals, of which nothing ever ran.
var closings = []struct{ flag, outcome string }{
	{trace.FlagUnknownTool, ledger.OutcomeUnknownTool},
	{trace.FlagDuplicateID, ledger.OutcomeDuplicateID},
	{trace.FlagInvalidArguments, ledger.OutcomeInvalidArguments},
}

// closingRow is the row of a call that its process did not live to write.
func (d *Dir) closingRow(runID string, call *trace.Line, closedBy string) *ledger.Row {
	at := call.TS
	if _, err := ledger.ParseTime(at); err != nil {
		at = ledger.FormatTime(d.now())
	}
	row := &ledger.Row{
		ToolCallID: call.CallID, SessionID: call.SessionID, SessionFrom: call.SessionFrom, Turn: call.Turn,
		ToolName: call.Name, Known: call.Known, RiskClass: call.RiskClass, ApprovalStatus: call.ApprovalStatus,
		Attempt:   max(call.Attempt, 1),
		StartedAt: at, EndedAt: at,
		InputSummary: d.inputSummary(call), InputHash: call.ArgsSHA256,
		Model: call.Model, Provider: call.Provider, InputTokens: call.InputTokens, OutputTokens: call.OutputTokens,
		ParentCallID: call.ParentCallID, ClientCallID: call.ClientCallID,
		RunID: runID, CatalogSHA256: call.CatalogSHA256,
		Role: call.Role, Client: call.Client, TraceID: call.TraceID, SpanID: call.SpanID,
		Redactions: call.Redactions, Payloads: call.Payloads, ApprovedBy: call.ApprovedBy,
	}
	// Of a tool_call these two are one hash or null.
	_ = row.SchemaSHA256.UnmarshalJSON(call.SchemaSHA256)
	_ = row.DefinitionSHA256.UnmarshalJSON(call.DefinitionSHA256)
	if row.SessionID.String() == "" {
		row.SessionID, row.SessionFrom = redact.Plain(runID), "run"
	}
	outcome, message := ledger.OutcomeInterrupted, redact.Plain("toolrun ended before the call did")
	for _, c := range closings {
		if slices.Contains(call.Flags, c.flag) {
			outcome, message = c.outcome, redact.Plain("refused; toolrun ended before it wrote the row")
			break
		}
	}
	if call.Held {
		switch call.ApprovalStatus {
		case "":
			message = redact.Plain("toolrun ended while the call waited for approval; nothing was started")
		case ledger.ApprovalDenied:
			outcome, message = ledger.OutcomeDeclined, redact.Plain("declined; toolrun ended before it wrote the row")
			row.DeclinedBy = call.By
		default:
			row.ApprovedBy = call.By
		}
	}
	end := ledger.EndingOf(outcome, true)
	row.Outcome, row.Status, row.ErrorType, row.ErrorMessage = outcome, end.Status, end.ErrorType, &message
	row.Flags = call.Flags
	return later(row, closedBy)
}

// later returns a copy of the row that says who closed the call and that it was not its own process.
func later(row *ledger.Row, closedBy string) *ledger.Row {
	r := *row
	r.Flags = slices.Clone(row.Flags)
	if !slices.Contains(r.Flags, trace.FlagClosedLater) {
		r.Flags = append(r.Flags, trace.FlagClosedLater)
	}
	r.ClosedBy = closedBy
	return &r
}

// inputSummary is what the row would have said of the arguments.
func (d *Dir) inputSummary(call *trace.Line) redact.Text {
	if call.Payloads != "" || call.Arguments.IsNull() {
		return redact.Text{}
	}
	text := call.Arguments.Text()
	if text.String() == `{"sha256":"`+call.ArgsSHA256+`"}` {
		text = d.stored(call.ArgsSHA256)
	}
	return redact.Summary(text, 300)
}

// head is the output_head of a row.
func (d *Dir) head(row *ledger.Row) redact.Text {
	if row.OutputHash == "" || row.Payloads != "" {
		return redact.Text{}
	}
	return d.stored(string(row.OutputHash))
}

// stored returns the first KiB or so of an object, whose bytes were redacted before they were stored, or nothing where it
// cannot be read: a verifier says so.
func (d *Dir) stored(hash string) (text redact.Text) {
	r, err := d.Store.Open(hash)
	if err != nil {
		return text
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, 4<<10))
	if err != nil {
		return text
	}
	_ = text.UnmarshalJSON(redact.AppendQuoted(nil, string(bytes.ToValidUTF8(b, []byte("\uFFFD")))))
	return text
}
