package runner

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"toolrun/archive/ledger"
	"toolrun/archive/trace"
	"toolrun/catalog"
)

// Flags of trace lines and rows that the runner sets besides those of package trace.
const (
	FlagUnkilled = "UNKILLED" // a process that the kernel could not kill was left behind
	FlagPanic    = "PANIC"    // toolrun itself failed in this call
)

// question is all that policy looks at.
type question struct {
	Tool       *catalog.Tool // nil: no such tool
	Name       string        // as the caller sent it, redacted and bounded
	ID         string        // the client's id of the call, redacted
	Duplicate  bool          // the run has seen that id before
	Refusal    Refusal       // the transport's
	Problem    error         // what is wrong with the arguments; its text names the field and never a value
	Registered []string      // the catalog's names, sorted
	Autonomous []string      // risk classes whose tools run unasked in this run, where they would ask
}

// decision is policy's answer: an empty Outcome says run, any other refuses with it.
type decision struct {
	Outcome  string
	Reason   string // what was refused and why, for the row
	Advice   string // what to do next, for the model
	Flags    []string
	Approval ledger.OrNull
	Ask      bool // with no Outcome: a person must allow the call first
}

// Message is what a refused caller reads.
func (d decision) Message() string { return d.Reason + "; " + d.Advice }

// refuse adds a fault; the first one is the outcome.
func (d *decision) refuse(outcome, flag, reason, advice string) {
	if flag != "" {
		d.Flags = append(d.Flags, flag)
	}
	if d.Outcome == "" {
		d.Outcome, d.Reason, d.Advice = outcome, reason, advice
	}
}

// decide is the whole of policy. It is pure: the same question always has the same answer. Every fault leaves its flag;
// the first of them, in the order name, id, message, arguments, approval, is the outcome.
func decide(q question) decision {
	var d decision
	if q.Tool == nil {
		d.refuse(ledger.OutcomeUnknownTool, trace.FlagUnknownTool, "unknown tool: "+q.Name, registeredTools(q.Registered))
	}
	if q.Duplicate {
		d.refuse(ledger.OutcomeDuplicateID, trace.FlagDuplicateID, fmt.Sprintf("the call id %q was already used in this run", q.ID),
			"nothing was started: send the call again under an id of its own")
	}
	if q.Refusal != (Refusal{}) {
		flag := ""
		if q.Refusal.Outcome == ledger.OutcomeInvalidArguments {
			flag = trace.FlagInvalidArguments
		}
		d.refuse(q.Refusal.Outcome, flag, q.Refusal.Reason, "nothing was started")
	}
	if q.Tool == nil || q.Refusal != (Refusal{}) {
		return d
	}
	if q.Problem != nil {
		d.refuse(ledger.OutcomeInvalidArguments, trace.FlagInvalidArguments, fmt.Sprintf("invalid arguments for %s: %v", q.Tool.Name, q.Problem),
			"nothing was started: correct the arguments and call again")
	}
	if q.Tool.Approval == catalog.ApprovalDeny {
		d.Approval = ledger.ApprovalDenied
		d.refuse(ledger.OutcomePolicy, "", fmt.Sprintf("the catalog denies every call of %s (approval = \"deny\")", q.Tool.Name),
			"nothing was started: do not call it again, use another tool or ask the user")
	}
	switch {
	case d.Outcome != "":
	case q.Tool.Approval == catalog.ApprovalAsk && !(catalog.Outward(q.Tool.Risk) && slices.Contains(q.Autonomous, q.Tool.Risk)):
		d.Ask = true
	case catalog.Outward(q.Tool.Risk):
		d.Approval = ledger.ApprovalAutonomous
	}
	return d
}

// refusalOf turns the error of the gate, or of the call's context, into a refusal while the call waited for something:
// nothing was started.
func refusalOf(err error, tool, waitedFor string, running, waiting int) (d decision) {
	switch {
	case errors.Is(err, errBusy):
		d.refuse(ledger.OutcomeBusy, "", fmt.Sprintf("busy: %d calls run and %d wait", running, waiting),
			"nothing was started: call again when some of them have ended")
	case errors.Is(err, ErrCancelled):
		d.refuse(ledger.OutcomeCancelled, "", "cancelled while it waited for "+waitedFor, "nothing was started")
	default:
		d.refuse(ledger.OutcomeInterrupted, "", fmt.Sprintf("%v, while %s waited for %s", err, tool, waitedFor), "nothing was started")
	}
	return d
}

// maxNames bounds the list of names that an unknown tool is answered with.
const maxNames = 100

// registeredTools names what there is, so that the model need not guess again.
func registeredTools(names []string) string {
	if len(names) == 0 {
		return "registered: none"
	}
	more := ""
	if n := len(names) - maxNames; n > 0 {
		names, more = names[:maxNames], fmt.Sprintf(" and %d more", n)
	}
	return "registered: " + strings.Join(names, ", ") + more
}
