package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"toolrun/archive"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/archive/store"
)

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
	if row.PidsPeak != nil {
		parts = append(parts, count(int(*row.PidsPeak), "task")+" at a time at most")
	}
	if row.ThrottledMS != nil && *row.ThrottledMS > 0 {
		parts = append(parts, fmt.Sprintf("%dms held back by the CPU limit", *row.ThrottledMS))
	}
	if row.OOMKills != nil && *row.OOMKills > 0 {
		parts = append(parts, fmt.Sprintf("%d killed for memory", *row.OOMKills))
	}
	if row.PidsLimitHit != nil && *row.PidsLimitHit {
		parts = append(parts, "the limit on processes was hit")
	}
	return strings.Join(parts, ", ")
}
