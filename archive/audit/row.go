package audit

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"toolrun/archive/ledger"
)

// isHash tells whether s is a SHA-256 as everything here writes it.
func isHash(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

// checkRow tells what no row may say of itself.
func checkRow(row *ledger.Row) error {
	var errs []error
	bad := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(row.ToolCallID.String() == "", "tool_call_id is empty")
	bad(row.SessionID.String() == "", "session_id is empty")
	bad(row.Turn < 0, "turn is %d", row.Turn)
	bad(row.Attempt < 1, "attempt is %d", row.Attempt)
	bad(row.DurationMS < 0, "duration_ms is %d", row.DurationMS)
	bad(row.OutputBytes < 0, "output_bytes is %d", row.OutputBytes)
	bad(row.ExitCode != nil && *row.ExitCode < 0, "exit_code is negative: a signal is no exit code")
	bad(row.ExitCode != nil && row.Signal != "", "exit_code and signal are both set")
	bad(!isHash(row.InputHash), "input_hash is no SHA-256")
	for key, hash := range map[string]ledger.OrNull{"output_hash": row.OutputHash, "stderr_hash": row.StderrHash} {
		bad(hash != "" && !isHash(string(hash)), "%s is no SHA-256", key)
	}
	switch row.RiskClass {
	case "", "READ", "DRAFT", "SEND", "DESTRUCTIVE":
	default:
		bad(true, "risk_class is %q", row.RiskClass)
	}
	switch row.ApprovalStatus {
	case "", "approved", "denied", "autonomous":
	default:
		bad(true, "approval_status is %q", row.ApprovalStatus)
	}
	errs = append(errs, checkTimes(row), checkEnding(row))
	return errors.Join(errs...)
}

func checkTimes(row *ledger.Row) error {
	start, err := ledger.ParseTime(row.StartedAt)
	if err != nil {
		return fmt.Errorf("started_at %q is no time of the form 2006-01-02T15:04:05.000Z", row.StartedAt)
	}
	end, err := ledger.ParseTime(row.EndedAt)
	if err != nil {
		return fmt.Errorf("ended_at %q is no time of the form 2006-01-02T15:04:05.000Z", row.EndedAt)
	}
	if end.Sub(start) != time.Duration(row.DurationMS)*time.Millisecond {
		return fmt.Errorf("ended_at is not started_at + duration_ms")
	}
	return nil
}

func checkEnding(row *ledger.Row) error {
	if row.Outcome == "" && row.RunID == "" {
		return nil // a row that another program wrote, of the first 24 keys only
	}
	want, ok := ledger.Endings[row.Outcome]
	if !ok {
		return fmt.Errorf("outcome %q is unknown", row.Outcome)
	}
	if row.ErrorType != want.ErrorType {
		return fmt.Errorf("outcome %s with error_type %q", row.Outcome, row.ErrorType)
	}
	switch {
	case row.Status == want.Status:
	case row.Status == ledger.StatusRetry && want.Status != ledger.StatusSuccess && want.Status != ledger.StatusBlocked:
	case row.Status == ledger.StatusBlocked && row.Outcome == ledger.OutcomeCancelled:
	default:
		return fmt.Errorf("outcome %s with status %q", row.Outcome, row.Status)
	}
	return nil
}
