package runner

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"toolrun/archive/ledger"
	"toolrun/sandbox"
)

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
		e.Outcome = ledger.OutcomeExit
		if slices.Contains(okCodes, res.ExitCode) {
			e.Outcome = ledger.OutcomeOK
		}
	case sandbox.Signaled:
		e.Outcome = ledger.OutcomeSignal
	case sandbox.TimedOut:
		e.Outcome = ledger.OutcomeTimeout
	case sandbox.Cancelled:
		e.Outcome = outcomeOfCause(cause)
		e.Started = !res.Started.IsZero()
	case sandbox.OutOfMemory:
		e.Outcome = ledger.OutcomeOOM
	case sandbox.CPULimit:
		e.Outcome = ledger.OutcomeCPULimit
	case sandbox.OutputLimit:
		e.Outcome = ledger.OutcomeOutputLimit
	case sandbox.CaptureFailed:
		e.Outcome = ledger.OutcomeCaptureFailed
	case sandbox.SpawnFailed:
		e.Outcome = ledger.OutcomeSpawnFailed
	case sandbox.Unavailable:
		e.Outcome = ledger.OutcomeSandboxUnavailable
	default:
		e.Outcome = ledger.OutcomeInterrupted
	}
	return e
}

// outcomeOfCause names the end of a call whose context ended. Whatever is not the client's own wish is ours.
func outcomeOfCause(cause error) string {
	if errors.Is(cause, ErrCancelled) {
		return ledger.OutcomeCancelled
	}
	return ledger.OutcomeInterrupted
}

// causeOf is why ctx ended, nil while it has not.
func causeOf(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}
