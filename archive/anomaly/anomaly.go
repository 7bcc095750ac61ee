// Package anomaly is rules over rows: what an operator wants to be told of without asking.
//
// The rules are pure: rows go in in the order of seq, what was found comes out, each with the row at which it became true. So
// who remembers up to which row he was told is told of each thing once. Rows whose clock cannot be right are findings of their
// own and count in no history. A rule that compares with the past says nothing below a minimum of samples, and its scores are
// finite on a flat history.
package anomaly

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"toolrun/archive/ledger"
	"toolrun/archive/redact"
)

// Rules, by the names that config.toml and the output have for them.
const (
	SessionErrors     = "session_errors"
	Repeats           = "repeats"
	SessionCost       = "session_cost"
	SlowCall          = "slow_call"
	Autonomous        = "autonomous"
	AutonomousNight   = "autonomous_at_night"
	UnknownTool       = "unknown_tool"
	SameInput         = "same_input"
	CatalogChanged    = "catalog_changed"
	SchemaChanged     = "schema_changed"
	DefinitionChanged = "definition_changed"
	ProgramChanged    = "program_changed"
	WallMissing       = "wall_missing"
	SecretInOutput    = "secret_in_output"
	ClockStep         = "clock_step"
	OpenCall          = "open_call"
	UnusualDuration   = "unusual_duration"
	UnusualOutput     = "unusual_output"
	UnusualFailure    = "unusual_failure"
)

// Rules is all of them.
var Rules = []string{SessionErrors, Repeats, SessionCost, SlowCall, Autonomous, AutonomousNight, UnknownTool, SameInput, CatalogChanged, SchemaChanged,
	DefinitionChanged, ProgramChanged, WallMissing, SecretInOutput, ClockStep, OpenCall, UnusualDuration, UnusualOutput, UnusualFailure}

// Anomaly is one finding.
type Anomaly struct {
	Rule      string  `json:"rule"`
	At        string  `json:"at"`           // started_at of the row
	Seq       int64   `json:"seq"`          // of the row at which it became true
	CallID    string  `json:"tool_call_id"` // of that row
	SessionID string  `json:"session_id"`
	Tool      string  `json:"tool_name"`
	Value     float64 `json:"value"` // what was measured, as the rule measures it; finite
	Limit     float64 `json:"limit"` // the threshold that it passed
	Text      string  `json:"text"`
}

// Columns are the keys of a row that the rules look at where Options.InputMarks is given.
var Columns = []string{"tool_call_id", "session_id", "tool_name", "risk_class", "status", "attempt", "started_at", "ended_at", "duration_ms", "input_hash",
	"output_bytes", "estimated_cost_usd", "approval_status", "seq", "run_id", "catalog_sha256", "schema_sha256", "definition_sha256", "flags", "outcome",
	"exit_code", "signal", "exe_path", "exe_sha256", "enforced", "redactions", "repeat", "payloads", "closed_by"}

// Checker takes rows in the order of seq.
type Checker struct {
	limits  Limits
	zone    *time.Location
	now     time.Time
	cost    func(*ledger.Row) (usd float64, known bool)
	inputs  func(*ledger.Row) (marks int)
	changes func(from, to string) []string
	partial func(session string) bool
	found   []Anomaly

	sessions map[string]*session
	tools    map[string]*tool
	texts    map[string]string // what many sessions have in common: names, ids and hashes, each once
	last     time.Time         // the latest ended_at
}

// Options of New.
type Options struct {
	Limits Limits
	Zone   *time.Location // of the nights
	Now    time.Time
	// Cost gives what a row cost, its own value or one that was learned later; nil: its own.
	Cost func(*ledger.Row) (usd float64, known bool)
	// Changes tells what changed between two definitions, by their hashes, as far as that is known; nil: it is not.
	Changes func(from, to string) []string
	// Partial tells whether rows of a session are on the record and do not go in: what part of its calls failed is not known
	// then. Nil: all go in.
	Partial func(session string) bool
	// InputMarks gives how many marks stand in the stored arguments; nil: in their summary.
	InputMarks func(*ledger.Row) int
}

// New makes a checker.
func New(o Options) *Checker {
	c := &Checker{limits: o.Limits, zone: o.Zone, now: o.Now, cost: o.Cost, inputs: o.InputMarks, changes: o.Changes, partial: o.Partial, sessions: map[string]*session{}, tools: map[string]*tool{}, texts: map[string]string{}}
	if c.cost == nil {
		c.cost = func(row *ledger.Row) (float64, bool) {
			if row.EstimatedCostUSD == nil {
				return 0, false
			}
			return *row.EstimatedCostUSD, true
		}
	}
	if c.inputs == nil {
		c.inputs = func(row *ledger.Row) int { return strings.Count(row.InputSummary.String(), redact.Mark) }
	}
	if c.changes == nil {
		c.changes = func(string, string) []string { return nil }
	}
	if c.partial == nil {
		c.partial = func(string) bool { return false }
	}
	return c
}

// Found is what was found so far, in the order in which it became true.
func (c *Checker) Found() []Anomaly { return c.found }

// report adds a finding, unless its rule is switched off.
func (c *Checker) report(rule string, row *ledger.Row, value, limit float64, format string, args ...any) {
	if slices.Contains(c.limits.Off, rule) {
		return
	}
	c.found = append(c.found, Anomaly{Rule: rule, At: row.StartedAt, Seq: row.Seq, CallID: row.ToolCallID.String(), SessionID: row.SessionID.String(),
		Tool: row.ToolName.String(), Value: finite(value), Limit: finite(limit), Text: fmt.Sprintf(format, args...)})
}

