package tests

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// jsonLinesOf are the objects that a subcommand printed.
func jsonLinesOf[T any](t testing.TB, got ran) (list []T) {
	t.Helper()
	for line := range strings.Lines(got.stdout) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v: %.200s\n%s", err, line, got.stderr)
		}
		list = append(list, v)
	}
	return list
}

// answer runs a question with --json that must end with a status.
func answerTo[T any](p *place, code int, args ...string) []T {
	p.t.Helper()
	got := p.query(append(args, "--json")...)
	if got.code != code {
		p.t.Errorf("%v: status %d, want %d\n%s", args, got.code, code, got.stderr)
	}
	return jsonLinesOf[T](p.t, got)
}

// sql asks one statement; each row is its values in the order of the columns.
func (p *place) sql(statement string) (rows [][]string) {
	p.t.Helper()
	got := p.query("sql", statement, "--csv")
	if got.code != 0 {
		p.t.Fatalf("%s: status %d\n%s", statement, got.code, got.stderr)
	}
	for i, line := range strings.Split(strings.TrimSuffix(got.stdout, "\n"), "\n") {
		if i > 0 {
			rows = append(rows, strings.Split(line, ","))
		}
	}
	return rows
}

// halfSealed is the ledger of sixty sessions with its first month sealed.
func halfSealed(t *testing.T) (*place, *generated) {
	t.Helper()
	p := barePlace(t, "")
	p.damaged = true // what is checked at the end knows nothing of archives
	g := sixtySessions(p)
	p.query("sessions") // closes what the past left, which signs
	p.archived(0, "--month", "2025-01")
	if hot := p.rows(); len(hot) == 0 || len(hot) == len(g.rows) {
		t.Fatalf("%d of %d rows are hot", len(hot), len(g.rows))
	}
	return p, g
}

func TestFiveQuestionsHaveTheAnswersThatAreKnown(t *testing.T) {
	t.Parallel()
	p, g := halfSealed(t)
	if got := p.query("verify"); got.code != 0 {
		t.Fatalf("the generated ledger is not good: %s%s", got.stdout, got.stderr)
	}
	t.Run("what did the agent do", func(t *testing.T) { whatDidItDo(t, p, g) })
	t.Run("what did it cost", func(t *testing.T) { whatDidItCost(t, p, g) })
	t.Run("did it run the command or just say so", func(t *testing.T) { didItRun(t, p, g) })
	t.Run("why three tries", func(t *testing.T) { whyThreeTries(t, p, g) })
	t.Run("did a high-risk action run without approval", func(t *testing.T) { withoutApproval(t, p, g) })
}

