package anomaly_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"toolrun/archive/anomaly"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
)

// noon is when the rows begin: no night in the zone of the tests, which is an hour east of Greenwich.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

var walls = strings.Fields("cgroup.memory cgroup.swap cgroup.pids cgroup.cpu cpu_time rlimit.nofile rlimit.fsize ns.user ns.pid ns.mount ns.ipc ns.uts ns.cgroup ns.net view landlock seccomp no_new_privs caps notty")

// ledgerOf makes rows of good calls a second apart, each of another input, changed by change.
func ledgerOf(n int, change func(i int, row *ledger.Row)) (rows []*ledger.Row) {
	for i := range n {
		code, exe := 0, redact.Plain("/usr/bin/true")
		row := &ledger.Row{
			ToolCallID: redact.Plain(fmt.Sprint("call_", i)), SessionID: redact.Plain("s"), ToolName: redact.Plain("echo"), RiskClass: "READ", Status: ledger.StatusSuccess, Outcome: ledger.OutcomeOK,
			Attempt: 1, DurationMS: 10, InputHash: fmt.Sprint(i), OutputBytes: 10, Seq: int64(i), RunID: "r", CatalogSHA256: "c", SchemaSHA256: "s", DefinitionSHA256: "d", Known: true, ExitCode: &code,
			ExePath: &exe, ExeSHA256: "e", Enforced: walls,
		}
		at := noon.Add(time.Duration(i) * time.Second)
		row.StartedAt, row.EndedAt = ledger.FormatTime(at), ledger.FormatTime(at.Add(10*time.Millisecond))
		if change != nil {
			change(i, row)
		}
		rows = append(rows, row)
	}
	return rows
}

// check applies the rules to whole rows, and to what they say that they look at.
func check(t *testing.T, limits anomaly.Limits, rows []*ledger.Row) []anomaly.Anomaly {
	t.Helper()
	options := anomaly.Options{Limits: limits, Zone: time.FixedZone("test", 3600), Now: noon.Add(24 * time.Hour)}
	c, ofParts := anomaly.New(options), anomaly.New(options)
	columns := []ledger.Column{ledger.ColumnOf("input_summary")} // of the marks in it, since there is no InputMarks
	for _, key := range anomaly.Columns {
		columns = append(columns, ledger.ColumnOf(key))
	}
	for _, row := range rows {
		c.Add(row)
		var fields ledger.Fields
		if !fields.Scan(row.Append(nil)) {
			t.Fatalf("%s is no line of a ledger", row.Append(nil))
		}
		part, err := fields.Part(columns)
		if err != nil {
			t.Fatal(err)
		}
		ofParts.Add(part)
	}
	if !slices.Equal(c.Found(), ofParts.Found()) {
		t.Errorf("of Columns only:\n%v\nof all:\n%v", ofParts.Found(), c.Found())
	}
	for _, f := range c.Found() {
		for _, v := range []float64{f.Value, f.Limit} {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("%s: %v", f.Rule, v)
			}
		}
		if _, err := json.Marshal(f); err != nil {
			t.Error(err)
		}
	}
	return c.Found()
}

func tell(list []anomaly.Anomaly) string {
	var words []string
	for _, f := range list {
		words = append(words, fmt.Sprint(f.Rule, "@", f.Seq))
	}
	return strings.Join(words, " ")
}

func fail(row *ledger.Row, code int) {
	row.Status, row.Outcome, row.ExitCode = ledger.StatusError, ledger.OutcomeExit, &code
}

