package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
)

// question is a subcommand that answers about several rows, and how many of them its --json speaks.
type question struct {
	args  []string
	count func(t *testing.T, got ran) int
}

// questions are all that answer about the rows of session s, which all have failed.
func questions() map[string]question {
	lines := func(_ *testing.T, got ran) int { return strings.Count(got.stdout, "\n") }
	calls := func(t *testing.T, got ran) (n int) {
		for _, v := range jsonLinesOf[struct{ Calls int }](t, got) {
			n += v.Calls
		}
		return n
	}
	return map[string]question{
		"sessions":     {[]string{"sessions"}, calls},
		"session s":    {[]string{"session", "s"}, lines},
		"session":      {[]string{"session"}, lines},
		"errors":       {[]string{"errors"}, lines},
		"errors s":     {[]string{"errors", "s"}, lines},
		"cost":         {[]string{"cost"}, calls},
		"cost s month": {[]string{"cost", "s", "--by", "month"}, calls},
		"slow":         {[]string{"slow", "--over", "0s"}, lines},
		"timeline s":   {[]string{"timeline", "s"}, lines},
		"sql": {[]string{"sql", "SELECT COUNT(*) AS calls FROM tool_calls"}, func(t *testing.T, got ran) int {
			list := jsonLinesOf[struct{ Calls int }](t, got)
			if len(list) != 1 {
				t.Fatal(got)
			}
			return list[0].Calls
		}},
	}
}

// hotAndSealed runs a test on a ledger as it is, and when its months are sealed.
func hotAndSealed(t *testing.T, p *place, test func(t *testing.T)) {
	t.Helper()
	p.damaged = true // what is checked at the end knows nothing of archives
	t.Run("hot", test)
	p.archived(0)
	if hot, err := os.ReadFile(filepath.Join(p.data, "ledger.jsonl")); err != nil || len(hot) > 0 {
		t.Fatalf("not all is sealed: %v\n%s", err, hot)
	}
	os.Remove(filepath.Join(p.data, "index.db"))
	t.Run("sealed", test)
}

func TestRangesAreHalfOpenInEveryQuestionAndZone(t *testing.T) {
	t.Parallel()
	p := barePlace(t, "")
	h := newPast(p)
	var calls []pastCall
	for i, at := range []string{"2025-01-15T10:00:00.000Z", "2025-01-15T10:00:00.500Z", "2025-01-15T10:00:01.000Z"} {
		calls = append(calls, pastCall{at: timeOf(t, at), id: fmt.Sprint("call", i), session: "s", stderr: "no\n"})
	}
	h.run(calls...)
	hotAndSealed(t, p, func(t *testing.T) {
		for _, c := range []struct {
			zone, since, until string
			want               int
		}{
			{"UTC", "2025-01-15T10:00:00.000Z", "2025-01-15T10:00:00.000Z", 0},
			{"UTC", "2025-01-15T10:00:00.000Z", "2025-01-15T10:00:00.500Z", 1},
			{"Asia/Tokyo", "2025-01-15T10:00:00.500Z", "", 2},
			{"UTC", "2025-01-15T10:00:00.501Z", "", 1},
			{"America/Los_Angeles", "2025-01-15T10:00:01.000Z", "2025-01-15T10:00:01.001Z", 1},
			{"Asia/Tokyo", "2025-01-15", "2025-01-16", 3},
			{"UTC", "2025-01-16", "", 0},
			{"America/Los_Angeles", "2025-01-15T19:00:00.5+09:00", "2025-01-15T05:00:01-05:00", 1},
			{"UTC", "36500d", "1d", 3},
		} {
			for name, q := range questions() {
				if name != "session s" && name != "sql" && c.want != 2 && c.since != "2025-01-15T10:00:00.000Z" {
					continue // what there is more to say of times is said of these two
				}
				args := append(slices.Clone(q.args), "--json", "--data", p.data)
				for flag, value := range map[string]string{"--since": c.since, "--until": c.until} {
					if value != "" {
						args = append(args, flag, value)
					}
				}
				cmd := exec.Command(toolrun, args...)
				cmd.Dir, cmd.Env = p.root, append(slices.Clone(p.env), "TZ="+c.zone)
				got := finish(t, cmd)
				if got.code != 0 || q.count(t, got) != c.want {
					t.Errorf("%s [%s, %s) in %s: status %d, want %d of\n%s%s", name, c.since, c.until, c.zone, got.code, c.want, got.stdout, got.stderr)
				}
			}
		}
		for _, since := range []string{"2025-01-15T10:00:00.500Z", "2025-01-15T10:00:00.501Z"} {
			want := map[string]int{"2025-01-15T10:00:00.500Z": 0, "2025-01-15T10:00:00.501Z": 1}[since]
			if got := p.query("show", "call1", "--since", since); got.code != want {
				t.Errorf("show --since %s: %+v", since, got)
			}
		}
		if got := p.query("errors", "--since", "2025-01-16", "--until", "2025-01-15"); got.code != 2 || !strings.Contains(got.stderr, "--until 2025-01-15 is before --since 2025-01-16") {
			t.Errorf("a range that ends before it begins: %+v", got)
		}
	})
}

