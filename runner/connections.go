package runner

import (
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/sandbox"
)

// connections puts what the call asked its proxy for into the row. A host is whatever the tool wrote there: it is redacted
// like its output.
func (c *call) connections(res sandbox.Result) {
	if res.Connections == nil {
		return
	}
	masked := func(s string) redact.Text {
		text := c.rules.Text(s)
		c.row.Redactions += text.Redactions()
		return text
	}
	c.row.Connections = make([]ledger.Connection, len(res.Connections))
	c.row.ConnectionsOmitted = res.ConnectionsOmitted
	for i, one := range res.Connections {
		to := &c.row.Connections[i]
		*to = ledger.Connection{Host: masked(one.Host), Port: one.Port, Sent: one.Sent, Received: one.Received, Allowed: one.Allowed}
		if one.Why != "" {
			to.Why = new(masked(one.Why))
		}
	}
}