func TestEachRuleFindsItsCaseAndNothingElse(t *testing.T) {
	for _, c := range []struct {
		want   string
		n      int
		change func(i int, row *ledger.Row)
	}{
		{"", 200, nil},
		{"session_errors@4", 10, func(i int, row *ledger.Row) { // 2 of 5
			if i == 1 || i == 3 {
				fail(row, 1)
			}
		}},
		{"", 10, func(i int, row *ledger.Row) { // 3 of 10
			if i > 6 {
				fail(row, 1)
			}
		}},
		{"", 4, func(i int, row *ledger.Row) { fail(row, 1) }},
		{"repeats@2 session_errors@4", 5, func(i int, row *ledger.Row) {
			if i < 2 {
				fail(row, 1)
			}
			if i == 2 {
				row.Attempt = 3
			}
		}},
		{"repeats@3", 4, func(i int, row *ledger.Row) {
			if i == 3 {
				row.Repeat = 3
			}
		}},
		{"session_cost@2", 5, func(i int, row *ledger.Row) { usd := 2.0; row.EstimatedCostUSD = &usd }},
		{"slow_call@1", 3, func(i int, row *ledger.Row) {
			if i > 0 {
				row.DurationMS = int64(60000 + 1 - 1*(i-1)) // 60.001 s, 60 s
				row.EndedAt = ledger.FormatTime(noon.Add(time.Duration(i)*time.Second + time.Duration(row.DurationMS)*time.Millisecond))
			}
		}},
		{"autonomous@0", 1, func(i int, row *ledger.Row) { row.RiskClass, row.ApprovalStatus = "SEND", ledger.ApprovalAutonomous }},
		{"", 1, func(i int, row *ledger.Row) { row.RiskClass, row.ApprovalStatus = "SEND", ledger.ApprovalApproved }},
		{"autonomous@0 autonomous_at_night@0", 1, func(i int, row *ledger.Row) { // 05:59 of local time
			row.RiskClass, row.ApprovalStatus = "DESTRUCTIVE", ledger.ApprovalAutonomous
			row.StartedAt, row.EndedAt = "2026-11-30T04:59:00.000Z", "2026-11-30T04:59:00.010Z"
		}},
		{"autonomous@0", 1, func(i int, row *ledger.Row) { // 06:00
			row.RiskClass, row.ApprovalStatus = "DESTRUCTIVE", ledger.ApprovalAutonomous
			row.StartedAt, row.EndedAt = "2026-11-30T05:00:00.000Z", "2026-11-30T05:00:00.010Z"
		}},
		{"unknown_tool@1", 3, func(i int, row *ledger.Row) {
			if i == 1 {
				row.Status, row.Outcome, row.ToolName, row.RiskClass, row.ExePath, row.ExitCode, row.SchemaSHA256, row.Enforced = ledger.StatusBlocked, ledger.OutcomeUnknownTool, redact.Plain("run_tests"), "", nil, nil, "", nil
			}
		}},
		{"", 8, func(i int, row *ledger.Row) { // looks at a program that stays, and the end of one with its run
			if i >= 2 {
				row.InputHash, row.Flags, row.DurationMS = "same", []string{ledger.FlagLook}, 300000
				row.EndedAt = ledger.FormatTime(noon.Add(time.Duration(i)*time.Second + 300*time.Second))
			}
			if i > 4 {
				row.Flags, row.Status, row.Outcome, row.ExitCode = []string{ledger.FlagProcess}, ledger.StatusError, ledger.OutcomeInterrupted, nil
			}
		}},
		{"same_input@4", 8, func(i int, row *ledger.Row) {
			if i >= 2 {
				row.InputHash = "same"
			}
		}},
		{"", 8, func(i int, row *ledger.Row) { // the catalog's retries
			if i < 3 {
				row.InputHash, row.Attempt = "same", min(i+1, 2)
			}
		}},
		{"catalog_changed@3 schema_changed@3", 6, func(i int, row *ledger.Row) {
			if i >= 3 {
				row.RunID, row.CatalogSHA256, row.SchemaSHA256 = "r2", "c2", "s2"
			}
		}},
		{"schema_changed@3", 6, func(i int, row *ledger.Row) { // a schema is part of the definition
			if i >= 3 {
				row.RunID, row.SchemaSHA256, row.DefinitionSHA256 = "r2", "s2", "d2"
			}
		}},
		{"", 6, func(i int, row *ledger.Row) { // another session
			if i >= 3 {
				row.SessionID, row.RunID, row.CatalogSHA256, row.SchemaSHA256, row.DefinitionSHA256 = redact.Plain("s2"), "r2", "c2", "s2", "d2"
			}
		}},
		{"program_changed@4", 6, func(i int, row *ledger.Row) {
			if i >= 4 {
				row.ExeSHA256 = "e2"
			}
		}},
		{"wall_missing@2", 6, func(i int, row *ledger.Row) {
			if i >= 2 {
				row.Enforced = slices.DeleteFunc(slices.Clone(walls), func(w string) bool { return w == "landlock" })
			}
		}},
		{"", 3, func(i int, row *ledger.Row) { // the network of the host, by its declaration
			row.Enforced = slices.DeleteFunc(slices.Clone(walls), func(w string) bool { return w == "ns.net" || w == "notty" })
		}},
		{"secret_in_output@1", 3, func(i int, row *ledger.Row) {
			row.Redactions, row.InputSummary = 1, redact.Plain(`{"token":"[REDACTED]"}`)
			if i == 1 {
				row.Redactions = 2
			}
		}},
		{"", 8, func(i int, row *ledger.Row) { // programs that stay open, beside the calls that started them
			row.InputHash = fmt.Sprint(i / 4)
			if i%2 == 1 {
				row.Flags, row.DurationMS = []string{ledger.FlagProcess}, 3600_000
			}
		}},
		{"open_call@0", 1, func(i int, row *ledger.Row) {
			row.Status, row.Outcome, row.ClosedBy, row.ExitCode, row.Flags = ledger.StatusError, ledger.OutcomeInterrupted, "pid 7", nil, []string{"CLOSED_LATER"}
		}},
	} {
		if got := tell(check(t, anomaly.Defaults(), ledgerOf(c.n, c.change))); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A deviation of 0 is no division by it.
func TestFlatHistoryHasFiniteScores(t *testing.T) {
	rows := ledgerOf(53, func(i int, row *ledger.Row) {
		switch i {
		case 50:
			row.DurationMS = 10000
			row.EndedAt = ledger.FormatTime(noon.Add(time.Duration(i+10) * time.Second))
		case 51:
			row.OutputBytes = 100_000_000
			row.StartedAt, row.EndedAt = ledger.FormatTime(noon.Add(61*time.Second)), ledger.FormatTime(noon.Add(61*time.Second+10*time.Millisecond))
		case 52:
			fail(row, 1)
			row.StartedAt, row.EndedAt = ledger.FormatTime(noon.Add(61*time.Second)), ledger.FormatTime(noon.Add(61*time.Second+10*time.Millisecond))
		}
	})
	if got, want := tell(check(t, anomaly.Defaults(), rows)), "unusual_duration@50 unusual_output@51 unusual_failure@52"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for i, row := range rows[:50] {
		row.DurationMS, row.OutputBytes = int64(10+i%3), int64(10+i%5)
	}
	if got := tell(check(t, anomaly.Defaults(), rows[:50])); got != "" {
		t.Error(got)
	}
}

// On a flat history a little more is nothing.
func TestFlatHistoryIsNoAlarmAtALittleMore(t *testing.T) {
	rows := ledgerOf(60, func(i int, row *ledger.Row) {
		if i >= 50 {
			row.DurationMS, row.OutputBytes = int64(11+i), int64(i*20)
			row.EndedAt = ledger.FormatTime(noon.Add(time.Duration(i)*time.Second + time.Duration(row.DurationMS)*time.Millisecond))
		}
	})
	if got := tell(check(t, anomaly.Defaults(), rows)); got != "" {
		t.Error(got)
	}
}

func TestTooFewSamplesAreNoHistory(t *testing.T) {
	for n := range 21 {
		rows := ledgerOf(n+1, func(i int, row *ledger.Row) {
			row.DurationMS, row.OutputBytes = 0, 0
			row.EndedAt = row.StartedAt
			if i == n { // 30 s and 1 GB
				row.DurationMS, row.OutputBytes = 30000, 1e9
				row.EndedAt = ledger.FormatTime(noon.Add(time.Duration(i+30) * time.Second))
			}
		})
		want := ""
		if n >= 20 {
			want = "unusual_duration@20 unusual_output@20"
		}
		if got := tell(check(t, anomaly.Defaults(), rows)); got != want {
			t.Errorf("%d samples: %q", n, got)
		}
	}
}

func TestRowsWithImpossibleTimesAreNamedAndCountInNoHistory(t *testing.T) {
	rows := ledgerOf(40, func(i int, row *ledger.Row) {
		long := int64(100_000_000) // would be the median of what is left
		switch i % 8 {
		case 1:
			row.EndedAt = ledger.FormatTime(noon.Add(-time.Second)) // before it started
		case 2:
			row.StartedAt, row.EndedAt = "2099-01-01T00:00:00.000Z", "2099-01-01T00:00:01.000Z"
		case 3:
			row.StartedAt, row.EndedAt = "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:01.000Z"
		case 4:
			row.StartedAt, row.EndedAt = "yesterday", "today"
		case 5:
			row.StartedAt = ledger.FormatTime(noon.Add(time.Duration(i-1) * time.Second)) // the same as another is nothing
			return
		default:
			return
		}
		row.OutputBytes = long
	})
	limits := anomaly.Defaults()
	limits.Samples = 10
	list := check(t, limits, rows)
	if len(list) != 20 {
		t.Errorf("%d findings: %s", len(list), tell(list))
	}
	for _, f := range list {
		if f.Rule != anomaly.ClockStep {
			t.Errorf("%+v", f)
		}
	}
	back := ledgerOf(10, func(i int, row *ledger.Row) {
		if i >= 5 {
			at := noon.Add(time.Duration(i)*time.Second - time.Hour)
			row.StartedAt, row.EndedAt = ledger.FormatTime(at), ledger.FormatTime(at.Add(10*time.Millisecond))
		}
	})
	if got := tell(check(t, anomaly.Defaults(), back)); got != "clock_step@5" {
		t.Error(got)
	}
}

func TestLimitsComeFromConfig(t *testing.T) {
	l := anomaly.Defaults()
	for key, value := range map[string]any{"session_calls": int64(2), "session_errors": 0.5, "call_duration": "5s", "night": []any{int64(22), int64(4)}, "off": []any{"autonomous"}, "session_cost_usd": int64(1)} {
		if err := l.Set(key, value); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if l.SessionCalls != 2 || l.SessionErrors != 0.5 || l.CallDuration != 5*time.Second || l.Night != [2]int{22, 4} || l.SessionCostUSD != 1 {
		t.Errorf("%+v", l)
	}
	rows := ledgerOf(2, func(i int, row *ledger.Row) {
		row.RiskClass, row.ApprovalStatus = "SEND", ledger.ApprovalAutonomous
		at := noon.Add(time.Duration(i) * 10 * time.Hour) // 13:00 and 23:00
		row.StartedAt, row.EndedAt = ledger.FormatTime(at), ledger.FormatTime(at)
	})
	if got := tell(check(t, l, rows)); got != "autonomous_at_night@1" {
		t.Error(got)
	}
	for key, bad := range map[string]any{
		"session_calls": int64(0), "session_errors": 1.5, "attempts": "3", "session_cost_usd": -1.0, "call_duration": "60", "night": []any{int64(1), int64(24)}, "same_input": 2.5,
		"samples": int64(1), "score": math.NaN(), "unusual_failure": true, "off": []any{"nothing"}, "other": 1, "Off": []any{},
	} {
		l := anomaly.Defaults()
		if err := l.Set(key, bad); err == nil {
			t.Errorf("%s = %v is taken", key, bad)
		}
	}
}