// TestSessionIsMeantByTheBeginningOfItsIdAndAWrongNameIsAnError: an empty answer would say that all is well with it.
func TestSessionIsMeantByTheBeginningOfItsIdAndAWrongNameIsAnError(t *testing.T) {
	t.Parallel()
	p := barePlace(t, "")
	var calls []pastCall
	for i := range 12 {
		session := "alpha"
		if i%2 == 1 {
			session = "alps"
		}
		calls = append(calls, pastCall{at: time.Date(2025, 1, 15, 10, 0, i, 0, time.UTC), id: fmt.Sprint("call", i), session: session, stderr: "no\n"})
	}
	newPast(p).run(calls...)
	for _, args := range [][]string{{"sessions"}, {"session"}, {"errors"}, {"cost"}, {"slow", "--over", "0s"}, {"timeline"}, {"check", "--since", "2025-01-01"},
		{"sql", "SELECT session_id, COUNT(*) FROM tool_calls"}, {"prove", "--tool", "nothing"}} {
		want := p.query(append(args, "--json", "--session", "alpha")...)
		if got := p.query(append(args, "--json", "--session", "alph")...); got != want || want.stdout == "" {
			t.Errorf("%v of alph: %+v, of alpha: %+v", args, got, want)
		}
		status := 1
		if args[0] == "prove" {
			status = 3
		}
		for name, says := range map[string]string{"al": `several sessions begin with "al"`, "beta": `no calls of session "beta"`} {
			if got := p.query(append(args, "--session", name)...); got.code != status || got.stdout != "" || !strings.Contains(got.stderr, says) {
				t.Errorf("%v of %s: %+v", args, name, got)
			}
		}
	}
	for _, command := range []string{"session", "errors", "cost", "slow", "timeline"} {
		if got := p.query(command, ""); got.code != 2 {
			t.Errorf("%s of an empty name: %+v", command, got)
		}
	}
}

func TestDamagedLineIsNamedByEveryQuestionAndTheRestIsAnswered(t *testing.T) {
	t.Parallel()
	p := barePlace(t, "")
	h := newPast(p)
	var calls []pastCall
	for i := range 10 {
		calls = append(calls, pastCall{at: time.Date(2025, 1, 15, 10, 0, i, 0, time.UTC), id: fmt.Sprint("call", i), session: "s", out: fmt.Sprintln("output", i), stderr: "no\n"})
	}
	run := h.run(calls...)
	// It was written badly: nobody has signed anything else.
	path := filepath.Join(p.data, "ledger.jsonl")
	lines := bytes.SplitAfter([]byte(readFile(t, path)), []byte("\n"))
	lines[5] = append([]byte(`{"tool_call_id":"call5","session_id":"s","tu`), '\n')
	if err := os.WriteFile(path, bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	// The sixth call has no row, so that its run is not said to be open or dead.
	os.Remove(filepath.Join(p.data, "live", run))
	file := path
	hotAndSealed(t, p, func(t *testing.T) {
		named := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(file) + `:6: `)
		for _, indexed := range []bool{false, true} {
			for name, q := range questions() {
				if indexed && name != "sql" && !strings.HasSuffix(name, " s") {
					continue // it does not look at the index
				}
				got := p.query(append(q.args, "--json")...)
				if got.code != 3 || !named.MatchString(got.stderr) || q.count(t, got) != 9 {
					t.Errorf("%s: status %d, want 9 of\n%s%s", name, got.code, got.stdout, got.stderr)
				}
				if indexed {
					continue
				}
				if got := p.query(q.args...); got.code != 3 || len(named.FindAllString(got.stderr, -1)) != 1 || got.stdout == "" {
					t.Errorf("%s for people: status %d\n%s%s", name, got.code, got.stdout, got.stderr)
				}
				if got := p.query(append(q.args, "--csv")...); got.code != 3 || !named.MatchString(got.stderr) || !strings.Contains(got.stdout, "\n") {
					t.Errorf("%s as CSV: status %d\n%s%s", name, got.code, got.stdout, got.stderr)
				}
			}
			for _, c := range []struct {
				want string
				args []string
			}{
				{"call9", []string{"show", "call9"}}, {"output 9\n", []string{"output", "call9"}}, {"output 9\n", []string{"tail", "call9"}},
				{"9 calls", []string{"report"}}, {"9", []string{"sql", "SELECT MAX(seq) FROM tool_calls"}},
			} {
				if got := p.query(c.args...); got.code != 3 || !named.MatchString(got.stderr) || !strings.Contains(got.stdout, c.want) {
					t.Errorf("%v: status %d\n%s%s", c.args, got.code, got.stdout, got.stderr)
				}
			}
		}
		file = filepath.Join(p.data, "archive", "2025-01", "ledger.jsonl.zst")
	})
}

