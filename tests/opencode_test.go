package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
)

// exported is what `opencode export` printed of a session: its database and its older files have the same objects.
type exported struct {
	Info     map[string]json.RawMessage `json:"info"`
	Messages []struct {
		Info  map[string]json.RawMessage   `json:"info"`
		Parts []map[string]json.RawMessage `json:"parts"`
	} `json:"messages"`
}

func export(t testing.TB, x *told) (e exported) {
	t.Helper()
	text, err := os.ReadFile(x.transcript)
	if err == nil {
		err = json.Unmarshal(text, &e)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func str(raw json.RawMessage) (s string) {
	json.Unmarshal(raw, &s)
	return s
}

// openCodeTables are those of opencode 1.18 that hold what was said, without columns that tell nothing of it.
const openCodeTables = `CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, directory text NOT NULL, title text NOT NULL,
	time_created integer NOT NULL, time_updated integer NOT NULL);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL,
	CONSTRAINT fk_message FOREIGN KEY (session_id) REFERENCES session(id) ON DELETE CASCADE);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL,
	CONSTRAINT fk_part FOREIGN KEY (message_id) REFERENCES message(id) ON DELETE CASCADE);`

// openCodeDatabase makes a database as OpenCode has it: in WAL mode, with all that it says still in the -wal while it is open.
func openCodeDatabase(t testing.TB, path string) *sqlite3.Conn {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite3.Open("file:" + path)
	if err == nil {
		err = db.Exec("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;" + openCodeTables)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// insert puts a session into the database, under an id and as a part of another one.
func (e exported) insert(t testing.TB, db *sqlite3.Conn, id, parent string) {
	t.Helper()
	var at struct {
		Created, Updated int64
	}
	if err := json.Unmarshal(e.Info["time"], &at); err != nil {
		t.Fatal(err)
	}
	exec := func(query string, args ...any) {
		t.Helper()
		s, _, err := db.Prepare(query)
		if err != nil {
			t.Fatal(err)
		}
		for i, arg := range args {
			switch arg := arg.(type) {
			case string:
				err = s.BindText(i+1, arg)
			case int64:
				err = s.BindInt64(i+1, arg)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		s.Step()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	exec("INSERT INTO session VALUES (?, 'global', nullif(?, ''), '/home/dev', 'ok', ?, ?)", id, parent, at.Created, at.Updated)
	rest := func(o map[string]json.RawMessage) string {
		kept := map[string]json.RawMessage{}
		for k, v := range o {
			if k != "id" && k != "sessionID" && k != "messageID" {
				kept[k] = v
			}
		}
		return toJSON(kept)
	}
	for i, m := range e.Messages {
		of := id + str(m.Info["id"])
		exec("INSERT INTO message VALUES (?, ?, ?, ?, ?)", of, id, at.Created+int64(i), at.Updated, rest(m.Info))
		for _, p := range m.Parts {
			exec("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", id+str(p["id"]), of, id, at.Created, at.Updated, rest(p))
		}
	}
}

// files are the names and lengths of what is in a folder.
func files(t testing.TB, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprint(e.Name(), " ", info.Size()))
	}
	return list
}

func TestAuditFindsTheSessionInTheDatabaseOfOpenCode(t *testing.T) {
	t.Parallel()
	x := tell(t, "opencode", "honest-tests")
	folder := filepath.Join(x.home, ".local/share/opencode")
	path := filepath.Join(folder, "opencode.db")
	db := openCodeDatabase(t, path)
	export(t, x).insert(t, db, "ses_1", "")
	// A session of the same hour that never called toolrun, and one of long ago, which is not read.
	other := export(t, tell(t, "opencode", "deceit"))
	for i := range other.Messages {
		other.Messages[i].Parts = slices.DeleteFunc(other.Messages[i].Parts, func(p map[string]json.RawMessage) bool { return strings.HasPrefix(str(p["tool"]), "box_") })
	}
	other.insert(t, db, "ses_2", "")
	other.Info["time"] = json.RawMessage(`{"created":1,"updated":2}`)
	other.Messages[0].Info["role"] = json.RawMessage(`{`)
	if err := db.Exec("INSERT INTO session VALUES ('ses_0', 'global', NULL, '/', 'old', 1, 2); INSERT INTO message VALUES ('m', 'ses_0', 1, 2, '{')"); err != nil {
		t.Fatal(err)
	}

	before := files(t, folder)
	for _, args := range [][]string{{"audit"}, {"audit", path}, {"audit", "--session", x.session}} {
		out, status := x.toolrun(t, args...)
		if status != 0 || !strings.HasPrefix(out, "opencode "+path+" · 2 paired\n") || !strings.Contains(out, "supported") {
			t.Errorf("%v, while OpenCode runs: status %d\n%s", args, status, out)
		}
	}
	if after := files(t, folder); !slices.Equal(before, after) {
		t.Errorf("reading changed %v to %v", before, after)
	}

	// A copy without the -shm, and the file when all is in it.
	copied := filepath.Join(t.TempDir(), "opencode.db")
	for _, suffix := range []string{"", "-wal"} {
		text, err := os.ReadFile(path + suffix)
		if err == nil {
			err = os.WriteFile(copied+suffix, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{copied, path} {
		before := files(t, filepath.Dir(path))
		if out, status := x.toolrun(t, "audit", path); status != 0 || !strings.Contains(out, "2 paired") {
			t.Errorf("%s: status %d\n%s", path, status, out)
		}
		if after := files(t, filepath.Dir(path)); !slices.Equal(before, after) {
			t.Errorf("reading changed %v to %v", before, after)
		}
	}
}

func TestAuditPutsASubagentOfOpenCodeToItsSession(t *testing.T) {
	t.Parallel()
	x := tell(t, "opencode", "honest-tests")
	db := openCodeDatabase(t, filepath.Join(x.home, ".local/share/opencode/opencode.db"))
	// The session reads the file, and its subagent's subagent runs the tests.
	whole, own, sub := export(t, x), export(t, x), export(t, x)
	mine := func(tool string) func(map[string]json.RawMessage) bool {
		return func(p map[string]json.RawMessage) bool { return str(p["type"]) == "tool" && str(p["tool"]) != tool }
	}
	for i := range whole.Messages {
		own.Messages[i].Parts = slices.DeleteFunc(own.Messages[i].Parts, mine("box_read_file"))
		sub.Messages[i].Parts = slices.DeleteFunc(sub.Messages[i].Parts, mine("box_pytest"))
	}
	last := sub.Messages[len(sub.Messages)-1].Parts
	for i := range last {
		if last[i]["text"] != nil {
			last[i]["text"] = json.RawMessage(`"I deployed the release to production."`) // said to its agent only
		}
	}
	own.insert(t, db, "ses_a", "")
	exported{Info: sub.Info}.insert(t, db, "ses_b", "ses_a")
	sub.insert(t, db, "ses_c", "ses_b")
	for _, args := range [][]string{{"audit"}, {"audit", filepath.Join(x.home, ".local/share/opencode/opencode.db")}} {
		out, status := x.toolrun(t, args...)
		if status != 0 || !strings.Contains(out, "2 paired") || strings.Contains(out, "deployed") || strings.Count(out, "opencode.db") != 1 {
			t.Errorf("%v: status %d\n%s", args, status, out)
		}
	}
}

func TestAuditReadsTheFilesOfAnOlderOpenCode(t *testing.T) {
	t.Parallel()
	x := tell(t, "opencode", "honest-failures")
	e := export(t, x)
	storage := filepath.Join(x.home, ".local/share/opencode/storage")
	write := func(text string, parts ...string) {
		t.Helper()
		path := filepath.Join(append([]string{storage}, parts...)...) + ".json"
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		var spread bytes.Buffer
		if err := json.Indent(&spread, []byte(text), "", "  "); err != nil {
			spread = *bytes.NewBufferString(text)
		}
		if err := os.WriteFile(path, spread.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	session := str(e.Info["id"])
	write(toJSON(e.Info), "session", "global", session)
	for _, m := range e.Messages {
		write(toJSON(m.Info), "message", session, str(m.Info["id"]))
		for _, p := range m.Parts {
			write(toJSON(p), "part", str(m.Info["id"]), str(p["id"]))
		}
	}
	rows, _ := readRows(x.data)
	want := fmt.Sprintf("%d paired", len(rows))
	out, status := x.toolrun(t, "audit")
	if status != 0 || !strings.Contains(out, want) || !strings.Contains(out, session+".json") {
		t.Errorf("status %d, want %s\n%s", status, want, out)
	}
	write("{", "part", str(e.Messages[1].Info["id"]), "prt_zzz")
	if out, status := x.toolrun(t, "audit", filepath.Join(storage, "session", "global", session+".json")); status != 3 || !strings.Contains(out, want) {
		t.Errorf("with a damaged part: status %d, want %s\n%s", status, want, out)
	}
}

// An agent that is asked again later, and another session that was audited in between: what a transcript tells of its rows is
// shown all the same.
func TestSessionIsJoinedAlsoAfterAnother(t *testing.T) {
	t.Parallel()
	x := tell(t, "opencode", "honest-tests")
	db := openCodeDatabase(t, filepath.Join(x.home, ".local/share/opencode/opencode.db"))
	if err := os.WriteFile(filepath.Join(x.data, "joins.jsonl"), []byte(`{"tool_call_id":"another","turn":1,"model":null,"provider":null,"input_tokens":null,"output_tokens":null,"estimated_cost_usd":null,"source":"codex","joined_at":"2099-01-01T00:00:00.000Z"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	export(t, x).insert(t, db, "ses_1", "")
	if out, status := x.toolrun(t, "session", "--json"); status != 0 || strings.Count(out, `"model":"mock-model"`) != 2 || strings.Count(out, `"input_tokens":100`) != 2 {
		t.Errorf("status %d: %s", status, out)
	}
}
