package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"toolrun/archive/evidence"
)

// Exit statuses of every command but call, whose own are those of GNU timeout (call.go).
const (
	statusDone        = 0
	statusFailed      = 1
	statusUsage       = 2
	statusFound       = 3
	statusUnverified  = 4
	statusData        = 5
	statusHost        = 6
	statusInterrupted = 130
)

// Sentinels of this package; those of the other packages are in the table below.
var (
	errFound       = errors.New("something was found")
	errUnverified  = errors.New("verification failed")
	errInterrupted = errors.New("interrupted")
	errUntrusted   = errors.New("catalog is not trusted")
	errHost        = errors.New("the host cannot enforce what the catalog asks")
)

// exits is the one table from an error to an exit status. The first entry that fits counts; an error that fits none is
// statusFailed.
var exits = []struct {
	status  int
	meaning string
	fits    func(error) bool
}{
	{statusDone, "done", func(err error) bool { return err == nil }},
	{statusFailed, "failed", func(error) bool { return false }},
	{statusUsage, "usage or catalog error", func(err error) bool {
		var usage *usageError
		return errors.As(err, &usage) || errors.Is(err, errUntrusted) || isCatalogError(err)
	}},
	{statusInterrupted, "interrupted", func(err error) bool { return errors.Is(err, errInterrupted) }},
	{statusHost, "the host cannot enforce what the catalog asks", func(err error) bool {
		return errors.Is(err, errHost)
	}},
	{statusData, "data directory unusable", isDataError},
	{statusUnverified, "verification failed", func(err error) bool {
		return errors.Is(err, errUnverified) || errors.Is(err, evidence.ErrUnverified) || errors.Is(err, evidence.ErrContradiction)
	}},
	{statusFound, "something was found: an anomaly, a damaged line, an unpaired call, nothing proved", func(err error) bool {
		return errors.Is(err, errFound)
	}},
}

// exitStatus is the exit status for err; of launch, the agent's.
func exitStatus(err error) int {
	var agent *launchEnd
	if errors.As(err, &agent) {
		return agent.status
	}
	for _, e := range exits {
		if e.fits(err) {
			return e.status
		}
	}
	return statusFailed
}

// statusMeaning is the table's word for a status.
func statusMeaning(status int) string {
	for _, e := range exits {
		if e.status == status {
			return e.meaning
		}
	}
	return ""
}

// usageError is a command line that was not understood.
type usageError struct {
	err error
	cmd *cobra.Command
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usagef makes a usageError of a command that found it by itself.
func usagef(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{err: fmt.Errorf(format, args...), cmd: cmd}
}

// hostError is errHost in the words of the sandbox.
type hostError struct{ why error }

func (e *hostError) Error() string        { return e.why.Error() }
func (e *hostError) Unwrap() error        { return e.why }
func (e *hostError) Is(target error) bool { return target == errHost }

// foundError is errFound in other words: nothing could be proved.
type foundError struct{ why error }

func (e *foundError) Error() string        { return e.why.Error() }
func (e *foundError) Unwrap() error        { return e.why }
func (e *foundError) Is(target error) bool { return target == errFound }

// unverifiedError is errUnverified in other words.
type unverifiedError struct{ why error }

func (e *unverifiedError) Error() string        { return e.why.Error() }
func (e *unverifiedError) Unwrap() error        { return e.why }
func (e *unverifiedError) Is(target error) bool { return target == errUnverified }

// toldError is an error whose text is already on stderr (or on stdout as a table): only the status is left to give, and
// joined with others it adds no line to theirs.
type toldError struct{ why error }

// told makes err a status only.
func told(err error) error { return &toldError{err} }

func (e *toldError) Error() string { return "" }
func (e *toldError) Unwrap() error { return e.why }

// errorLines are the lines of an error's text; joined errors give one line each.
func errorLines(err error) []string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