// theRow is a row that tests change.
func theRow(seq int) *fullRow {
	at := time.Date(2025, 1, 15, 10, 0, seq, 0, time.UTC)
	id := fmt.Sprint("call", seq)
	return &fullRow{
		ToolCallID: id, SessionID: "s", ToolName: "say", RiskClass: ptr("READ"), Status: "success", Attempt: 1, StartedAt: stampOf(at), EndedAt: stampOf(at),
		InputSummary: "{}", InputHash: sha256Hex("{}"), OutputHash: ptr(sha256Hex("")), Seq: seq, RunID: "10000000-0000-4000-8000-000000000000", ClientCallID: &id,
		CatalogSHA256: sha256Hex("catalog"), SchemaSHA256: ptr(sha256Hex("schema")), DefinitionSHA256: ptr(sha256Hex("definition")), Known: true, Flags: []string{},
		Outcome: "ok", ExitCode: ptr(0), Argv: []string{"say"}, Enforced: walls, Client: ptr("past/1"), SessionFrom: "env",
	}
}

// row appends a row to the ledger, without a trace.
func (h *past) row(r *fullRow) { h.append("ledger.jsonl", append([]byte(toJSON(r)), '\n')) }

func TestLargeNumbersAndNULReachSQLDigitForDigit(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `
[tools.big]
description = "A test."
command = ["printf", 'a\0b', ["{n}"], ["{m}"]]
risk = "READ"
[tools.big.params.n]
type = "integer"
[tools.big.params.m]
type = "integer"
`)
	numbers := `{"m":9007199254740993,"n":18446744073709551615}`
	if got := p.run("call", "big", "--json", numbers); got.code != 0 {
		t.Fatal(got)
	}
	for range 2 { // loaded, and there already
		have := answerTo[struct{ Args, Out, Type string }](p, 0, "sql", "SELECT input_summary AS args, output_summary AS out, typeof(input_summary) AS type FROM tool_calls")
		if len(have) != 1 || have[0].Args != numbers || have[0].Out != `a\u0000b` || have[0].Type != "text" {
			t.Errorf("%+v", have)
		}
	}
	if got := p.query("sql", "--csv", "SELECT json_extract(argv, '$[2]'), json_extract(argv, '$[3]') FROM tool_calls"); !strings.HasSuffix(got.stdout, "\n18446744073709551615,9007199254740993\n") {
		t.Errorf("argv: %+v", got)
	}
	if got := p.query("show", p.rows()[0].ToolCallID); !strings.Contains(got.stdout, numbers) || !strings.Contains(got.stdout, `a\x00b`) {
		t.Errorf("show: %+v", got)
	}
}

func TestSealedNumbersAreThoseOfTheRow(t *testing.T) {
	t.Parallel()
	p := barePlace(t, "")
	h := newPast(p)
	r := theRow(0)
	r.InputSummary, r.OutputSummary = `{"m":9007199254740993,"n":18446744073709551615}`, "a\x00b"
	r.InputHash, r.OutputHash = h.object(r.InputSummary), ptr(h.object("a\x00b"))
	h.row(r)
	hotAndSealed(t, p, func(t *testing.T) {
		have := answerTo[struct{ Args, Out string }](p, 0, "sql", "SELECT input_summary AS args, output_summary AS out FROM tool_calls")
		if len(have) != 1 || have[0].Args != r.InputSummary || have[0].Out != `a\u0000b` {
			t.Errorf("%+v", have)
		}
	})
}

