package query_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toolrun/archive"
	"toolrun/archive/ledger"
	"toolrun/archive/query"
	"toolrun/archive/redact"
)

// day is 2026-11-30T10:00:00Z.
var day = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)

// fill makes a directory with these rows; each is changed from one that a good call has.
func fill(t *testing.T, rows ...func(*ledger.Row)) *archive.Dir {
	t.Helper()
	d, err := archive.Open(filepath.Join(t.TempDir(), "data"), archive.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for i, change := range rows {
		row := &ledger.Row{
			ToolCallID: redact.Plain(fmt.Sprint("call_", i)), SessionID: redact.Plain("s"), ToolName: redact.Plain("echo"), Status: ledger.StatusSuccess,
			StartedAt: ledger.FormatTime(day), EndedAt: ledger.FormatTime(day),
		}
		change(row)
		if err := d.Ledger.Append(row); err != nil {
			t.Fatal(err)
		}
	}
	read, err := archive.Open(d.Path(), archive.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func at(offset time.Duration) func(*ledger.Row) {
	return func(r *ledger.Row) {
		r.StartedAt, r.EndedAt = ledger.FormatTime(day.Add(offset)), ledger.FormatTime(day.Add(offset+time.Second))
	}
}

func damage(t *testing.T, d *archive.Dir, line int) {
	t.Helper()
	path := filepath.Join(d.Path(), ledger.FileName)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(b), "\n")
	lines[line-1] = "\xff" + lines[line-1][1:]
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
}

func ids(t *testing.T, d *archive.Dir, f query.Filter) string {
	t.Helper()
	var list []string
	for row, err := range query.Rows(d, f) {
		if err != nil {
			list = append(list, "!"+strings.TrimPrefix(err.Error(), filepath.Join(d.Path(), "ledger.")))
			continue
		}
		list = append(list, strings.TrimPrefix(row.ToolCallID.String(), "call_"))
	}
	return strings.Join(list, " ")
}

func TestRangesAreHalfOpen(t *testing.T) {
	d := fill(t, at(0), at(500*time.Millisecond), at(time.Second))
	for _, c := range []struct{ since, until, want string }{
		{"", "", "0 1 2"},
		{"2026-11-30T10:00:00.000Z", "2026-11-30T10:00:00.000Z", ""},
		{"2026-11-30T10:00:00.000Z", "2026-11-30T10:00:00.500Z", "0"},
		{"2026-11-30T10:00:00.500Z", "2026-11-30T10:00:01.000Z", "1"},
		{"2026-11-30T10:00:01.000Z", "", "2"},
		{"2026-11-30T10:00:01.001Z", "", ""},
		{"", "2026-11-30T10:00:01Z", "0 1"},
		{"2026-11-30T11:00:00.500+01:00", "", "1 2"},
		{"2026-11-30T10:00:00.4999Z", "2026-11-30T10:00:00.5001Z", "1"},
		{"2026-11-30T10:00:00.5001Z", "2026-11-30T10:00:01.0000001Z", "2"},
		{"2026-11-30", "2026-12-01", "0 1 2"},
		{"2026-12-01", "", ""},
		{"7d", "", "0 1 2"},
		{"2h", "1h", ""},
		{"30h", "", "0 1 2"},
	} {
		var f query.Filter
		for text, end := range map[string]*time.Time{c.since: &f.Since, c.until: &f.Until} {
			if text == "" {
				continue
			}
			var err error
			if *end, err = query.ParseTime(text, day.Add(24*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		if c.since != "" && c.since == c.until {
			f.Since = f.Until
		}
		if got := ids(t, d, f); got != c.want {
			t.Errorf("[%s, %s): %q, want %q", c.since, c.until, got, c.want)
		}
	}
}

// What is printed can be put in again, in any zone of the reader.
func TestPrintedTimeFindsItsRow(t *testing.T) {
	d := fill(t, at(0), at(123*time.Millisecond))
	local := time.Local
	defer func() { time.Local = local }()
	for _, zone := range []string{"UTC", "Pacific/Kiritimati", "America/Los_Angeles"} {
		if loc, err := time.LoadLocation(zone); err == nil {
			time.Local = loc
		}
		since, err := query.ParseTime("2026-11-30T10:00:00.123Z", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if got := ids(t, d, query.Filter{Since: since}); got != "1" {
			t.Errorf("%s: %q", zone, got)
		}
		if midnight, err := query.ParseTime("2026-11-30", time.Now()); err != nil || !midnight.Equal(day.Add(-10*time.Hour)) {
			t.Errorf("%s: a date is %v, %v", zone, midnight, err)
		}
	}
}

func TestOtherTimesAreRefused(t *testing.T) {
	for _, s := range []string{"", "d", "-1d", "1.5d", "1w", "yesterday", "2026-11-30 10:00", "2026-13-01", "99999999d", "18446744073709551615s", "1d1h", "+1d"} {
		if got, err := query.ParseTime(s, day); err == nil {
			t.Errorf("%q is %v", s, got)
		}
	}
}

func TestDamagedLineIsNamedAndTheOthersAreFound(t *testing.T) {
	rows := make([]func(*ledger.Row), 10)
	for i := range rows {
		rows[i] = at(time.Duration(i) * time.Second)
	}
	d := fill(t, rows...)
	damage(t, d, 6)
	if got := ids(t, d, query.Filter{}); !strings.HasPrefix(got, "0 1 2 3 4 !jsonl:6: not valid JSON") || !strings.HasSuffix(got, " 6 7 8 9") {
		t.Error(got)
	}
	var damaged []string
	note := func(err error) { damaged = append(damaged, err.Error()) }
	sessions, err := query.Sessions(d, query.Filter{Session: "s"}, note)
	if err != nil || len(sessions) != 1 || sessions[0].Calls != 9 {
		t.Error(sessions, err)
	}
	row, err := query.Find(d, "call_9", note)
	if err != nil || row == nil || row.Seq != 9 {
		t.Error(row, err)
	}
	if row, err := query.Find(d, "call_5", note); row != nil || err != nil {
		t.Error(row, err)
	}
	if len(damaged) != 3 || !strings.Contains(damaged[2], "ledger.jsonl:6: ") {
		t.Errorf("%q", damaged)
	}
}

func TestCallIsFoundByItsExactID(t *testing.T) {
	d := fill(t, at(0), at(0), func(r *ledger.Row) { r.ToolCallID = redact.Plain("call_1#2") })
	for id, want := range map[string]int64{"call_1": 1, "call_1#2": 2, "call_": -1, "CALL_1": -1, "": -1} {
		row, err := query.Find(d, id, nil)
		if err != nil || (row == nil) != (want < 0) || row != nil && row.Seq != want {
			t.Errorf("%q: %v, %v", id, row, err)
		}
	}
}

func TestRowsThatNameAnObject(t *testing.T) {
	in, out, stderr := strings.Repeat("1", 64), strings.Repeat("2", 64), strings.Repeat("3", 64)
	d := fill(t, func(r *ledger.Row) { r.InputHash = in }, func(r *ledger.Row) { r.InputHash, r.OutputHash = in, ledger.OrNull(out) }, func(r *ledger.Row) { r.StderrHash = ledger.OrNull(stderr) })
	for hash, want := range map[string]string{in: "[0 1]", out: "[1]", stderr: "[2]", strings.Repeat("4", 64): "[]"} {
		rows, err := query.FindHash(d, hash, nil)
		seqs := []int64{}
		for _, row := range rows {
			seqs = append(seqs, row.Seq)
		}
		if fmt.Sprint(seqs) != want || err != nil {
			t.Errorf("%s: %v, %v", hash, seqs, err)
		}
	}
}

func TestSessionsAreSummarised(t *testing.T) {
	with := func(session, status string, offset time.Duration) func(*ledger.Row) {
		return func(r *ledger.Row) {
			at(offset)(r)
			r.SessionID, r.Status = redact.Plain(session), status
			if session == "b" {
				client := redact.Plain("codex/1")
				r.Client = &client
			}
		}
	}
	d := fill(t,
		with("b", ledger.StatusSuccess, 0), with("a", ledger.StatusBlocked, time.Second), with("b", ledger.StatusError, 2*time.Second),
		with("b", ledger.StatusTimeout, 3*time.Second), with("b", ledger.StatusRetry, 4*time.Second), with("b", ledger.StatusBlocked, -time.Hour),
	)
	got, err := query.Sessions(d, query.Filter{}, nil)
	want := []query.Session{
		{SessionID: "b", Client: "codex/1", FirstAt: "2026-11-30T09:00:00.000Z", LastAt: "2026-11-30T10:00:05.000Z", Calls: 5, Failures: 3, Refusals: 1, FirstSeq: 0, LastSeq: 5},
		{SessionID: "a", FirstAt: "2026-11-30T10:00:01.000Z", LastAt: "2026-11-30T10:00:02.000Z", Calls: 1, Refusals: 1, FirstSeq: 1, LastSeq: 1},
	}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("\n%v\n%v\n%v", got, want, err)
	}
	if got := ids(t, d, query.Filter{Session: "a"}); got != "1" {
		t.Error(got)
	}
	if got := ids(t, d, query.Filter{Tool: "ECHO"}); got != "" {
		t.Error(got)
	}
}

func TestDirectoryWithoutLedgerHasNoRows(t *testing.T) {
	dir := t.TempDir()
	d, err := archive.Open(dir, archive.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if sessions, err := query.Sessions(d, query.Filter{}, nil); err != nil || len(sessions) != 0 {
		t.Error(sessions, err)
	}
}

// TestRowsBehindAnEndAreThoseWrittenSince: also where the ledger had a torn end, which the next writer cuts off.
func TestRowsBehindAnEndAreThoseWrittenSince(t *testing.T) {
	for _, torn := range []string{"", `{"tool_call_id":"to`, strings.Repeat("\x00", 100_000)} {
		d := fill(t, at(0), at(time.Second))
		path := filepath.Join(d.Path(), ledger.FileName)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(text, torn...), 0o600); err != nil {
			t.Fatal(err)
		}
		end, err := query.End(d)
		if err != nil || end != int64(len(text)) {
			t.Fatalf("torn %.20q: end %d, want %d (%v)", torn, end, len(text), err)
		}
		w, err := archive.Open(d.Path(), archive.Options{})
		if err != nil {
			t.Fatal(err)
		}
		row := &ledger.Row{ToolCallID: redact.Plain("new"), Status: ledger.StatusSuccess, StartedAt: ledger.FormatTime(day), EndedAt: ledger.FormatTime(day)}
		if err := errors.Join(w.Ledger.Append(row), w.Close()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for row, err := range query.Behind(d, end) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, row.ToolCallID.String())
		}
		if strings.Join(got, " ") != "new" {
			t.Errorf("torn %.20q: behind the end are %q", torn, got)
		}
	}
}

// TestRowsBehindAnEndAreFoundWhateverIsSealedMeanwhile: rows before the end move in ledger.jsonl, and rows behind it may leave it.
func TestRowsBehindAnEndAreFoundWhateverIsSealedMeanwhile(t *testing.T) {
	september, october := at(-80*24*time.Hour), at(-50*24*time.Hour)
	d := fill(t, september, at(0))
	end, err := query.End(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		row   func(*ledger.Row) // is written
		month string            // is sealed then
		want  string
	}{
		{at(time.Second), "2026-09", "new_0"},
		{at(time.Second), "", "new_0 new_1"},
		{october, "2026-10", "call_0 call_1 new_0 new_1 new_2"},
	} {
		w, err := archive.Open(d.Path(), archive.Options{Now: func() time.Time { return day.Add(time.Hour) }})
		if err != nil {
			t.Fatal(err)
		}
		row := &ledger.Row{ToolCallID: redact.Plain("new_" + fmt.Sprint(strings.Count(step.want, "new_")-1)), Status: ledger.StatusSuccess}
		step.row(row)
		err = w.Ledger.Append(row)
		if err == nil && step.month != "" {
			_, err = w.Seal(t.Context(), archive.SealOptions{Month: step.month, Say: t.Logf})
		}
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for row, err := range query.Behind(d, end) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, row.ToolCallID.String())
		}
		if strings.Join(got, " ") != step.want {
			t.Errorf("%s sealed: behind the end are %q, not %q", step.month, got, step.want)
		}
	}
}