func whatDidItDo(t *testing.T, p *place, g *generated) {
	type session struct {
		ID       string `json:"session_id"`
		Client   string `json:"client"`
		Calls    int    `json:"calls"`
		Failures int    `json:"failures"`
		Refusals int    `json:"refusals"`
		First    string `json:"first_at"`
		Last     string `json:"last_at"`
	}
	var want []session
	for _, s := range g.sessions {
		w := session{ID: s.id, Client: s.client, First: s.rows[0].StartedAt}
		for _, r := range s.rows {
			w.Calls++
			w.Last = max(w.Last, r.EndedAt)
			switch r.Status {
			case "blocked":
				w.Refusals++
			case "error", "timeout", "retry":
				w.Failures++
			}
		}
		want = append(want, w)
	}
	if have := answerTo[session](p, 0, "sessions"); !slices.Equal(have, want) {
		t.Errorf("sessions\n%v\n%v", have, want)
	}
	for _, n := range []int{0, 13, 29, 30, 47, 59} { // of both months
		s := g.sessions[n]
		if have := answerTo[fullRow](p, 0, "session", s.id); toJSON(have) != toJSON(s.rows) {
			t.Errorf("session %d\n%s\n%s", n, toJSON(have), toJSON(s.rows))
		}
		have := p.sql("SELECT seq, tool_name, status, exit_code FROM tool_calls WHERE session_id = '" + s.id + "' ORDER BY seq")
		var want [][]string
		for _, r := range s.rows {
			want = append(want, []string{fmt.Sprint(r.Seq), r.ToolName, r.Status, strings.ReplaceAll(toJSON(r.ExitCode), "null", "")})
		}
		if !slices.EqualFunc(have, want, slices.Equal) {
			t.Errorf("session %d by SQL\n%v\n%v", n, have, want)
		}
	}
	failed := 0
	percent := map[string][2]int{}
	for _, r := range g.rows {
		n := percent[r.ToolName]
		n[0]++
		if r.Status == "error" {
			n[1]++
		}
		percent[r.ToolName] = n
		if r.Status == "error" || r.Status == "timeout" || r.Status == "retry" {
			failed++
		}
	}
	if have := len(answerTo[fullRow](p, 0, "errors")); have != failed {
		t.Errorf("%d errors, want %d", have, failed)
	}
	// As people have asked such ledgers before.
	have := p.sql("SELECT tool_name, COUNT(*), ROUND(100.0 * SUM(CASE WHEN status = 'error' THEN 1 ELSE 0 END) / COUNT(*), 1) FROM tool_calls GROUP BY tool_name ORDER BY tool_name")
	var rates [][]string
	for _, tool := range slices.Sorted(maps.Keys(percent)) {
		n := percent[tool]
		rates = append(rates, []string{tool, fmt.Sprint(n[0]), fmt.Sprint(math.Round(1000*float64(n[1])/float64(n[0])) / 10)})
	}
	if !slices.EqualFunc(have, rates, slices.Equal) {
		t.Errorf("error percentage\n%v\n%v", have, rates)
	}
}

// money is what some calls cost.
type money struct {
	Key    string  `json:"key"`
	Calls  int     `json:"calls"`
	Priced int     `json:"priced"`
	In     int     `json:"input_tokens"`
	Out    int     `json:"output_tokens"`
	USD    float64 `json:"estimated_cost_usd"`
}

func (m *money) add(r *fullRow) {
	m.Calls++
	if r.EstimatedCostUSD != nil {
		m.Priced++
		m.In += *r.InputTokens
		m.Out += *r.OutputTokens
		m.USD = math.Round((m.USD+*r.EstimatedCostUSD)*1e6) / 1e6
	}
}

func whatDidItCost(t *testing.T, p *place, g *generated) {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	keys := map[string]func(r *fullRow) string{
		"day": func(r *fullRow) string { return r.StartedAt[:10] }, "month": func(r *fullRow) string { return r.StartedAt[:7] },
		"provider": func(r *fullRow) string { return text(r.Provider) }, "model": func(r *fullRow) string { return text(r.Model) },
		"session": func(r *fullRow) string { return r.SessionID },
	}
	sums := func(rows []*fullRow, key func(*fullRow) string) (list []money) {
		by := map[string]*money{}
		for _, r := range rows {
			if by[key(r)] == nil {
				by[key(r)] = &money{Key: key(r)}
			}
			by[key(r)].add(r)
		}
		for _, k := range slices.Sorted(maps.Keys(by)) {
			list = append(list, *by[k])
		}
		return list
	}
	for by, key := range keys {
		if have, want := answerTo[money](p, 0, "cost", "--by", by), sums(g.rows, key); !slices.Equal(have, want) {
			t.Errorf("cost by %s\n%v\n%v", by, have, want)
		}
	}
	if have := p.query("cost").stdout; !strings.Contains(strings.Join(strings.Fields(have), " "), " ollama 0.00 ") {
		t.Errorf("a local provider has no 0.00:\n%s", have)
	}
	s := g.sessions[35]
	if have, want := answerTo[money](p, 0, "cost", s.id), sums(s.rows, keys["provider"]); !slices.Equal(have, want) {
		t.Errorf("cost of a session\n%v\n%v", have, want)
	}
	have := p.sql("SELECT DATE(started_at), provider, COUNT(*), SUM(input_tokens), SUM(output_tokens), ROUND(SUM(estimated_cost_usd), 6) FROM tool_calls GROUP BY DATE(started_at), provider")
	var want [][]string
	for _, m := range sums(g.rows, func(r *fullRow) string { return r.StartedAt[:10] + "," + text(r.Provider) }) {
		line := strings.Split(m.Key, ",")
		if m.Priced == 0 {
			line = append(line, fmt.Sprint(m.Calls), "", "", "")
		} else {
			line = append(line, fmt.Sprint(m.Calls, " ", m.In, " ", m.Out, " ", m.USD))
			line = append(line[:2], strings.Fields(line[2])...)
		}
		want = append(want, line)
	}
	if !slices.EqualFunc(have, want, slices.Equal) {
		t.Errorf("by day and provider\n%v\n%v", have, want)
	}
}

