package ledger

import (
	"fmt"
	"slices"
	"time"
)

// Verdict is how a call ended, in the one line that its answer begins and ends with; not of a refusal, whose answer says
// what to do next.
func (r *Row) Verdict() string {
	took := (time.Duration(r.DurationMS) * time.Millisecond).String()
	if r.Status == StatusSuccess {
		if r.ExitCode == nil {
			return fmt.Sprintf("OK: %s succeeded in %s", r.ToolName, took)
		}
		return fmt.Sprintf("OK: %s succeeded with exit code %d in %s", r.ToolName, *r.ExitCode, took)
	}
	why := r.Outcome
	if r.ErrorMessage != nil {
		why = r.ErrorMessage.String()
	}
	return fmt.Sprintf("FAILED: %s: %s (after %s)", r.ToolName, why, took)
}

// FlagProcess is on the row of a program that stayed open: of its whole life, and not of a call.
const FlagProcess = "PROCESS"

// FlagLook is on the row of a call that looks at programs that stay (read, poll, list): it may wait long, and be made again
// and again.
const FlagLook = "LOOK"

// IsLook tells whether the row is that of such a look.
func (r *Row) IsLook() bool { return slices.Contains(r.Flags, FlagLook) }

// IsProcess tells whether the row is that of a program that stayed open: the call that started it has a row of its own.
func (r *Row) IsProcess() bool { return slices.Contains(r.Flags, FlagProcess) }
