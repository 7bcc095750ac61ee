package index_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"golang.org/x/sys/unix"

	"toolrun/archive"
	"toolrun/archive/index"
	"toolrun/archive/internal/skip"
	"toolrun/archive/joins"
	"toolrun/archive/ledger"
	"toolrun/archive/query"
	"toolrun/archive/redact"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// add appends rows call_<from> to call_<to-1> of two sessions, a second apart, each changed by change.
func add(t *testing.T, dir string, from, to int, change func(int, *ledger.Row)) {
	t.Helper()
	d, err := archive.Open(dir, archive.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for i := from; i < to; i++ {
		at := ledger.FormatTime(noon.Add(time.Duration(i) * time.Second))
		row := &ledger.Row{
			ToolCallID: redact.Plain(fmt.Sprint("call_", i)), SessionID: redact.Plain([]string{"even", "odd"}[i%2]), ToolName: redact.Plain("echo"),
			Status: ledger.StatusSuccess, Attempt: 1, StartedAt: at, EndedAt: at, Flags: []string{}, Enforced: []string{"view", "caps"}, Known: true,
		}
		if change != nil {
			change(i, row)
		}
		if err := d.Ledger.Append(row); err != nil {
			t.Fatal(err)
		}
	}
}

func reading(t *testing.T, dir string) *archive.Dir {
	t.Helper()
	d, err := archive.Open(dir, archive.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// ask brings the index up to date and answers one statement, a row a line, columns with | between them.
func ask(t *testing.T, dir, statement string, f index.Filter) string {
	t.Helper()
	answer, err := try(t, dir, statement, f)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return answer
}

func try(t *testing.T, dir, statement string, f index.Filter) (string, error) {
	t.Helper()
	x, err := index.Update(context.Background(), reading(t, dir), f.Range)
	if err != nil {
		return "", err
	}
	defer x.Close()
	db, err := index.Open(context.Background(), x, f)
	if err != nil {
		return "", err
	}
	defer db.Close()
	var lines []string
	for _, damage := range db.Damaged {
		lines = append(lines, "!"+strings.TrimPrefix(damage.Error(), dir+"/"))
	}
	for at := 0; strings.TrimSpace(statement[at:]) != ""; {
		rows, next, err := db.Query(statement, at)
		if err != nil {
			return "", err
		}
		for values, ok := rows.Next(); ok; values, ok = rows.Next() {
			var cells []string
			for _, v := range values {
				cells = append(cells, fmt.Sprint(v))
			}
			lines = append(lines, strings.Join(cells, "|"))
		}
		if err := rows.Close(); err != nil {
			return "", err
		}
		at = next
	}
	return strings.Join(lines, "\n"), nil
}

const counts = "SELECT COUNT(*), COUNT(DISTINCT tool_call_id), COUNT(DISTINCT seq) FROM tool_calls"

func TestEveryKeyIsAColumnInItsOrder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	add(t, dir, 0, 1, nil)
	x, err := index.Update(context.Background(), reading(t, dir), index.Range{})
	if err != nil {
		t.Fatal(err)
	}
	db, err := index.Open(context.Background(), x, index.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, _, err := db.Query("SELECT * FROM tool_calls", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if want := append(ledger.Keys(), "joined"); !slices.Equal(rows.Columns, want) {
		t.Errorf("%v\n%v", rows.Columns, want)
	}
}

func TestValuesAreThoseOfTheRow(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	add(t, dir, 0, 1, func(_ int, r *ledger.Row) {
		cost, exit := 0.25, 3
		r.EstimatedCostUSD, r.ExitCode, r.OutputBytes = &cost, &exit, 1<<62
		r.InputSummary = redact.Plain(`{"n":18446744073709551615,"m":9007199254740993}`)
		r.OutputSummary = redact.Plain("a\x00b \"\\ 日本\u2028")
	})
	for statement, want := range map[string]string{
		"SELECT input_summary FROM tool_calls":                                                                        `{"n":18446744073709551615,"m":9007199254740993}`,
		"SELECT output_summary FROM tool_calls":                                                                       "a\\u0000b \"\\ 日本\u2028",
		"SELECT known, truncated, pids_limit_hit FROM tool_calls":                                                     "1|0|<nil>",
		"SELECT enforced, flags, argv, connections FROM tool_calls":                                                   `["view","caps"]|[]|<nil>|<nil>`,
		"SELECT output_bytes, exit_code, estimated_cost_usd FROM tool_calls":                                          "4611686018427387904|3|0.25",
		"SELECT typeof(output_bytes), typeof(estimated_cost_usd), typeof(model), typeof(seq), joined FROM tool_calls": "integer|real|null|integer|0",
		"SELECT value FROM tool_calls, json_each(enforced)":                                                           "view\ncaps",
	} {
		if got := ask(t, dir, statement, index.Filter{}); got != want {
			t.Errorf("%s\n%q\n%q", statement, got, want)
		}
	}
}

func TestLoadingAgainLoadsWhatIsNewAndNothingTwice(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	add(t, dir, 0, 20, nil)
	for range 2 {
		if got := ask(t, dir, counts, index.Filter{}); got != "20|20|20" {
			t.Error(got)
		}
	}
	before, err := os.Stat(filepath.Join(dir, index.FileName))
	if err != nil {
		t.Fatal(err)
	}
	add(t, dir, 20, 25, nil)
	if got := ask(t, dir, counts, index.Filter{}); got != "25|25|25" {
		t.Error(got)
	}
	after, err := os.Stat(filepath.Join(dir, index.FileName))
	if err != nil || !os.SameFile(before, after) {
		t.Error("it was made anew", err)
	}
	// A row that is being written is not loaded, is told, and is loaded when it is whole.
	path := filepath.Join(dir, ledger.FileName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text[:len(text)-9], 0o600); err != nil {
		t.Fatal(err)
	}
	os.Remove(filepath.Join(dir, index.FileName))
	if got := ask(t, dir, counts, index.Filter{}); !strings.HasPrefix(got, "!ledger.jsonl:25: torn") || !strings.HasSuffix(got, "\n24|24|24") {
		t.Error(got)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, dir, counts, index.Filter{}); got != "25|25|25" {
		t.Error(got)
	}
}

func TestIndexThatDoesNotFitIsMadeAnew(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"deleted":   os.Remove,
		"empty":     func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"no SQLite": func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("nonsense", 9000)), 0o600) },
		"cut":       func(path string) error { return os.Truncate(path, 20000) },
		"damaged inside": func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteAt([]byte(strings.Repeat("x", 40000)), 4000)
			return err
		},
		"of another ledger": func(path string) error {
			other := filepath.Join(t.TempDir(), "other")
			add(t, other, 100, 140, nil)
			ask(t, other, counts, index.Filter{})
			b, err := os.ReadFile(filepath.Join(other, index.FileName))
			if err == nil {
				err = os.WriteFile(path, b, 0o600)
			}
			return err
		},
		"a journal of another": func(path string) error {
			return os.WriteFile(path+"-journal", []byte(strings.Repeat("nonsense", 100)), 0o600)
		},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		add(t, dir, 0, 30, nil)
		ask(t, dir, counts, index.Filter{})
		if err := spoil(filepath.Join(dir, index.FileName)); err != nil {
			t.Fatal(err)
		}
		if got := ask(t, dir, counts, index.Filter{}); got != "30|30|30" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestDamagedLinesAreToldEachTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	add(t, dir, 0, 10, nil)
	damage(t, dir, 6)
	for range 2 {
		got := ask(t, dir, counts, index.Filter{})
		if !strings.HasPrefix(got, "!ledger.jsonl:6: not valid JSON") || !strings.HasSuffix(got, "\n9|9|9") {
			t.Error(got)
		}
	}
}