func TestLoadingAgainAndAfterAKillCountsEachRowOnce(t *testing.T) {
	t.Parallel()
	p := barePlace(t, "")
	p.damaged = true
	h := newPast(p)
	rows := 0
	add := func(n int) {
		var lines []byte
		for range n {
			lines = append(append(lines, toJSON(theRow(rows))...), '\n')
			rows++
		}
		h.append("ledger.jsonl", lines)
	}
	counted := func(when string) {
		t.Helper()
		have := p.sql("SELECT COUNT(*), COUNT(DISTINCT tool_call_id), MAX(seq) + 1 FROM tool_calls")
		if want := fmt.Sprint(rows); !slices.Equal(have[0], []string{want, want, want}) {
			t.Errorf("%s: %v, want %s rows", when, have[0], want)
		}
	}
	db := filepath.Join(p.data, "index.db")
	// killed starts a load and kills it when a file is there, or lets it end.
	killed := func(file string) {
		t.Helper()
		cmd := exec.Command(toolrun, "sql", "SELECT 1", "--data", p.data)
		cmd.Env = p.env
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { cmd.Wait(); close(ended) }()
		for {
			if info, err := os.Stat(file); err == nil && info.Size() > 0 {
				cmd.Process.Kill()
				<-ended
				return
			}
			select {
			case <-ended:
				return
			default:
			}
		}
	}
	add(20000)
	counted("loaded")
	counted("loaded again")
	add(5)
	counted("five new rows")
	for range 3 {
		os.Remove(db)
		killed(db + ".new")
		counted("killed while it was made anew")
		add(3000)
		killed(db + "-journal")
		counted("killed while it was extended")
	}
}

func TestAClockThatSteppedBackChangesNoOrder(t *testing.T) {
	t.Parallel()
	p := barePlace(t, "")
	h := newPast(p)
	first, second := theRow(0), theRow(1)
	first.StartedAt, first.EndedAt = "2025-01-15T10:00:05.000Z", "2025-01-15T10:00:05.000Z"
	h.row(first)
	h.row(second) // began at 10:00:01
	hotAndSealed(t, p, func(t *testing.T) {
		for _, args := range [][]string{{"session", "s"}, {"timeline", "s"}, {"slow", "--over", "0s"}} {
			if got := idsOf(t, p.query(append(args, "--json")...).stdout); !slices.Equal(got, []string{"call0", "call1"}) {
				t.Errorf("%v: %v", args, got)
			}
		}
		if got := p.query("timeline", "s"); !strings.HasPrefix(got.stdout, "session s · 2025-01-15T10:00:01.000Z to 2025-01-15T10:00:05.000Z · 4.0s\n") || !strings.Contains(got.stdout, "✓  +4.0s") {
			t.Errorf("timeline: %+v", got)
		}
		type summary struct {
			First string `json:"first_at"`
			Last  string `json:"last_at"`
		}
		if got := answerTo[summary](p, 0, "sessions"); len(got) != 1 || got[0] != (summary{"2025-01-15T10:00:01.000Z", "2025-01-15T10:00:05.000Z"}) {
			t.Errorf("sessions: %+v", got)
		}
	})
}

// hostile is what no terminal may be sent: a title, a cleared screen, a carriage return, a reversed text, a row of its own.
const hostile = "x\x1b]0;pwned\x07\x1b[2J\r\u202egpj\u2066\u200b\x7f\u009b\nfake row"

// unprintable are the characters of a text that no terminal may be sent, and that JSON has as escapes.
func unprintable(text string) (found []string) {
	for _, r := range text {
		if r != '\n' && (!unicode.IsPrint(r) || unicode.Is(unicode.Bidi_Control, r)) {
			found = append(found, fmt.Sprintf("%U", r))
		}
	}
	return found
}