func didItRun(t *testing.T, p *place, g *generated) {
	ask := func(s *genSession, more ...string) ran {
		return p.query(append([]string{"prove", "--session", s.id, "--exit", "0"}, more...)...)
	}
	key := filepath.Join(p.data, "checkpoint.pub")
	for _, n := range []int{0, 5} { // of either month
		s := g.of(testsPass)[n]
		got := ask(s, "--tool", "pytest")
		file := filepath.Join(t.TempDir(), "receipt")
		if err := os.WriteFile(file, []byte(got.stdout), 0o600); err != nil {
			t.Fatal(err)
		}
		checked := p.query("verify", file, "--key", key)
		if got.code != 0 || checked.code != 0 || !strings.Contains(checked.stdout, s.id) {
			t.Errorf("it ran: %+v\n%+v", got, checked)
		}
		if got := ask(g.of(testsFail)[n], "--tool", "pytest"); got.code != 3 || got.stdout != "" || !strings.Contains(got.stderr, "it ended with exit, exit 1") {
			t.Errorf("it ran and failed: %+v", got)
		}
		if got := ask(g.of(testsUnrun)[n], "--tool", "pytest"); got.code != 3 || got.stdout != "" {
			t.Errorf("it did not run: %+v", got)
		}
		masked := g.of(maskedTests)[n]
		if got := ask(masked, "--tool", "sh", "--arg", "script=pytest*"); got.code != 3 || !strings.Contains(got.stderr, "masked by its shell") {
			t.Errorf("it ran in a shell that masks how it ended: %+v", got)
		}
		if got := ask(masked, "--tool", "sh", "--arg", "script=pytest*", "--allow-shell"); got.code != 0 {
			t.Errorf("it ran in a shell, which is enough for who asks: %+v", got)
		}
	}
	var want [][]string
	for _, s := range g.sessions {
		if s.kind == testsPass {
			want = append(want, []string{s.id})
		}
	}
	if have := p.sql("SELECT session_id FROM tool_calls WHERE tool_name = 'pytest' AND exit_code = 0 ORDER BY seq"); !slices.EqualFunc(have, want, slices.Equal) {
		t.Errorf("sessions whose tests passed\n%v\n%v", have, want)
	}
}

func whyThreeTries(t *testing.T, p *place, g *generated) {
	var want [][]string
	for _, s := range g.of(threeTries) {
		want = append(want, []string{s.id})
	}
	if have := p.sql("SELECT DISTINCT session_id FROM tool_calls WHERE attempt > 1 ORDER BY seq"); !slices.EqualFunc(have, want, slices.Equal) {
		t.Errorf("sessions with more than one attempt\n%v\n%v", have, want)
	}
	if have := p.sql("SELECT session_id, retries FROM retries_by_session"); len(have) != len(want) || have[0][1] != "2" {
		t.Errorf("retries by session: %v", have)
	}
	for _, s := range []*genSession{g.of(threeTries)[0], g.of(threeTries)[5]} {
		i := slices.IndexFunc(s.rows, func(r *fullRow) bool { return r.Status == "retry" })
		id := s.rows[i].ToolCallID
		for n := range 3 {
			got := p.query("show", s.rows[i+n].ToolCallID)
			for m, why := range []string{"↻ exit, exit code 75 (retry) after 900ms, " + id, "↻ timeout, signal SIGKILL (retry) after 2m00s, " + id + "#2", "✓ ok, exit code 0 after 800ms, " + id + "#3"} {
				line := fmt.Sprintf("%d of 3: %s", m+1, why)
				if m == n {
					line += " (this one)"
				}
				if got.code != 0 || !strings.Contains(got.stdout, " "+line+"\n") {
					t.Errorf("show attempt %d does not say %q: %d\n%s%s", n+1, line, got.code, got.stdout, got.stderr)
				}
			}
		}
	}
	// Where the agent tried again by itself each row names the one before.
	s := g.of(agentsTries)[1]
	third := s.rows[len(s.rows)-2]
	if got := p.query("show", third.ToolCallID); !strings.Contains(got.stdout, "2 of "+*third.RepeatOf+", which failed") {
		t.Errorf("the agent's third try: %s%s", got.stdout, got.stderr)
	}
	if have := p.sql("SELECT COUNT(*) FROM tool_calls WHERE repeat = 2"); have[0][0] != "6" {
		t.Errorf("third tries of agents: %v", have)
	}
}

