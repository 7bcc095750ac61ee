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
	switch outcome, known := outcomes[res.Outcome]; {
	case res.Outcome == sandbox.Cancelled:
		e.Outcome = outcomeOfCause(cause)
		e.Started = !res.Started.IsZero()
	case res.Outcome == sandbox.Exited && slices.Contains(okCodes, res.ExitCode):
		e.Outcome = ledger.OutcomeOK
	case known:
		e.Outcome = outcome
	default:
		e.Outcome = ledger.OutcomeInterrupted
	}
	return e
}

// outcomes are the ends of a box in the words of a row, but for those that the box does not know the meaning of.
var outcomes = map[sandbox.Outcome]string{
	sandbox.Exited:        ledger.OutcomeExit,
	sandbox.Signaled:      ledger.OutcomeSignal,
	sandbox.TimedOut:      ledger.OutcomeTimeout,
	sandbox.OutOfMemory:   ledger.OutcomeOOM,
	sandbox.CPULimit:      ledger.OutcomeCPULimit,
	sandbox.OutputLimit:   ledger.OutcomeOutputLimit,
	sandbox.CaptureFailed: ledger.OutcomeCaptureFailed,
	sandbox.SpawnFailed:   ledger.OutcomeSpawnFailed,
	sandbox.Unavailable:   ledger.OutcomeSandboxUnavailable,
}

// outcomeOfCause names the end of a call whose context ended. Whatever is not the client's own wish is ours.
func outcomeOfCause(cause error) string {
	var s *stopped
	if errors.As(cause, &s) {
		return s.outcome
	}
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
