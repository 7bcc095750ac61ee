package anomaly_test

import (
	"slices"
	"testing"
	"time"

	"toolrun/archive/anomaly"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
)

// pair is a rule's own case, and the nearest one that is none.
type pair struct {
	n             int // rows
	fires, silent func(i int, row *ledger.Row)
}

// from changes the rows from n on.
func from(n int, change func(row *ledger.Row)) func(int, *ledger.Row) {
	return func(i int, row *ledger.Row) {
		if i >= n {
			change(row)
		}
	}
}

func lasting(d time.Duration) func(row *ledger.Row) {
	return func(row *ledger.Row) {
		at, err := time.Parse(time.RFC3339, row.StartedAt)
		if err != nil {
			panic(err)
		}
		row.DurationMS, row.EndedAt = d.Milliseconds(), ledger.FormatTime(at.Add(d))
	}
}

func costing(usd float64) func(int, *ledger.Row) {
	return func(_ int, row *ledger.Row) { row.EstimatedCostUSD = &usd }
}

// unasked is a call that nobody was asked about, at this time of the tests' zone.
func unasked(risk, clock string) func(int, *ledger.Row) {
	return func(_ int, row *ledger.Row) {
		at, err := time.Parse("2006-01-02 15:04 -0700", "2026-11-30 "+clock+" +0100")
		if err != nil {
			panic(err)
		}
		row.RiskClass, row.ApprovalStatus = ledger.OrNull(risk), ledger.ApprovalAutonomous
		row.StartedAt, row.EndedAt = ledger.FormatTime(at), ledger.FormatTime(at)
	}
}

func refused(outcome string) func(*ledger.Row) {
	return func(row *ledger.Row) {
		row.Status, row.Outcome, row.ExePath, row.ExitCode, row.Enforced = ledger.StatusBlocked, outcome, nil, nil, nil
	}
}

func without(walls ...string) func(*ledger.Row) {
	return func(row *ledger.Row) {
		row.Enforced = slices.DeleteFunc(slices.Clone(row.Enforced), func(w string) bool { return slices.Contains(walls, w) })
	}
}

func masked(input string, redactions int) func(*ledger.Row) {
	return func(row *ledger.Row) { row.InputSummary, row.Redactions = redact.Plain(input), redactions }
}