func damage(t *testing.T, dir string, line int) {
	t.Helper()
	path := filepath.Join(dir, ledger.FileName)
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

func TestStatementThatDoesMoreThanReadIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	add(t, dir, 0, 3, nil)
	for _, statement := range []string{
		"DELETE FROM tool_calls", "UPDATE tool_calls SET status = 'success'", "INSERT INTO tool_calls (seq) VALUES (9)", "DROP TABLE tool_calls",
		"CREATE TABLE x (a)", "CREATE TEMP TABLE x (a)", "CREATE TEMP VIEW tool_calls AS SELECT 1", "ATTACH '" + filepath.Join(dir, "x.db") + "' AS x", "DETACH main",
		"PRAGMA user_version", "PRAGMA query_only = 0", "BEGIN", "SAVEPOINT a", "VACUUM", "VACUUM INTO '" + filepath.Join(dir, "y.db") + "'", "REINDEX", "ANALYZE",
		"SELECT * FROM pragma_journal_mode", "PRAGMA table_info(tool_calls); DELETE FROM tool_calls", "WITH a AS (SELECT 1) DELETE FROM tool_calls",
	} {
		if got, err := try(t, dir, statement, index.Filter{}); !errors.Is(err, index.ErrRefused) {
			t.Errorf("%s: %q, %v", statement, got, err)
		}
	}
	if got := ask(t, dir, counts, index.Filter{}); got != "3|3|3" {
		t.Error(got)
	}
	if _, err := try(t, dir, "SELECT load_extension('x')", index.Filter{}); err == nil {
		t.Error("an extension")
	}
	if got := ask(t, dir, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT SUM(i) FROM n", index.Filter{}); got != "10" {
		t.Error(got)
	}
}