// once is s, in the memory of the first string that was equal to it.
func (c *Checker) once(s string) string {
	if first, ok := c.texts[s]; ok {
		return first
	}
	c.texts[s] = s
	return s
}

func finite(f float64) float64 {
	switch {
	case math.IsNaN(f):
		return 0
	case math.IsInf(f, 0):
		return math.Copysign(math.MaxFloat64, f)
	}
	return f
}

// Add takes the next row.
func (c *Checker) Add(row *ledger.Row) {
	right := c.clock(row)
	s := c.sessions[row.SessionID.String()]
	if s == nil {
		s = &session{tools: map[string]declared{}}
		c.sessions[row.SessionID.String()] = s
	}
	c.session(s, row)
	c.call(row)
	t := c.tools[row.ToolName.String()]
	if t == nil {
		t = &tool{walls: map[string]bool{}, programs: map[string]string{}}
		c.tools[row.ToolName.String()] = t
	}
	c.witness(t, row)
	if right && started(row) && !row.IsProcess() && !row.IsLook() {
		c.history(t, row)
	}
}

// started tells whether anything ran.
func started(row *ledger.Row) bool { return row.Status != ledger.StatusBlocked }

// failed tells whether an attempt went wrong.
func failed(row *ledger.Row) bool {
	return row.Status == ledger.StatusError || row.Status == ledger.StatusTimeout || row.Status == ledger.StatusRetry
}

// call are the rules of a single row.
func (c *Checker) call(row *ledger.Row) {
	l := c.limits
	took := float64(row.DurationMS) / 1000
	if limit := l.CallDuration.Seconds(); started(row) && took > limit && !row.IsProcess() && !row.IsLook() {
		c.report(SlowCall, row, took, limit, "took %.1f s", took)
	}
	if n := max(row.Attempt, row.Repeat); n >= l.Attempts && started(row) {
		var how []string
		if row.Attempt >= l.Attempts {
			how = append(how, fmt.Sprintf("attempt %d, as its tool declares", row.Attempt))
		}
		if row.Repeat >= l.Attempts {
			how = append(how, fmt.Sprintf("the agent calls it again with the same input, after %d failures", row.Repeat))
		}
		c.report(Repeats, row, float64(n), float64(l.Attempts), "%s", strings.Join(how, "; "))
	}
	if row.ApprovalStatus == ledger.ApprovalAutonomous && started(row) && (row.RiskClass == "SEND" || row.RiskClass == "DESTRUCTIVE") {
		c.report(Autonomous, row, 1, 0, "%s, and nobody was asked", row.RiskClass)
		if at, err := time.Parse(time.RFC3339, row.StartedAt); err == nil {
			if hour := at.In(c.zone).Hour(); l.atNight(hour) {
				c.report(AutonomousNight, row, float64(hour), float64(l.Night[0]), "%s at %s local time, and nobody was asked", row.RiskClass, at.In(c.zone).Format("15:04"))
			}
		}
	}
	if row.Outcome == ledger.OutcomeUnknownTool {
		c.report(UnknownTool, row, 1, 0, "asked for %q, which is not in the catalog", row.ToolName)
	}
	if row.ClosedBy != "" {
		c.report(OpenCall, row, 1, 0, "its toolrun died in it, and it was closed later")
	}
	if row.Redactions > 0 && started(row) && row.Payloads == "" {
		if marks := row.Redactions - c.inputs(row); marks > 0 {
			c.report(SecretInOutput, row, float64(marks), 0, "%d secrets were masked in what it printed", marks)
		}
	}
}

// Clocks of several processes, and rows that waited for the lock, are apart by less than this.
const clockSlack = 5 * time.Second

// clock tells whether the times of a row can be right, and reports where not.
func (c *Checker) clock(row *ledger.Row) bool {
	start, err1 := time.Parse(time.RFC3339, row.StartedAt)
	end, err2 := time.Parse(time.RFC3339, row.EndedAt)
	switch {
	case err1 != nil || err2 != nil:
		c.report(ClockStep, row, 0, 0, "its times cannot be read: %q to %q", row.StartedAt, row.EndedAt)
		return false
	case end.Before(start) || row.DurationMS < 0:
		c.report(ClockStep, row, end.Sub(start).Seconds(), 0, "it ended %s before it started", start.Sub(end))
		return false
	case start.Year() < 2020:
		c.report(ClockStep, row, float64(start.Year()), 2020, "it started in %d", start.Year())
		return false
	case end.After(c.now.Add(time.Minute)):
		c.report(ClockStep, row, end.Sub(c.now).Seconds(), 60, "it ended in the future, %s", row.EndedAt)
		return false
	}
	if row.ClosedBy != "" {
		return true // written later, with the times of its beginning
	}
	if back := c.last.Sub(end); back > clockSlack {
		c.report(ClockStep, row, back.Seconds(), clockSlack.Seconds(), "the clock went back by %s: it ended before the row before it", back.Round(time.Millisecond))
		c.last = end // told once; from here on the clock counts as it is
		return false
	}
	if end.After(c.last) {
		c.last = end
	}
	return true
}
