package runner

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"toolrun/archive/ledger"
	"toolrun/sandbox"
)

// Outcomes, as rows and replies name them.
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

	OutcomeUnknownTool        = "unknown_tool"
	OutcomeInvalidArguments   = "invalid_arguments"
	OutcomeDuplicateID        = "duplicate_id"
	OutcomePolicy             = "policy"
	OutcomeSandboxUnavailable = "sandbox_unavailable"
	OutcomeBusy               = "busy"
)

// verdict is what an outcome means for a row that says whether something was started.
type verdict struct {
	Status    string
	ErrorType ledger.OrNull
}

// verdicts is the one table from outcome to status and error_type.
var verdicts = map[string]verdict{
	OutcomeOK:            {ledger.StatusSuccess, ""},
	OutcomeExit:          {ledger.StatusError, "ExitError"},
	OutcomeSignal:        {ledger.StatusError, "SignalError"},
	OutcomeCPULimit:      {ledger.StatusError, "CpuLimitError"},
	OutcomeOOM:           {ledger.StatusError, "OutOfMemoryError"},
	OutcomeOutputLimit:   {ledger.StatusError, "OutputLimitError"},
	OutcomeInterrupted:   {ledger.StatusError, "InterruptedError"},
	OutcomeSpawnFailed:   {ledger.StatusError, "SpawnError"},
	OutcomeCaptureFailed: {ledger.StatusError, "CaptureError"},
	OutcomeTimeout:       {ledger.StatusTimeout, "TimeoutError"},
	OutcomeCancelled:     {ledger.StatusError, "CancelledError"},

	OutcomeUnknownTool:        {ledger.StatusBlocked, "UnknownTool"},
	OutcomeInvalidArguments:   {ledger.StatusBlocked, "InvalidArguments"},
	OutcomeDuplicateID:        {ledger.StatusBlocked, "DuplicateId"},
	OutcomePolicy:             {ledger.StatusBlocked, "PolicyDenied"},
	OutcomeSandboxUnavailable: {ledger.StatusBlocked, "SandboxUnavailable"},
	OutcomeBusy:               {ledger.StatusBlocked, "Busy"},
}

// verdictOf looks an outcome up; a call that was cancelled before anything started is blocked, not an error.
func verdictOf(outcome string, started bool) verdict {
	v := verdicts[outcome]
	if outcome == OutcomeCancelled && !started {
		v.Status = ledger.StatusBlocked
	}
	return v
}

// ending is how an attempt ended, in the words of a row.
type ending struct {
	Outcome  string
	ExitCode *int   // only of a program that exited by itself
	Signal   string // only where a signal ended the program: "SIGKILL"
	Started  bool   // something of the tool ran
	Leftover []int  // processes that the kernel could not kill
}

// endingOf turns the box's result into a row's words. cause is context.Cause of the call's context, okCodes the exit
// codes that the tool declares as success. An exit code is never made up: a signal is not 137, and nothing is -1.
func endingOf(res sandbox.Result, cause error, okCodes []int) ending {
	e := ending{Started: res.Outcome != sandbox.SpawnFailed && res.Outcome != sandbox.Unavailable, Leftover: res.Leftover}
	if res.HasExit && res.Signal == 0 {
		e.ExitCode = &res.ExitCode
	}
	if res.Signal != 0 {
		e.Signal = unix.SignalName(res.Signal)
	}
	switch res.Outcome {
	case sandbox.Exited:
		e.Outcome = OutcomeExit
		if slices.Contains(okCodes, res.ExitCode) {
			e.Outcome = OutcomeOK
		}
	case sandbox.Signaled:
		e.Outcome = OutcomeSignal
	case sandbox.TimedOut:
		e.Outcome = OutcomeTimeout
	case sandbox.Cancelled:
		e.Outcome = outcomeOfCause(cause)
		e.Started = !res.Started.IsZero()
	case sandbox.OutOfMemory:
		e.Outcome = OutcomeOOM
	case sandbox.CPULimit:
		e.Outcome = OutcomeCPULimit
	case sandbox.OutputLimit:
		e.Outcome = OutcomeOutputLimit
	case sandbox.CaptureFailed:
		e.Outcome = OutcomeCaptureFailed
	case sandbox.SpawnFailed:
		e.Outcome = OutcomeSpawnFailed
	case sandbox.Unavailable:
		e.Outcome = OutcomeSandboxUnavailable
	default:
		e.Outcome = OutcomeInterrupted
	}
	return e
}

// outcomeOfCause names the end of a call whose context ended. Whatever is not the client's own wish is ours.
func outcomeOfCause(cause error) string {
	if errors.Is(cause, ErrCancelled) {
		return OutcomeCancelled
	}
	return OutcomeInterrupted
}

// causeOf is why ctx ended, nil while it has not.
func causeOf(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}