// TestStatementThatNeedsMuchMemoryIsAnsweredOrToldSo: the library has 256 MiB, and panics where it needs more.
func TestStatementThatNeedsMuchMemoryIsAnsweredOrToldSo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	add(t, dir, 0, 1, nil)
	sorted := "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 300) " +
		"SELECT COUNT(*) FROM (SELECT i FROM n ORDER BY zeroblob(1 << 20) LIMIT 300 OFFSET 1)"
	if got := ask(t, dir, sorted, index.Filter{}); got != "299" {
		t.Errorf("a sort of 300 MiB: %q", got)
	}
	for _, statement := range []string{
		"SELECT printf('%.*c', 900000000, 'x')",
		"SELECT zeroblob(60000000), zeroblob(60000000), zeroblob(60000000), zeroblob(60000000), zeroblob(60000000), zeroblob(60000000), randomblob(60000000), randomblob(60000000), randomblob(60000000), randomblob(60000000), randomblob(60000000)",
	} {
		if answer, err := try(t, dir, statement, index.Filter{}); err == nil || !strings.HasPrefix(err.Error(), "sql: ") {
			t.Errorf("%.40s: %.40q, %v", statement, answer, err)
		}
	}
}

func TestAWrongStatementIsToldWithItsPlace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	add(t, dir, 0, 1, nil)
	for statement, want := range map[string]string{
		"SELECT tool_name FORM tool_calls":            `sql: line 1, column 23: near "tool_calls": syntax error`,
		"SELECT seq,\n  nosuch\nFROM tool_calls":      "sql: line 2, column 3: no such column: nosuch",
		"SELECT 'äöü' AS a, nosuch FROM tool_calls":   "sql: line 1, column 20: no such column: nosuch",
		"SELECT 1;\nSELECT 2;\n\nSELECT 3 FROM x y z": `sql: line 4, column 19: near "z": syntax error`,
		"SELECT (1": "sql: incomplete input",
	} {
		if got, err := try(t, dir, statement, index.Filter{}); err == nil || err.Error() != want {
			t.Errorf("%s: %q, %v, want %v", statement, got, err, want)
		}
	}
	if got := ask(t, dir, "SELECT name, type FROM pragma_table_info('tool_calls') LIMIT 3", index.Filter{}); got != "tool_call_id|TEXT\nsession_id|TEXT\nturn|INTEGER" {
		t.Error(got)
	}
}

