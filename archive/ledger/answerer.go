package ledger

// Values of approval_status.
const (
	ApprovalApproved   = "approved"
	ApprovalDenied     = "denied"     // a person's or the catalog's no
	ApprovalAutonomous = "autonomous" // SEND or DESTRUCTIVE, run unasked
)

// Ways in which a person was asked.
const (
	ViaTerminal      = "terminal"       // toolrun allow or deny, from another process
	ViaCall          = "call"           // toolrun call, on its own terminal
	ViaElicitation   = "elicitation"    // the client asked its user: MCP 2025-06-18 and later
	ViaInputRequired = "input_required" // the same in MCP 2026-07-28
)

// Answerer is who answered for a held call, as the kernel told it of the process that did. Of a client that asked its own
// user no more is known than that.
type Answerer struct {
	Via string  `json:"via"`
	UID *int    `json:"uid"`
	TTY *string `json:"tty"` // the terminal on its stdin
	PID *int    `json:"pid"`
	Exe *string `json:"exe"`
}
