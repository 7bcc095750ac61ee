package catalog

var risks = []string{RiskRead, RiskDraft, RiskSend, RiskDestructive}

// readRisk reads risk and approval. SEND and DESTRUCTIVE ask a person unless the catalog decides.
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
	if Outward(tool.Risk) {
		def = ApprovalAsk
	}
	tool.Approval = t.oneOf("approval", def, ApprovalAuto, ApprovalAsk, ApprovalDeny)
}

// Outward says whether a risk class is one that asks a person where nothing else is said: SEND and DESTRUCTIVE.
func Outward(risk string) bool { return risk == RiskSend || risk == RiskDestructive }
