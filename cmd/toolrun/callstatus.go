package main

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"

	"toolrun/archive/ledger"
	"toolrun/runner"
)

// Exit statuses of call, those of GNU timeout: beside these the tool's own, and 128+n where signal n ended it.
const (
	callTimeout    = 124
	callRefused    = 125 // toolrun failed, or refused the call
	callNotStarted = 126 // the program could not be executed
	callUnknown    = 127 // there is no such tool
)

const callExits = `  the tool's own, and
  124  the tool ran into its timeout
  125  toolrun itself failed, or refused the call
  126  the tool's program cannot be executed
  127  the catalog has no such tool
  128+N  signal N ended the tool, or toolrun was told by signal N to stop
`

// callStatus is the exit status of a call with this end.
func callStatus(r runner.Reply) int {
	if r.Err != nil || r.Row == nil {
		return callRefused
	}
	switch r.Row.Outcome {
	case ledger.OutcomeTimeout:
		return callTimeout
	case ledger.OutcomeSpawnFailed:
		return callNotStarted
	case ledger.OutcomeUnknownTool:
		return callUnknown
	case ledger.OutcomeOK, ledger.OutcomeExit:
		if r.Row.ExitCode != nil {
			return *r.Row.ExitCode
		}
	case ledger.OutcomeSignal, ledger.OutcomeOOM, ledger.OutcomeCPULimit, ledger.OutcomeOutputLimit:
		if n := signalNumber(r.Row.Signal); n > 0 {
			return 128 + n
		}
	}
	if r.Row.Status == ledger.StatusSuccess {
		return 0 // a builtin has no exit code
	}
	return callRefused
}

func signalNumber(name ledger.OrNull) int {
	return int(unix.SignalNum(string(name)))
}

// signalled is the end of a command because of a signal to toolrun.
type signalled struct{ signal syscall.Signal }

func (e *signalled) Error() string { return "interrupted by " + unix.SignalName(e.signal) }
func (e *signalled) Unwrap() error { return errInterrupted }

// callErrorStatus is call's exit status where no reply came to be.
func callErrorStatus(err error) int {
	var s *signalled
	if errors.As(err, &s) {
		return 128 + int(s.signal)
	}
	return callRefused
}
