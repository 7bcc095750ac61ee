package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"toolrun/archive"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/archive/store"
)

func (a *app) showCmd() *cobra.Command {
	return &cobra.Command{
		Use:         "show CALL",
		Short:       "Tell the whole story of one call: what ran, how it ended, what was enforced, where it stands.",
		Example:     "  toolrun show toolu_01AbC",
		Args:        cobra.ExactArgs(1),
		Annotations: exitsAlso(statusFound, statusData),
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			rows, damage, err := a.find(d, args[0])
			if err != nil {
				return err
			}
			if a.flags.json {
				return errors.Join(a.printRows(rows), damage)
			}
			for i, row := range rows {
				if i > 0 {
					if err := a.say(""); err != nil {
						return err
					}
				}
				if err := storyOf(row, d).print(a.stdout, a.screen()); err != nil {
					return err
				}
			}
			return damage
		},
	}
}

// storyOf is all that a row says, for people.
func storyOf(row *ledger.Row, d *archive.Dir) *table {
	t := &table{columns: make([]column, 2)}
	m := mark(row)
	put := func(key, value string) {
		if value != "" {
			t.text(key, value)
		}
	}
	t.add(cell{text: "call"}, cell{row.ToolCallID.String(), bold})
	if client := text(row.ClientCallID); client != row.ToolCallID.String() {
		put("client's id", client)
	}
	put("tool", row.ToolName.String()+risk(row))
	how := ending(row)
	if exit := exitText(row); exit != "-" {
		how += ", " + map[bool]string{true: "exit code ", false: "signal "}[row.ExitCode != nil] + exit
	}
	if row.Status != row.Outcome {
		how += " (" + row.Status + ")"
	}
	t.add(cell{text: "ended"}, cell{m.text + " " + how, m.colour})
	put("error", strings.TrimSpace(string(row.ErrorType)+" "+text(row.ErrorMessage)))
	put("approval", string(row.ApprovalStatus))
	put("allowed by", answerer(row.ApprovedBy))
	put("declined by", answerer(row.DeclinedBy))
	put("started", row.StartedAt)
	put("took", rowDuration(row))
	if row.HoldMS > 0 {
		put("waited", strconv.FormatInt(row.HoldMS, 10)+"ms for a free slot or an approval")
	}
	put("session", row.SessionID.String()+" (from "+row.SessionFrom+")")
	put("turn", strings.TrimSuffix(turnText(row), "-"))
	put("client", text(row.Client))
	put("model", strings.TrimSuffix(strings.TrimSpace(text(row.Provider)+" "+text(row.Model)+" "+cost(row.EstimatedCostUSD)), " "))
	put("role", text(row.Role))
	if row.Repeat > 0 {
		put("repeat", fmt.Sprintf("%d of %s, which failed", row.Repeat, text(row.RepeatOf)))
	}
	put("attempt", strconv.Itoa(row.Attempt))
	put("flags", strings.Join(row.Flags, " "))

	put("input", row.InputSummary.String())
	put("input_hash", object(d, row.InputHash))
	put("argv", rawJSON(row))
	put("program", text(row.ExePath))
	put("program_sha256", string(row.ExeSHA256))
	put("cwd", text(row.Cwd))
	put("user", string(row.User))
	put("enforced", strings.Join(row.Enforced, " "))
	put("used", usage(row))
	for i, line := range connections(row) {
		t.text([]string{"connections", ""}[min(i, 1)], line)
	}

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
	put("ledger", fmt.Sprintf("seq %d, run %s", row.Seq, row.RunID))
	put("closed by", row.ClosedBy)
	put("catalog_sha256", row.CatalogSHA256)
	put("schema_sha256", string(row.SchemaSHA256))
	put("definition_sha256", string(row.DefinitionSHA256))
	if row.OutputHash != "" {
		put("whole output", "toolrun output "+row.ToolCallID.String())
	}
	return t
}

// answerer is who answered for a held call.
func answerer(by redact.JSON) string {
	var who ledger.Answerer
	if by.IsNull() || json.Unmarshal(by.Raw(), &who) != nil {
		return ""
	}
	words := []string{map[string]string{
		ledger.ViaTerminal: "toolrun allow or deny", ledger.ViaCall: "at the terminal of toolrun call",
		ledger.ViaElicitation: "the client's user, the client says", ledger.ViaInputRequired: "the client's user, the client says",
	}[who.Via]}
	if who.UID != nil {
		words = append(words, fmt.Sprintf("user %d", *who.UID))
	}
	if who.TTY != nil {
		words = append(words, *who.TTY)
	}
	if who.PID != nil {
		words = append(words, fmt.Sprintf("process %d", *who.PID))
	}
	if who.Exe != nil {
		words = append(words, *who.Exe)
	}
	return strings.Join(words, ", ")
}

func risk(row *ledger.Row) string {
	if row.RiskClass == "" {
		return ", not in the catalog"
	}
	return ", " + string(row.RiskClass)
}

// object is a hash and whether the store has what it names; with d nil only the hash.
func object(d *archive.Dir, hash string) string {
	if hash == "" || d == nil {
		return hash
	}
	switch err := d.Store.Verify(hash); {
	case errors.Is(err, store.ErrMissing):
		return hash + " (unavailable: the object is missing)"
	case errors.Is(err, store.ErrCorrupt):
		return hash + " (unavailable: the object is corrupt)"
	case err != nil:
		return hash + " (unavailable: " + err.Error() + ")"
	}
	return hash
}

func rawJSON(row *ledger.Row) string {
	b, err := row.Argv.MarshalJSON()
	if err != nil || string(b) == "null" {
		return ""
	}
	return string(b)
}

// connections are what the call asked its proxy for, a line each.
func connections(row *ledger.Row) []string {
	if row.Connections == nil {
		return nil
	}
	const most = 100
	lines := []string{}
	for _, c := range row.Connections[:min(len(row.Connections), most)] {
		line := c.Host.String() + ":" + strconv.Itoa(c.Port)
		if c.Allowed {
			line += fmt.Sprintf(" sent %s, received %s", size(c.Sent), size(c.Received))
		} else {
			line += " refused"
		}
		if c.Why != nil {
			line += ": " + c.Why.String()
		}
		lines = append(lines, line)
	}
	if more := len(row.Connections) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more, which --json lists", more))
	}
	if row.ConnectionsOmitted > 0 {
		lines = append(lines, fmt.Sprintf("and %d more, which were only counted", row.ConnectionsOmitted))
	}
	if len(lines) == 0 {
		return []string{"none"}
	}
	return lines
}

func usage(row *ledger.Row) string {
	var parts []string
	if row.CPUMS != nil {
		parts = append(parts, fmt.Sprintf("%dms of CPU", *row.CPUMS))
	}
	if row.MemoryPeakBytes != nil {
		parts = append(parts, size(*row.MemoryPeakBytes)+" of memory at most")
	}
	if row.OOMKills != nil && *row.OOMKills > 0 {
		parts = append(parts, fmt.Sprintf("%d processes killed for memory", *row.OOMKills))
	}
	if row.PidsLimitHit != nil && *row.PidsLimitHit {
		parts = append(parts, "the limit on processes was hit")
	}
	return strings.Join(parts, ", ")
}