func withoutApproval(t *testing.T, p *place, g *generated) {
	var ids []string
	for _, r := range g.rows {
		if r.ApprovalStatus != nil && *r.ApprovalStatus == "autonomous" {
			ids = append(ids, r.ToolCallID)
		}
	}
	slices.Sort(ids)
	for what, statement := range map[string]string{
		"as people ask": "SELECT tool_call_id FROM tool_calls WHERE risk_class = 'DESTRUCTIVE' AND approval_status = 'autonomous' ORDER BY 1",
		"the view":      "SELECT tool_call_id FROM autonomous_calls ORDER BY 1",
	} {
		var have []string
		for _, row := range p.sql(statement) {
			have = append(have, row[0])
		}
		if !slices.Equal(have, ids) {
			t.Errorf("%s\n%v\n%v", what, have, ids)
		}
	}
	var have []string
	for _, f := range answerTo[struct {
		Rule string `json:"rule"`
		Call string `json:"tool_call_id"`
	}](p, 3, "check", "--since", "2025-01-01") {
		if f.Rule == "autonomous" {
			have = append(have, f.Call)
		}
	}
	if slices.Sort(have); !slices.Equal(have, ids) {
		t.Errorf("check\n%v\n%v", have, ids)
	}
	say := func(kind genKind, at int, want ...string) {
		s := g.of(kind)[2]
		got := p.query("show", s.rows[len(s.rows)-at].ToolCallID)
		for _, w := range want {
			if !strings.Contains(got.stdout, w) {
				t.Errorf("show does not say %q\n%s%s", w, got.stdout, got.stderr)
			}
		}
	}
	say(autonomous, 2, "rm_tree, DESTRUCTIVE\n", "\napproval           autonomous\n")
	say(approved, 2, "\napproval           approved\nallowed by         toolrun allow or deny, user 1000, /dev/pts/3, process 4242, /usr/local/bin/toolrun\n", "8.2s for a free slot or an approval")
	say(declined, 2, "\napproval           denied\ndeclined by        toolrun allow or deny, user 1000", "⊘ declined (blocked)", "not on a Friday")
}

// show names the line of the file where a row stands, sealed or hot, and the line is the row.
func TestShowNamesTheLineOfARow(t *testing.T) {
	t.Parallel()
	p, g := halfSealed(t)
	for _, row := range []*fullRow{g.rows[0], g.rows[77], g.rows[len(g.rows)-80], g.rows[len(g.rows)-1]} {
		got := p.query("show", row.ToolCallID)
		m := regexp.MustCompile(`(?m)^ledger +(\S+):(\d+), seq (\d+), run `).FindStringSubmatch(got.stdout)
		if m == nil || m[3] != fmt.Sprint(row.Seq) {
			t.Errorf("show %s: %+v", row.ToolCallID, got)
			continue
		}
		text := []byte(nil)
		if file := filepath.Join(p.data, m[1]); strings.HasSuffix(file, ".zst") {
			text = unpacked(t, file)
		} else {
			text = []byte(readFile(t, file))
		}
		n, _ := strconv.Atoi(m[2])
		if lines := strings.Split(string(text), "\n"); n < 1 || n > len(lines) || lines[n-1] != toJSON(row) {
			t.Errorf("%s:%d is not the row of %s", m[1], n, row.ToolCallID)
		}
	}
}

