package ledger

// Outcomes: how an attempt ended, or why a call was refused.
const (
	OutcomeOK            = "ok" // the exit code is one of the tool's ok_exit_codes
	OutcomeExit          = "exit"
	OutcomeSignal        = "signal"
	OutcomeTimeout       = "timeout"
	OutcomeCPULimit      = "cpu_limit"
	OutcomeOOM           = "oom"
	OutcomeOutputLimit   = "output_limit"
	OutcomeCancelled     = "cancelled"   // the client took the call back
	OutcomeInterrupted   = "interrupted" // toolrun died, failed or was told to stop
	OutcomeSpawnFailed   = "spawn_failed"
	OutcomeCaptureFailed = "capture_failed"

	OutcomeUnknownTool         = "unknown_tool"
	OutcomeInvalidArguments    = "invalid_arguments"
	OutcomeDuplicateID         = "duplicate_id"
	OutcomePolicy              = "policy"
	OutcomeDeclined            = "declined"
	OutcomeApprovalUnavailable = "approval_unavailable"
	OutcomeSandboxUnavailable  = "sandbox_unavailable"
	OutcomeBusy                = "busy"
)

// Ending is what an outcome says in the columns that people had before there were outcomes.
type Ending struct {
	Status    string
	ErrorType OrNull
}

// Endings is the one table of all outcomes. A failed attempt that another follows has StatusRetry in place of the status
// here; for a call of which nothing was started see [EndingOf].
var Endings = map[string]Ending{
	OutcomeOK:                  {StatusSuccess, ""},
	OutcomeExit:                {StatusError, "ExitError"},
	OutcomeSignal:              {StatusError, "SignalError"},
	OutcomeCPULimit:            {StatusError, "CpuLimitError"},
	OutcomeOOM:                 {StatusError, "OutOfMemoryError"},
	OutcomeOutputLimit:         {StatusError, "OutputLimitError"},
	OutcomeInterrupted:         {StatusError, "InterruptedError"},
	OutcomeSpawnFailed:         {StatusError, "SpawnError"},
	OutcomeCaptureFailed:       {StatusError, "CaptureError"},
	OutcomeTimeout:             {StatusTimeout, "TimeoutError"},
	OutcomeCancelled:           {StatusError, "CancelledError"},
	OutcomeUnknownTool:         {StatusBlocked, "UnknownTool"},
	OutcomeInvalidArguments:    {StatusBlocked, "InvalidArguments"},
	OutcomeDuplicateID:         {StatusBlocked, "DuplicateId"},
	OutcomePolicy:              {StatusBlocked, "PolicyDenied"},
	OutcomeDeclined:            {StatusBlocked, "Declined"},
	OutcomeApprovalUnavailable: {StatusBlocked, "ApprovalUnavailable"},
	OutcomeSandboxUnavailable:  {StatusBlocked, "SandboxUnavailable"},
	OutcomeBusy:                {StatusBlocked, "Busy"},
}

// EndingOf looks an outcome up; a call that was cancelled before anything started is blocked, not an error.
func EndingOf(outcome string, started bool) Ending {
	e := Endings[outcome]
	if outcome == OutcomeCancelled && !started {
		e.Status = StatusBlocked
	}
	return e
}