func TestNothingStoredReachesATerminalRaw(t *testing.T) {
	t.Parallel()
	p := barePlace(t, "")
	h := newPast(p)
	const rows = 3
	for i := range rows {
		r := theRow(i)
		id := fmt.Sprintf("call%d%s", i, hostile)
		r.ToolCallID, r.ClientCallID, r.SessionID, r.ToolName = id, ptr("mine"+id), "s"+hostile, "say"+hostile
		r.Status, r.Outcome, r.ErrorType, r.ErrorMessage, r.ExitCode = "error", "exit", ptr("ExitError"), ptr(hostile), ptr(1)
		r.InputSummary, r.OutputSummary, r.DurationMS = `{"a":"`+hostile+`"}`, hostile, 9000
		r.InputHash, r.OutputHash, r.StderrHash = h.object(r.InputSummary), ptr(h.object(hostile)), ptr(h.object(hostile))
		r.Model, r.Provider, r.Client, r.Role = ptr(hostile), ptr(hostile), ptr(hostile), ptr(hostile)
		r.ParentCallID, r.RepeatOf, r.Repeat = ptr(hostile), ptr(hostile), 1
		r.Argv, r.ExePath, r.Cwd = []string{"say", hostile}, ptr("/bin/"+hostile), ptr("/"+hostile)
		r.RiskClass, r.ApprovalStatus = ptr("SEND"), ptr("autonomous")
		h.row(r)
	}
	one := "call1"
	lists := map[string]struct {
		args  []string
		lines int // of a table
	}{
		"sessions": {[]string{"sessions"}, 2}, "session": {[]string{"session"}, rows + 2}, "errors": {[]string{"errors"}, rows + 2},
		"cost": {[]string{"cost"}, 3}, "cost by session": {[]string{"cost", "--by", "session"}, 3}, "cost by model": {[]string{"cost", "--by", "model"}, 3},
		"slow": {[]string{"slow"}, rows + 1}, "timeline": {[]string{"timeline"}, rows + 2}, "show": {[]string{"show", one}, 0},
		"sql": {[]string{"sql", "SELECT tool_name, error_message FROM tool_calls"}, rows + 1}, "view": {[]string{"sql", "SELECT tool_call_id, input_summary FROM autonomous_calls"}, rows + 1},
	}
	hotAndSealed(t, p, func(t *testing.T) {
		for name, q := range lists {
			if strings.HasSuffix(t.Name(), "sealed") && name != "session" && name != "show" && name != "sql" {
				continue // they print what they printed
			}
			table, asCSV, asJSON := p.query(q.args...), p.query(append(q.args, "--csv")...), p.query(append(q.args, "--json")...)
			text, code := p.onTerminal(400, q.args...)
			jsonText, jsonCode := p.onTerminal(400, append(q.args, "--json")...)
			if table.code+asCSV.code+asJSON.code+code+jsonCode != 0 {
				t.Errorf("%s: status %d %d %d %d %d\n%s", name, table.code, asCSV.code, asJSON.code, code, jsonCode, table.stderr)
			}
			text = sgr.ReplaceAllString(text, "") // ours; theirs has none
			for form, text := range map[string]string{"table": table.stdout, "CSV": asCSV.stdout, "JSON": asJSON.stdout, "terminal": text, "JSON on a terminal": jsonText} {
				if found := unprintable(text); len(found) > 0 {
					t.Errorf("%s, %s has raw %v\n%q", name, form, found, text)
				}
				if strings.Contains(text, "\nfake row") {
					t.Errorf("%s, %s: a row of its own\n%s", name, form, text)
				}
			}
			for form, text := range map[string]string{"table": table.stdout, "terminal": text} {
				if n := strings.Count(text, "\n"); q.lines > 0 && n != q.lines && !(form == "terminal" && n > q.lines && strings.HasPrefix(text, "session s")) {
					t.Errorf("%s, %s has %d lines, want %d\n%s", name, form, n, q.lines, text)
				}
			}
			for line := range strings.Lines(asJSON.stdout) {
				if !json.Valid([]byte(line)) {
					t.Errorf("%s: no JSON: %s", name, line)
				}
			}
		}
		if got := p.query("session", "--json"); !strings.Contains(got.stdout, toEscaped(hostile)) {
			t.Errorf("the value of JSON is another: %s", got.stdout)
		}
		if got := p.query("report"); len(unprintable(got.stdout)) > 0 {
			t.Errorf("report has raw %v", unprintable(got.stdout))
		}
		// The bytes themselves come into a pipe, and to a terminal only where they are asked for.
		if got := p.query("output", one); got.stdout != hostile {
			t.Errorf("output into a pipe: %q", got.stdout)
		}
		if got, _ := p.onTerminal(80, "output", one); len(unprintable(got)) > 0 || !strings.Contains(got, "x\\x1b]0;pwned\\x07") {
			t.Errorf("output on a terminal: %q", got)
		}
		if got, _ := p.onTerminal(80, "output", one, "--raw"); got != hostile {
			t.Errorf("output --raw: %q", got)
		}
		for _, args := range [][]string{{"tail", one}, {"tail", one, "--json"}} {
			got := p.query(args...)
			text, _ := p.onTerminal(80, args...)
			for _, text := range []string{got.stdout, got.stderr, text} {
				if found := unprintable(text); len(found) > 0 {
					t.Errorf("%v has raw %v: %q", args, found, text)
				}
			}
		}
		if got := p.query("show", hostile); got.code != 1 || len(unprintable(got.stderr)) > 0 {
			t.Errorf("an id that is not there: %+v", got)
		}
		if got := p.query("show", "call"); got.code != 1 || len(unprintable(got.stderr)) > 0 || strings.Count(got.stderr, "\n") != rows+1 {
			t.Errorf("an id that several begin with: %+v", got)
		}
	})
}

// toEscaped is a text inside of a JSON string of toolrun's.
func toEscaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