// Each table is pinned at a terminal of 80 and of 140 columns, where no line is wider than that, and in a pipe, where nothing
// is cut and nothing coloured.
func TestTablesAreAsTheyAreOnATerminalAndInAPipe(t *testing.T) {
	t.Parallel()
	p, g := halfSealed(t)
	tried, push := g.of(threeTries)[5], g.of(approved)[4]
	tables := map[string][]string{
		"sessions":        {"sessions"},
		"session":         {"session"},
		"session_tries":   {"session", tried.id[:8]},
		"session_refused": {"session", g.of(invented)[3].id},
		"errors":          {"errors", "--since", "2025-02-05"},
		"errors_session":  {"errors", "--session", g.of(declined)[5].id, "--refused"},
		"cost":            {"cost"},
		"cost_day":        {"cost", "--by", "day"},
		"cost_month":      {"cost", "--by", "month"},
		"cost_model":      {"cost", "--by", "model"},
		"cost_session":    {"cost", "--by", "session", "--until", "2025-01-07"},
		"slow":            {"slow"},
		"slow_none":       {"slow", "--over", "1h"},
		"timeline":        {"timeline", g.of(testsPass)[5].id},
		"timeline_tries":  {"timeline", tried.id},
		"show":            {"show", g.of(testsFail)[5].rows[2].ToolCallID},
		"show_attempts":   {"show", tried.rows[slices.IndexFunc(tried.rows, func(r *fullRow) bool { return r.Attempt == 2 })].ToolCallID},
		"show_approved":   {"show", push.rows[len(push.rows)-2].ToolCallID},
		"output":          {"output", g.of(testsPass)[5].rows[0].ToolCallID},
		"tail":            {"tail", g.of(testsFail)[5].rows[2].ToolCallID},
		"check":           {"check", "--since", "2025-01-01", "--until", "2025-01-07"},
		"sql_rates":       {"sql", "SELECT * FROM tool_failure_rates"},
		"sql_spend":       {"sql", "SELECT * FROM daily_spend WHERE day < '2025-01-08'"},
		"sql_retries":     {"sql", "SELECT * FROM retries_by_session"},
		"sql_autonomous":  {"sql", "SELECT * FROM autonomous_calls"},
		"sql_row":         {"sql", "SELECT * FROM tool_calls WHERE seq = 250"},
	}
	for name, args := range tables {
		want := map[string]int{"check": 3}[name]
		pipe := finish(t, p.asking(args...))
		if pipe.code != want {
			t.Errorf("%s: status %d\n%s", name, pipe.code, pipe.stderr)
			continue
		}
		if strings.Contains(pipe.stdout, "\x1b") || strings.Contains(pipe.stdout, "…") {
			t.Errorf("%s: colours or a cut in a pipe", name)
		}
		golden(t, "answers/"+name+".pipe", pipe.stdout)
		for _, columns := range []int{80, 140} {
			text, code := p.onTerminal(columns, args...)
			if code != want {
				t.Errorf("%s in %d columns: status %d", name, columns, code)
			}
			golden(t, fmt.Sprintf("answers/%s.%d", name, columns), strings.ReplaceAll(text, "\x1b", "␛"))
			for line := range strings.Lines(text) {
				// A hash, an id and a path are not broken.
				if n := columnsOf(strings.TrimSuffix(line, "\n")); n > columns && len(strings.Fields(sgr.ReplaceAllString(line, ""))) > 2 {
					t.Errorf("%s: %d columns of %d: %s", name, n, columns, line)
				}
			}
		}
	}
	// What a command is handed on a terminal is what a pipe gets.
	mail := filepath.Join(p.root, "mail")
	p.onTerminal(80, append(tables["check"], "--exec", "cat >"+mail)...)
	golden(t, "answers/check.pipe", readFile(t, mail))
}
