package catalog

import "fmt"

var risks = []string{RiskRead, RiskDraft, RiskSend, RiskDestructive}

// readRisk reads risk and approval. SEND and DESTRUCTIVE ask a person unless the catalog decides; since this version
// cannot ask, it refuses to start rather than to run such a tool unasked or never.
func (l *loader) readRisk(tool *Tool, t *table) {
	tool.Risk = t.oneOf("risk", "", risks...)
	if _, at, ok := t.get("risk"); !ok {
		if tool.Builtin != "" {
			tool.Risk = RiskRead
		} else {
			at.fail("is missing: write " + alternatives(risks))
		}
	}
	def := ApprovalAuto
	if tool.Risk == RiskSend || tool.Risk == RiskDestructive {
		def = ApprovalAsk
	}
	tool.Approval = t.oneOf("approval", def, ApprovalAuto, ApprovalAsk, ApprovalDeny)
	if tool.Approval != ApprovalAsk {
		return
	}
	_, at, written := t.get("approval")
	why := fmt.Sprintf("tool %q asks a person before each call", tool.Name)
	if !written {
		why = fmt.Sprintf("tool %q has risk %s, for which approval is %q", tool.Name, tool.Risk, ApprovalAsk)
	}
	at.fail(fmt.Sprintf("%s, which %s; write approval = %q to run it unasked or approval = %q to refuse every call",
		why, notYet, ApprovalAuto, ApprovalDeny))
}