func TestRangeAndSessionLeaveOutRowsOfTheViewsToo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	add(t, dir, 0, 10, nil)
	const calls = "SELECT (SELECT COUNT(*) FROM tool_calls), (SELECT calls FROM tool_failure_rates), (SELECT calls FROM daily_spend)"
	for want, f := range map[string]index.Filter{
		"10|10|10":      {},
		"5|5|5":         {Session: "odd"},
		"4|4|4":         {Range: index.Range{Since: noon.Add(2 * time.Second), Until: noon.Add(6 * time.Second)}},
		"2|2|2":         {Session: "odd", Range: index.Range{Since: noon.Add(2 * time.Second), Until: noon.Add(6 * time.Second)}},
		"7|7|7":         {Range: index.Range{Since: noon.Add(2*time.Second + time.Microsecond)}},
		"0|<nil>|<nil>": {Session: "o'dd"},
	} {
		if got := ask(t, dir, calls, f); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestViewsAnswerWhatOperatorsAsk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	add(t, dir, 0, 8, func(i int, r *ledger.Row) {
		provider, usd, in, out := redact.Plain("anthropic"), 0.5, int64(1000), int64(10)
		r.Provider, r.EstimatedCostUSD, r.InputTokens, r.OutputTokens = &provider, &usd, &in, &out
		switch i {
		case 1:
			r.Status = ledger.StatusError
		case 2:
			r.Attempt, r.ToolName = 2, redact.Plain("deploy")
			r.RiskClass, r.ApprovalStatus = "SEND", "autonomous"
		case 3:
			r.ToolName, r.RiskClass, r.ApprovalStatus = redact.Plain("deploy"), "SEND", "approved"
		case 4:
			provider := redact.Plain("ollama")
			zero := 0.0
			r.Provider, r.EstimatedCostUSD = &provider, &zero
		case 5:
			r.Status, r.Provider, r.EstimatedCostUSD = ledger.StatusBlocked, nil, nil
		}
	})
	for statement, want := range map[string]string{
		"SELECT * FROM tool_failure_rates":                     "deploy|2|0|0|0\necho|6|1|1|16.7",
		"SELECT * FROM daily_spend":                            "2026-11-30|<nil>|1|1000|10|<nil>\n2026-11-30|anthropic|6|6000|60|3\n2026-11-30|ollama|1|1000|10|0",
		"SELECT * FROM retries_by_session":                     "even|1|0|1",
		"SELECT tool_name, tool_call_id FROM autonomous_calls": "deploy|call_2",
		// As people ask such ledgers.
		"SELECT tool_name, ROUND(100.0 * SUM(CASE WHEN status = 'error' THEN 1 ELSE 0 END) / COUNT(*), 1) FROM tool_calls GROUP BY tool_name":                                                    "deploy|0\necho|16.7",
		"SELECT DATE(started_at), provider, COUNT(*), SUM(input_tokens + output_tokens), SUM(estimated_cost_usd) FROM tool_calls WHERE provider IS NOT NULL GROUP BY DATE(started_at), provider": "2026-11-30|anthropic|6|6060|3\n2026-11-30|ollama|1|1010|0",
		"SELECT session_id, COUNT(*) FROM tool_calls WHERE attempt > 1 GROUP BY session_id":                                                                                                      "even|1",
		"SELECT tool_call_id FROM tool_calls WHERE risk_class = 'DESTRUCTIVE' AND approval_status = 'autonomous'":                                                                                "",
	} {
		if got := ask(t, dir, statement, index.Filter{}); got != want {
			t.Errorf("%s\n%s\nwant\n%s", statement, got, want)
		}
	}
}

// What a row says itself is never replaced, and what is learned anew replaces what was learned.
func TestWhatWasLearnedLaterStandsWhereTheRowSaysNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	own := redact.Plain("own")
	add(t, dir, 0, 3, func(i int, r *ledger.Row) {
		if i == 1 {
			r.Model, r.Turn = &own, 7
		}
	})
	learn := func(model string, ids ...string) {
		var list []*joins.Join
		in := int64(5)
		m := redact.Plain(model)
		for _, id := range ids {
			list = append(list, &joins.Join{ToolCallID: redact.Plain(id), Turn: 2, Model: &m, InputTokens: &in})
		}
		if _, err := joins.Add(dir, list, noon); err != nil {
			t.Fatal(err)
		}
	}
	const said = "SELECT tool_call_id, turn, model, input_tokens, joined FROM tool_calls"
	if got, want := ask(t, dir, said, index.Filter{}), "call_0|0|<nil>|<nil>|0\ncall_1|7|own|<nil>|0\ncall_2|0|<nil>|<nil>|0"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	learn("a", "call_0", "call_1", "call_3")
	if got, want := ask(t, dir, said, index.Filter{}), "call_0|2|a|5|1\ncall_1|7|own|5|1\ncall_2|0|<nil>|<nil>|0"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	add(t, dir, 3, 4, nil)
	learn("b", "call_0")
	if got, want := ask(t, dir, said, index.Filter{}), "call_0|2|b|5|1\ncall_1|7|own|5|1\ncall_2|0|<nil>|<nil>|0\ncall_3|2|a|5|1"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	os.Remove(filepath.Join(dir, index.FileName))
	const learned = "call_0|2|b|5|1\ncall_1|7|own|5|1\ncall_3|2|a|5|1"
	if got := ask(t, dir, said+" WHERE joined = 1", index.Filter{}); got != learned {
		t.Error(got)
	}
	file := filepath.Join(dir, joins.FileName)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	bad := append([]byte("no join\n"), text...)
	if err := os.WriteFile(file, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second has nothing to load
		if got := ask(t, dir, said+" WHERE joined = 1", index.Filter{}); !strings.HasPrefix(got, "!joins.jsonl:1: ") || !strings.HasSuffix(got, "\n"+learned) {
			t.Errorf("with a damaged line:\n%s", got)
		}
	}
	os.Remove(file)
	if got, want := ask(t, dir, said, index.Filter{}), "call_0|0|<nil>|<nil>|0\ncall_1|7|own|<nil>|0\ncall_2|0|<nil>|<nil>|0\ncall_3|0|<nil>|<nil>|0"; got != want {
		t.Errorf("%s\nwant, with nothing learned any more\n%s", got, want)
	}
}

