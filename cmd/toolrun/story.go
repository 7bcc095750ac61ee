package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"toolrun/archive"
	"toolrun/archive/ledger"
	"toolrun/sandbox"
)

// story is a row and what the record has of its call besides.
type story struct {
	row      *ledger.Row
	attempts []*ledger.Row // all of the call, the row among them; fewer than two: there was no other
	file     string        // where the row stands; "" where that was not looked up
	line     int
	learned  bool                        // joins.jsonl has filled the row
	again    func(command string) string // completes a command that asks on
}

// table is the whole story, for people. With d nil objects are named only.
func (s story) table(d *archive.Dir) *table {
	row := s.row
	t := &table{columns: make([]column, 2)}
	m := mark(row)
	put := func(key, value string) {
		if value != "" {
			t.text(key, value)
		}
	}
	puts := func(key string, lines []string) {
		for i, line := range lines {
			t.text([]string{key, ""}[min(i, 1)], line)
		}
	}
	t.add(cell{text: "call"}, cell{row.ToolCallID.String(), bold})
	if client := text(row.ClientCallID); client != row.ToolCallID.String() {
		put("client's id", client)
	}
	put("tool", row.ToolName.String()+risk(row))
	t.add(cell{text: "ended"}, cell{m.text + " " + howItEnded(row), m.colour})
	put("error", strings.TrimSpace(string(row.ErrorType)+" "+text(row.ErrorMessage)))
	put("approval", string(row.ApprovalStatus))
	put("allowed by", answerer(row.ApprovedBy))
	put("declined by", answerer(row.DeclinedBy))
	put("started", row.StartedAt)
	put("took", rowDuration(row)+", until "+row.EndedAt)
	if row.HoldMS > 0 {
		put("waited", duration(time.Duration(row.HoldMS)*time.Millisecond)+" for a free slot or an approval")
	}
	puts("attempt", s.tries())
	if row.Repeat > 0 {
		put("repeat", fmt.Sprintf("%d of %s, which failed", row.Repeat, text(row.RepeatOf)))
	}
	put("session", row.SessionID.String()+" (from "+row.SessionFrom+")")
	put("turn", strings.TrimSuffix(turnText(row), "-"))
	put("parent", text(row.ParentCallID))
	put("client", text(row.Client))
	put("role", text(row.Role))
	put("model", strings.TrimSpace(text(row.Provider)+" "+text(row.Model)))
	put("tokens", tokens(row))
	if row.EstimatedCostUSD != nil {
		put("cost", fmt.Sprintf("%.6f USD, estimated", *row.EstimatedCostUSD))
	}
	if s.learned {
		put("learned", "turn, model, tokens or cost are from the agent's transcript, by toolrun audit")
	}
	if row.TraceID != "" {
		put("trace", string(row.TraceID)+" span "+string(row.SpanID))
	}
	put("flags", strings.Join(row.Flags, " "))

	put("input", row.InputSummary.String())
	put("input_hash", object(d, row.InputHash))
	put("argv", rawJSON(row))
	put("exe_path", text(row.ExePath))
	put("exe_sha256", string(row.ExeSHA256))
	put("cwd", text(row.Cwd))
	put("user", string(row.User))
	put("enforced", strings.Join(row.Enforced, " "))
	put("not enforced", strings.Join(notEnforced(row), " "))
	put("used", usage(row))
	puts("connections", connections(row))

	truncated := ""
	if row.Truncated {
		truncated = ", stored in part: " + size(row.StoredBytes)
	}
	put("output", row.OutputSummary.String())
	put("output_bytes", fmt.Sprintf("%d%s", row.OutputBytes, truncated))
	put("output_hash", object(d, string(row.OutputHash)))
	put("stderr_bytes", strconv.FormatInt(row.StderrBytes, 10))
	put("stderr_hash", object(d, string(row.StderrHash)))
	if row.Redactions > 0 {
		put("redactions", strconv.Itoa(row.Redactions))
	}
	if row.Payloads != "" {
		put("payloads", "only hashes were kept: the objects that they name are not in the store")
	}
	place := fmt.Sprintf("seq %d, run %s", row.Seq, row.RunID)
	if s.file != "" {
		place = fmt.Sprintf("%s:%d, ", relative(d, s.file), s.line) + place
	}
	put("ledger", place)
	put("closed by", row.ClosedBy)
	put("catalog_sha256", row.CatalogSHA256)
	put("schema_sha256", string(row.SchemaSHA256))
	put("definition_sha256", string(row.DefinitionSHA256))
	if row.Payloads == "" {
		call := shellWord(row.ToolCallID.String())
		if row.OutputHash != "" {
			put("whole output", s.again("toolrun output "+call))
		}
		if row.StderrHash != "" {
			put("whole stderr", s.again("toolrun output --stderr "+call))
		}
		put("whole input", s.again("toolrun output --input "+call))
	}
	return t
}

// howItEnded is how a call ended, with its exit code or signal, and its status where that is another word.
func howItEnded(row *ledger.Row) string {
	how := ending(row)
	if exit := exitText(row); exit != "-" {
		how += ", " + map[bool]string{true: "exit code ", false: "signal "}[row.ExitCode != nil] + exit
	}
	if row.Status != row.Outcome && row.Status != ledger.StatusSuccess {
		how += " (" + row.Status + ")"
	}
	return how
}

// tries are the attempts of the call, a line each where there were several.
func (s story) tries() (lines []string) {
	if len(s.attempts) < 2 {
		return []string{strconv.Itoa(s.row.Attempt)}
	}
	for _, row := range s.attempts {
		line := fmt.Sprintf("%d of %d: %s %s after %s, %s", row.Attempt, len(s.attempts), mark(row).text, howItEnded(row), rowDuration(row), row.ToolCallID)
		if row.Seq == s.row.Seq {
			line += " (this one)"
		}
		lines = append(lines, line)
	}
	return lines
}

// tokens are what the model's answer cost that asked for the call, as far as it is known.
func tokens(row *ledger.Row) string {
	var parts []string
	if row.InputTokens != nil {
		parts = append(parts, fmt.Sprintf("%d in", *row.InputTokens))
	}
	if row.OutputTokens != nil {
		parts = append(parts, fmt.Sprintf("%d out", *row.OutputTokens))
	}
	return strings.Join(parts, ", ")
}

// notEnforced are the walls and limits that were not in force where something was started: what the tool's declaration lifts,
// or what the host could not do. The proxy is one only of a tool whose network is a list of hosts.
func notEnforced(row *ledger.Row) (missing []string) {
	if len(row.Enforced) == 0 && row.ExePath == nil {
		return nil
	}
	for _, wall := range sandbox.Walls {
		if !slices.Contains(row.Enforced, wall) && (wall != "proxy" || row.Connections != nil) {
			missing = append(missing, wall)
		}
	}
	return missing
}

// relative is a file's path below the data directory.
func relative(d *archive.Dir, file string) string {
	if d != nil {
		if rel, err := filepath.Rel(d.Path(), file); err == nil {
			return rel
		}
	}
	return file
}