func TestEachRuleHasACaseAndANearMiss(t *testing.T) {
	cases := map[string]pair{
		anomaly.SessionErrors:   {10, from(6, func(r *ledger.Row) { fail(r, 1) }), from(7, func(r *ledger.Row) { fail(r, 1) })},              // 4 and 3 of 10
		anomaly.Repeats:         {3, from(2, func(r *ledger.Row) { r.Attempt = 3 }), from(2, func(r *ledger.Row) { r.Attempt = 2 })},         // the third and the second
		anomaly.SessionCost:     {4, costing(1.26), costing(1.25)},                                                                           // $5.04, $5.00
		anomaly.SlowCall:        {2, from(1, lasting(time.Minute+time.Millisecond)), from(1, lasting(time.Minute))},                          // over 60 s, 60 s
		anomaly.Autonomous:      {1, unasked("SEND", "12:00"), unasked("DRAFT", "12:00")},                                                    //
		anomaly.AutonomousNight: {1, unasked("DESTRUCTIVE", "01:00"), unasked("DESTRUCTIVE", "00:59")},                                       //
		anomaly.UnknownTool:     {2, from(1, refused(ledger.OutcomeUnknownTool)), from(1, refused(ledger.OutcomeInvalidArguments))},          //
		anomaly.SameInput:       {4, from(1, func(r *ledger.Row) { r.InputHash = "x" }), from(2, func(r *ledger.Row) { r.InputHash = "x" })}, // three times, twice
		anomaly.CatalogChanged: {4, from(2, func(r *ledger.Row) { r.RunID, r.CatalogSHA256 = "r2", "c2" }),
			from(2, func(r *ledger.Row) { r.RunID = "r2" })}, // another run under the same catalog
		anomaly.SchemaChanged: {4, from(2, func(r *ledger.Row) { r.SchemaSHA256 = "s2" }),
			from(2, func(r *ledger.Row) { r.SchemaSHA256, r.ToolName = "s2", redact.Plain("other") })}, // of another tool
		anomaly.DefinitionChanged: {4, from(2, func(r *ledger.Row) { r.RunID, r.DefinitionSHA256 = "r2", "d2" }),
			from(2, func(r *ledger.Row) { r.RunID, r.DefinitionSHA256, r.ToolName = "r2", "d2", redact.Plain("other") })}, // of another tool
		anomaly.ProgramChanged: {4, from(2, func(r *ledger.Row) { r.ExeSHA256 = "e2" }),
			from(2, func(r *ledger.Row) { exe := redact.Plain("/usr/bin/false"); r.ExeSHA256, r.ExePath = "e2", &exe })}, // another program
		anomaly.WallMissing:    {2, from(1, without("seccomp")), from(1, without("ns.net", "notty", "proxy"))}, // what a declaration may ask for
		anomaly.SecretInOutput: {2, from(1, masked("{}", 1)), from(1, masked(`{"token":"[REDACTED]"}`, 1))},    // in the arguments
		anomaly.ClockStep: {6, from(3, func(r *ledger.Row) { back(r, 6*time.Second) }),
			func(i int, r *ledger.Row) { back(r, time.Duration(i%2)*3*time.Second) }}, // rows of several processes
		anomaly.OpenCall: {1, from(0, func(r *ledger.Row) {
			r.Status, r.Outcome, r.ExitCode, r.ClosedBy = ledger.StatusError, ledger.OutcomeInterrupted, nil, "pid 7"
		}),
			from(0, func(r *ledger.Row) {
				r.Status, r.Outcome, r.ExitCode = ledger.StatusError, ledger.OutcomeInterrupted, nil
			})}, // told to stop, and wrote its row itself
		anomaly.UnusualDuration: {31, from(30, lasting(600*time.Millisecond)), from(30, lasting(400*time.Millisecond))},
		anomaly.UnusualOutput:   {31, from(30, func(r *ledger.Row) { r.OutputBytes = 20_000 }), from(30, func(r *ledger.Row) { r.OutputBytes = 10_000 })},
		anomaly.UnusualFailure: {60, from(59, func(r *ledger.Row) { fail(r, 1) }), func(i int, r *ledger.Row) {
			if i == 30 || i == 59 { // one in thirty is usual
				fail(r, 1)
			}
		}},
	}
	for _, rule := range anomaly.Rules {
		c, ok := cases[rule]
		if !ok {
			t.Errorf("no case for %s", rule)
			continue
		}
		of := func(change func(int, *ledger.Row)) (list []anomaly.Anomaly) {
			return slices.DeleteFunc(check(t, anomaly.Defaults(), ledgerOf(c.n, change)), func(f anomaly.Anomaly) bool { return f.Rule != rule })
		}
		if got := of(c.fires); len(got) != 1 {
			t.Errorf("%s: its case is found %d times: %s", rule, len(got), tell(got))
		}
		if got := of(c.silent); len(got) != 0 {
			t.Errorf("%s: what is none: %s", rule, tell(got))
		}
		off := anomaly.Defaults()
		off.Off = []string{rule}
		for _, f := range check(t, off, ledgerOf(c.n, c.fires)) {
			if f.Rule == rule {
				t.Errorf("%s is told though it is switched off", rule)
			}
		}
	}
}

// The agent's own tries and those that a tool declares are two things.
func TestRepeatsSayWhoseTheyAre(t *testing.T) {
	for want, change := range map[string]func(r *ledger.Row){
		"attempt 3, as its tool declares":                                func(r *ledger.Row) { r.Attempt = 3 },
		"the agent calls it again with the same input, after 4 failures": func(r *ledger.Row) { r.Repeat = 4 },
		"attempt 3, as its tool declares; the agent calls it again with the same input, after 4 failures": func(r *ledger.Row) {
			r.Attempt, r.Repeat = 3, 4
		},
	} {
		if found := check(t, anomaly.Defaults(), ledgerOf(1, from(0, change))); len(found) != 1 || found[0].Text != want {
			t.Errorf("%+v, want %q", found, want)
		}
	}
}

// back moves a row to an earlier time.
func back(row *ledger.Row, by time.Duration) {
	at, err := time.Parse(time.RFC3339, row.StartedAt)
	if err != nil {
		panic(err)
	}
	row.StartedAt, row.EndedAt = ledger.FormatTime(at.Add(-by)), ledger.FormatTime(at.Add(-by))
}