func TestSessionIsFoundByTheIndexAsByReadingAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	add(t, dir, 0, 50, nil)
	damage(t, dir, 6)
	seen := func() string {
		var list []string
		for row, err := range query.Rows(reading(t, dir), query.Filter{Session: "odd", Since: noon.Add(30 * time.Second)}) {
			if err != nil {
				list = append(list, err.Error())
				continue
			}
			list = append(list, row.ToolCallID.String())
		}
		return strings.Join(list, " ")
	}
	without := seen()
	ask(t, dir, counts, index.Filter{})
	if with := seen(); with != without || !strings.Contains(with, "ledger.jsonl:6: ") || !strings.Contains(with, "call_49") {
		t.Errorf("\n%s\n%s", with, without)
	}
	add(t, dir, 50, 60, nil)
	with := seen()
	found, err := find(t, dir, "odd")
	if err != nil || len(found.Rows) != 24 {
		t.Error(found, err)
	}
	os.Remove(filepath.Join(dir, index.FileName))
	if without := seen(); with != without || !strings.Contains(with, "call_59") {
		t.Errorf("\n%s\n%s", with, without)
	}
	// A row that somebody changed is not what the index says.
	ask(t, dir, counts, index.Filter{})
	path := filepath.Join(dir, ledger.FileName)
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(b), `"tool_call_id":"call_41","session_id":"odd"`, `"tool_call_id":"call_41","session_id":"ODD"`, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := find(t, dir, "odd"); !errors.Is(err, index.ErrNoIndex) || strings.Contains(seen(), "call_41") {
		t.Error(err)
	}
}

// TestSessionIsNotKeptWaitingByAnIndexThatIsInUse: reading the ledger is quicker than to wait for whoever holds it.
func TestSessionIsNotKeptWaitingByAnIndexThatIsInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	add(t, dir, 0, 10, nil)
	ask(t, dir, "SELECT 1", index.Filter{})
	path := filepath.Join(dir, index.FileName)
	c, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Exec("BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := find(t, dir, "odd"); !errors.Is(err, index.ErrNoIndex) || time.Since(began) > 30*time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	if err := c.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if found, err := find(t, dir, "odd"); err != nil || len(found.Rows) != 5 {
		t.Error(found, err)
	}
}

func find(t *testing.T, dir, session string) (*index.Found, error) {
	t.Helper()
	hot, err := ledger.OpenHot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer hot.Close()
	return index.Session(context.Background(), reading(t, dir), hot, session)
}

