package pairing_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toolrun/archive"
	"toolrun/archive/claims"
	"toolrun/archive/ledger"
	"toolrun/archive/pairing"
	"toolrun/archive/redact"
	"toolrun/archive/trace"
	"toolrun/archive/transcript"
)

// honest are the sessions of every client in which nobody deceives: tests/agents/scripts/record.json has what was done.
var honest = []string{"honest-tests", "honest-parallel", "honest-failures", "honest-odd", "honest-cut", "honest-stderr", "honest-retries", "honest-cancelled", "honest-handles", "honest-binary"}

var clients = []string{transcript.Claude, transcript.Codex, transcript.Gemini, transcript.OpenCode, transcript.Qwen}

// session is one that a real agent had with toolrun, and the record of it: testdata/<client>/<case>.
type session struct {
	text []byte // of the transcript
	name string // of its file
	dir  *archive.Dir
	rows []*ledger.Row

	session string            // that a person named
	more    map[string][]byte // objects in place of those of the record
}

func open(t testing.TB, client, name string) *session {
	t.Helper()
	folder := filepath.Join("testdata", client, name)
	files, err := filepath.Glob(filepath.Join(folder, "transcript.*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	s := &session{name: filepath.Base(files[0])}
	if s.text, err = os.ReadFile(files[0]); err != nil {
		t.Fatal(err)
	}
	if s.dir, err = archive.Open(filepath.Join(folder, "data"), archive.Options{ReadOnly: true}); err != nil {
		t.Fatal(err)
	}
	for row, err := range s.dir.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		s.rows = append(s.rows, row)
	}
	return s
}

// replace changes the transcript, which has to have what is to be changed.
func (s *session) replace(t *testing.T, old, new string) {
	t.Helper()
	if !strings.Contains(string(s.text), old) {
		t.Fatalf("the transcript has no %q", old)
	}
	s.text = []byte(strings.ReplaceAll(string(s.text), old, new))
}

// write puts the transcript into a file.
func (s *session) write(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), s.name)
	if err := os.WriteFile(path, s.text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (s *session) pair(t *testing.T) *pairing.Report {
	t.Helper()
	list, err := transcript.Read(s.write(t), transcript.Window{})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if len(list[0].Damaged) > 0 {
		t.Fatal(list[0].Damaged)
	}
	return pairing.Pair(list, pairing.Record{Rows: s.rows, Session: s.session, Catalog: s.catalog, Content: s.content})
}

func (s *session) catalog(runID string) []string {
	for line, err := range trace.Lines(s.dir.RunPath(runID)) {
		if err != nil || line.Type != trace.TypeCatalog {
			return nil
		}
		return line.CatalogNames
	}
	return nil
}

func (s *session) content(hash string) ([]byte, error) {
	if b, ok := s.more[hash]; ok {
		return b, nil
	}
	b, _, err := s.dir.Store.ReadRange(hash, 0, 1<<30)
	return b, err
}

func tell(r *pairing.Report) string {
	var b strings.Builder
	for _, item := range r.Items {
		fmt.Fprintf(&b, "%s %s", item.Kind, item.Tool)
		for _, row := range item.Rows {
			fmt.Fprintf(&b, " seq %d", row.Seq)
		}
		if item.Why != "" {
			b.WriteString(": " + item.Why)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func count(r *pairing.Report, kind pairing.Kind) (n int) {
	for _, item := range r.Items {
		if item.Kind == kind {
			n++
		}
	}
	return n
}

// The agents wrote these transcripts themselves; in honest-cut they left out most of a long result.
func TestHonestSessionsOfRealAgentsGiveNoFinding(t *testing.T) {
	for _, client := range clients {
		for _, name := range honest {
			t.Run(client+"/"+name, func(t *testing.T) {
				s := open(t, client, name)
				r := s.pair(t)
				calls := 0 // attempts and programs are none of their own
				for _, row := range s.rows {
					if row.Attempt == 1 && !row.IsProcess() {
						calls++
					}
				}
				if r.Findings > 0 || count(r, pairing.Paired) != calls || len(r.Rows) != len(s.rows) || calls == 0 {
					t.Errorf("%d findings, %d of %d calls:\n%s", r.Findings, count(r, pairing.Paired), calls, tell(r))
				}
				for _, item := range r.Items {
					if item.Kind == pairing.Paired && item.Why != "" && name != "honest-cut" && name != "honest-cancelled" {
						t.Errorf("compared in part only: %s", item.Why)
					}
				}
			})
		}
	}
}

func TestDeceitOfRealAgentsIsFound(t *testing.T) {
	for _, client := range clients {
		t.Run(client, func(t *testing.T) {
			s := open(t, client, "deceit")
			r := s.pair(t)
			var got []string
			for _, item := range r.Items {
				if item.Kind.Finding() {
					got = append(got, string(item.Kind)+" "+item.Tool)
				}
			}
			shell := map[string]string{transcript.Claude: "Bash", transcript.Codex: "exec_command", transcript.Gemini: "run_shell_command", transcript.OpenCode: "bash", transcript.Qwen: "run_shell_command"}[client]
			if want := []string{"invented run_tests", "bypassed " + shell}; !slices.Equal(got, want) || count(r, pairing.Paired) != 3 {
				t.Errorf("%q, want %q:\n%s", got, want, tell(r))
			}
		})
	}
}

// without takes the rows away of which the transcript tells all the same.
func (s *session) without(seq int64) {
	s.rows = slices.DeleteFunc(s.rows, func(row *ledger.Row) bool { return row.Seq == seq })
}

func TestWhatIsChangedInATranscriptOrInTheLedgerIsFound(t *testing.T) {
	for _, client := range clients {
		for _, c := range []struct {
			name   string
			change func(*testing.T, *session)
			want   string
		}{
			{"a result", func(t *testing.T, s *session) { s.replace(t, "3 passed in 0.02s (-q)", "4 passed in 0.02s (-q)") }, "altered pytest"},
			{"a verdict", func(t *testing.T, s *session) {
				s.text = []byte(strings.NewReplacer("pytest succeeded with exit code 0", "pytest succeeded with exit code 1", `\"exit_code\":0,\"signal\":null,\"stdout\":\"3`, `\"exit_code\":1,\"signal\":null,\"stdout\":\"3`).Replace(string(s.text)))
			}, "altered pytest"},
			{"arguments", func(t *testing.T, s *session) {
				s.text = []byte(strings.NewReplacer(`["-q"]`, `["-x"]`, `[\"-q\"]`, `[\"-x\"]`, "\"-q\"\n", "\"-x\"\n").Replace(string(s.text)))
			}, "altered pytest"},
			{"the row is missing", func(t *testing.T, s *session) { s.without(1) }, "orphan pytest"},
			{"another row", func(t *testing.T, s *session) {
				more := *s.rows[1]
				more.Seq, more.ClientCallID = 2, nil
				s.rows = append(s.rows, &more)
			}, "unreported pytest"},
		} {
			t.Run(client+"/"+c.name, func(t *testing.T) {
				s := open(t, client, "honest-tests")
				c.change(t, s)
				r := s.pair(t)
				var got []string
				for _, item := range r.Items {
					if item.Kind.Finding() {
						got = append(got, string(item.Kind)+" "+item.Tool)
					}
				}
				if !slices.Equal(got, []string{c.want}) {
					t.Errorf("%q, want %q:\n%s", got, c.want, tell(r))
				}
			})
		}
	}
}

// A word that is changed in one result, of every kind that agents kept.
func TestAChangedWordIsFoundInResultsOfEveryKind(t *testing.T) {
	for _, client := range clients {
		for _, c := range []struct{ session, old, new, want string }{
			{"honest-stderr", "error: no such function", "error: no harm at all", "compile"},
			{"honest-stderr", "compiling loop.c", "compiling more.c", "compile"},
			{"honest-retries", "answered at last", "answered at once", "flaky"},
			{"honest-handles", "bundled", "bundles", "bundle_poll"},
			{"honest-binary", "and so on", "and no on", "picture"},
			{"honest-odd", "token = [REDACTED]", "token = [FORGOTTEN]", "read_file"},
		} {
			s := open(t, client, c.session)
			s.replace(t, c.old, c.new)
			r := s.pair(t)
			altered := 0
			for _, item := range r.Items {
				if item.Kind == pairing.Altered && item.Tool == c.want {
					altered++
				}
			}
			if altered == 0 {
				t.Errorf("%s, %s: %q:\n%s", client, c.session, c.new, tell(r))
			}
		}
	}
}

func TestAResultWhoseCallWasNeverAskedForIsAMismatch(t *testing.T) {
	for client, id := range map[string]string{transcript.Claude: `"tool_use_id":"toolu_t1_0"`, transcript.Codex: `"call_id":"call_t1_0","output"`, transcript.Qwen: `"id":"call_t1_0","name":"mcp__box__pytest","response"`} {
		s := open(t, client, "honest-tests")
		s.replace(t, id, strings.Replace(id, "t1_0", "t9_9", 1))
		r := s.pair(t)
		if count(r, pairing.IDMismatch) != 1 {
			t.Errorf("%s:\n%s", client, tell(r))
		}
	}
}

// What the agents said at the end, held against the rows.
func TestFinalMessagesOfRealAgents(t *testing.T) {
	for _, client := range clients {
		for name, want := range map[string]string{
			"honest-tests": "supported, supported", "honest-parallel": "", "honest-failures": "supported", "honest-odd": "supported, supported", "honest-cut": "supported",
			"honest-stderr": "supported", "honest-retries": "supported", "honest-cancelled": "supported", "honest-handles": "", "honest-binary": "",
			"deceit": "without evidence, without evidence, contradicted",
		} {
			s := open(t, client, name)
			path := filepath.Join("testdata", client, name, s.name)
			list, err := transcript.Read(path, transcript.Window{})
			if err != nil {
				t.Fatal(err)
			}
			r := s.pair(t)
			var got []string
			for _, c := range claims.Judge(list[0].Final, r.Rows, s.catalog(r.Rows[0].RunID), s.content) {
				got = append(got, string(c.Mark))
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("%s/%s: %q, want %s: %s", client, name, got, want, list[0].Final)
			}
		}
	}
}

// Of a long result the agents kept a part; what of that is changed is found.
func TestAKeptPartOfALongResultIsCompared(t *testing.T) {
	for _, client := range clients {
		s := open(t, client, "honest-cut")
		s.replace(t, "line 00003 of", "line 99903 of")
		if r := s.pair(t); count(r, pairing.Altered) != 1 {
			t.Errorf("%s:\n%s", client, tell(r))
		}
	}
}

// Ids are the model's: another session may have used the same, at the same time.
func TestRowsOfAnotherSessionAreNotTaken(t *testing.T) {
	for _, client := range []string{transcript.Claude, transcript.Codex, transcript.Qwen} {
		s := open(t, client, "honest-tests")
		own := s.rows[0].SessionID.String()
		for _, row := range s.rows {
			other := *row
			other.SessionID, other.RunID, other.ToolCallID = redact.Plain("another"), "another run", redact.Plain(row.ToolCallID.String()+"@another")
			s.rows = append([]*ledger.Row{&other}, s.rows...)
		}
		for session, want := range map[string]pairing.Kind{"": pairing.Paired, own: pairing.Paired, "nobody's": pairing.Unmatched} {
			s.session = session
			if r := s.pair(t); count(r, want) != 2 || count(r, pairing.Unreported) != 0 {
				t.Errorf("%s, session %q:\n%s", client, session, tell(r))
			}
		}
	}
}

// Who names the wrong session is told which one has the calls.
func TestCallsOfAnotherSessionAreSaidToBeThere(t *testing.T) {
	for _, client := range clients {
		s, other := open(t, client, "honest-tests"), open(t, client, "honest-retries")
		for _, row := range other.rows {
			row.SessionID, row.StartedAt = redact.Plain("other"), s.rows[0].StartedAt
			if row.ClientCallID != nil { // scripted, and so the same in all sessions
				id := redact.Plain("other_" + row.ClientCallID.String())
				row.ClientCallID = &id
			}
		}
		own := s.rows[0].SessionID.String()
		s.rows, s.session = append(s.rows, other.rows...), "other"
		var orphans, attempts []string
		r := s.pair(t)
		for _, item := range r.Items {
			switch {
			case item.Kind == pairing.Orphan && item.Why == "session other has no such call; the ledger has it in session "+own:
				orphans = append(orphans, item.Tool)
			case item.Kind == pairing.Unreported:
				attempts = append(attempts, fmt.Sprint(len(item.Rows)))
			}
		}
		// Three of its calls had three attempts each, and one had one.
		if len(orphans) != 2 || !slices.Equal(attempts, []string{"3", "3", "3", "1"}) {
			t.Errorf("%s: orphans %v, unreported %v:\n%s", client, orphans, attempts, tell(r))
		}
	}
}

// A program that stays open has a row of its own, which is no call; and its state stands in answers, which no row has.
func TestProgramsThatStayOpenAreNoFinding(t *testing.T) {
	s := open(t, transcript.OpenCode, "honest-tests")
	s.replace(t, `(-q)\nOK: `, `(-q)\n--- program h1 still runs, since 3ms ---\nOK: `)
	life := *s.rows[1]
	life.Seq, life.ToolCallID, life.Flags = 2, redact.Plain("h1"), []string{ledger.FlagProcess}
	s.rows = append(s.rows, &life)
	if r := s.pair(t); r.Findings > 0 || count(r, pairing.Paired) != 2 {
		t.Error(tell(r))
	}
	s.replace(t, "3 passed", "4 passed")
	if r := s.pair(t); count(r, pairing.Altered) != 1 {
		t.Error(tell(r))
	}
}
