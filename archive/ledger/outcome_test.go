package ledger

import "testing"

// TestTheOutcomeTable is the table of the contract, every line of it.
func TestTheOutcomeTable(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range []struct {
		outcome string
		started bool
		status  string
		errType OrNull
	}{
		{"ok", true, "success", ""},
		{"exit", true, "error", "ExitError"},
		{"signal", true, "error", "SignalError"},
		{"cpu_limit", true, "error", "CpuLimitError"},
		{"oom", true, "error", "OutOfMemoryError"},
		{"output_limit", true, "error", "OutputLimitError"},
		{"interrupted", true, "error", "InterruptedError"},
		{"interrupted", false, "error", "InterruptedError"},
		{"spawn_failed", false, "error", "SpawnError"},
		{"capture_failed", true, "error", "CaptureError"},
		{"timeout", true, "timeout", "TimeoutError"},
		{"cancelled", true, "error", "CancelledError"},
		{"cancelled", false, "blocked", "CancelledError"},
		{"declined", false, "blocked", "Declined"},
		{"approval_unavailable", false, "blocked", "ApprovalUnavailable"},
		{"unknown_tool", false, "blocked", "UnknownTool"},
		{"invalid_arguments", false, "blocked", "InvalidArguments"},
		{"duplicate_id", false, "blocked", "DuplicateId"},
		{"policy", false, "blocked", "PolicyDenied"},
		{"sandbox_unavailable", false, "blocked", "SandboxUnavailable"},
		{"busy", false, "blocked", "Busy"},
	} {
		seen[c.outcome] = true
		if v := EndingOf(c.outcome, c.started); v.Status != c.status || v.ErrorType != c.errType {
			t.Errorf("%s, started %v: %+v, want %s %s", c.outcome, c.started, v, c.status, c.errType)
		}
	}
	if len(seen) != len(Endings) {
		t.Errorf("%d outcomes, of which this table has %d", len(Endings), len(seen))
	}
}