func TestSealedMonthIsLoadedWhenARangeReachesIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	month := func(m int) func(int, *ledger.Row) {
		return func(i int, r *ledger.Row) {
			r.StartedAt = fmt.Sprintf("2026-%02d-10T00:00:%02d.000Z", m, i%60)
			r.EndedAt = r.StartedAt
		}
	}
	add(t, dir, 0, 10, month(8))
	add(t, dir, 10, 20, month(9))
	seal := func(name string) {
		d, err := archive.Open(dir, archive.Options{Now: func() time.Time { return noon }})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if made, err := d.Seal(context.Background(), archive.SealOptions{Month: name}); err != nil || len(made) != 1 {
			t.Fatal(made, err)
		}
	}
	seal("2026-08")
	add(t, dir, 20, 25, nil)
	since := index.Filter{Range: index.Range{Since: time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)}}
	const all = "SELECT COUNT(*), COUNT(DISTINCT tool_call_id) FROM main.tool_calls"
	if got := ask(t, dir, all, since); got != "15|15" {
		t.Errorf("a month that is not reached: %s", got)
	}
	if got := ask(t, dir, all, index.Filter{}); got != "25|25" {
		t.Errorf("all months: %s", got)
	}
	if got := ask(t, dir, "SELECT COUNT(*) FROM tool_calls", since); got != "15" {
		t.Errorf("what is loaded and out of the range: %s", got)
	}
	before, _ := os.Stat(filepath.Join(dir, index.FileName))
	seal("2026-09") // its rows are loaded already
	add(t, dir, 25, 27, nil)
	if got := ask(t, dir, all, index.Filter{}); got != "27|27" {
		t.Error(got)
	}
	if after, _ := os.Stat(filepath.Join(dir, index.FileName)); !os.SameFile(before, after) {
		t.Error("made anew because a month was sealed")
	}
	os.Remove(filepath.Join(dir, index.FileName))
	hot := index.Filter{Range: index.Range{Hot: true}}
	if got := ask(t, dir, "SELECT COUNT(*) FROM tool_calls", hot); got != "7" {
		t.Errorf("what is hot: %s", got)
	}
	if got := ask(t, dir, all, index.Filter{}); got != "27|27" {
		t.Errorf("all, when what is hot was asked before: %s", got)
	}
	if got := ask(t, dir, "SELECT COUNT(*) FROM tool_calls", hot); got != "7" {
		t.Errorf("what is hot, with all months loaded: %s", got)
	}
	prune := func() {
		d, err := archive.Open(dir, archive.Options{Now: func() time.Time { return noon }})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		list, err := d.Prunable(time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC))
		if err := errors.Join(err, d.Prune(list)); err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
	}
	prune()
	if got := ask(t, dir, all, index.Filter{}); got != "17|17" {
		t.Errorf("with a month pruned: %s", got)
	}
	// Of another program, which had the index in WAL mode and died: it has rows as well.
	if err := os.WriteFile(filepath.Join(dir, index.FileName+"-wal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := index.Update(context.Background(), reading(t, dir), index.Range{})
	if err := errors.Join(err, index.Forget(dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := index.Open(context.Background(), x, index.Filter{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("removed since it was updated: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, index.FileName+"*")); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestDirectoryThatCannotBeWrittenIsAskedAllTheSame(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	add(t, dir, 0, 3, nil)
	os.Chmod(dir, 0o500)
	defer os.Chmod(dir, 0o700)
	if os.Getuid() == 0 { // who can write everywhere but on a medium that nobody can write
		for _, flags := range []uintptr{unix.MS_BIND, unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY} {
			if err := unix.Mount(dir, dir, "", flags, ""); err != nil {
				skip.For(t, err)
			}
			if flags == unix.MS_BIND {
				defer unix.Unmount(dir, unix.MNT_DETACH)
			}
		}
	}
	if got := ask(t, dir, counts, index.Filter{}); got != "3|3|3" {
		t.Error(got)
	}
}

// TestIndexInTheMakingIsNotTakenFromWhoeverMakesIt: its rename would fail, and with it the question.
func TestIndexInTheMakingIsNotTakenFromWhoeverMakesIt(t *testing.T) {
	dir := t.TempDir()
	making := filepath.Join(dir, index.FileName+".new")
	lock, err := os.Create(filepath.Join(dir, index.LockName))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := errors.Join(unix.Flock(int(lock.Fd()), unix.LOCK_EX), os.WriteFile(making, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	forgotten := make(chan error, 1)
	go func() { forgotten <- index.Forget(dir) }()
	select {
	case err := <-forgotten:
		t.Errorf("it did not wait: %v", err)
	case <-time.After(100 * time.Millisecond): // long enough to see one that does not wait
	}
	if err := os.Rename(making, filepath.Join(dir, index.FileName)); err != nil {
		t.Error(err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if !t.Failed() {
		if err := <-forgotten; err != nil {
			t.Error(err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, index.FileName+"*")); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
