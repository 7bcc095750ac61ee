package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fifty makes 50 calls with output of their own and ends the server.
func fifty(t *testing.T, p *place) []row {
	t.Helper()
	s := p.serve()
	together(t, 50, func(i int) { expectStatus(t, s.call("sh", sh(fmt.Sprintf("echo output %d", i))), "success") })
	s.stdin.Close()
	s.wait(patience)
	rows := p.rows()
	if len(rows) != 50 {
		t.Fatalf("%d rows", len(rows))
	}
	return rows
}

// expectStatus is expect for goroutines: it does not end the test.
func expectStatus(t *testing.T, f facts, status string) {
	t.Helper()
	if f.Status != status {
		t.Errorf("status %s, want %s: %s", f.Status, status, f.Text)
	}
}

func TestEmptiedObjectIsFoundAndWrittenAnew(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	s := p.serve()
	f := s.call("sh", sh("echo precious"))
	s.stdin.Close()
	s.wait(patience)
	path := objectPath(p.data, *f.OutputHash)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if got := p.query("verify"); got.code != 4 || !strings.Contains(got.stdout+got.stderr, *f.OutputHash) || !strings.Contains(got.stdout+got.stderr, f.ToolCallID) {
		t.Errorf("verify: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got := p.query("output", *f.OutputHash); got.code == 0 {
		t.Errorf("output: exit 0, %q", got.stdout)
	}
	s = p.serve()
	s.call("sh", sh("echo precious"))
	s.stdin.Close()
	s.wait(patience)
	if got := p.query("verify"); got.code != 0 {
		t.Errorf("verify after the object was written anew: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got := p.query("output", *f.OutputHash); got.code != 0 || got.stdout != "precious\n" {
		t.Errorf("output: exit %d, %q", got.code, got.stdout)
	}
}

func TestOneRottenObjectIsNamedAndTheOthersAreChecked(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	p.damaged = true
	rows := fifty(t, p)
	victim, gone := rows[17], rows[31]
	path := objectPath(p.data, *victim.OutputHash)
	content := []byte(readFile(t, path))
	content[3] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	got := p.query("verify", "--json")
	if got.code != 4 || strings.Count(got.stdout, *victim.OutputHash) < 1 || !strings.Contains(got.stdout, victim.ToolCallID) {
		t.Errorf("verify: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	for _, r := range rows {
		if r.Seq != victim.Seq && strings.Contains(got.stdout, *r.OutputHash) {
			t.Errorf("verify blames object %s", *r.OutputHash)
		}
	}
	if err := os.Remove(objectPath(p.data, *gone.OutputHash)); err != nil {
		t.Fatal(err)
	}
	got = p.query("verify")
	if got.code != 4 || !strings.Contains(strings.ToLower(got.stdout), "missing") || !strings.Contains(got.stdout, gone.ToolCallID) || !strings.Contains(got.stdout, victim.ToolCallID) {
		t.Errorf("verify: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got := p.query("session", victim.SessionID, "--json"); strings.Count(got.stdout, `"tool_call_id"`) < 50 {
		t.Errorf("session: exit %d, %d rows\n%s", got.code, strings.Count(got.stdout, `"tool_call_id"`), got.stderr)
	}
	for id, state := range map[string]string{gone.ToolCallID: "unavailable: the object is missing", victim.ToolCallID: "unavailable: the object is corrupt"} {
		if got := p.query("show", id); got.code != 0 && got.code != 3 || !strings.Contains(got.stdout, id) || !strings.Contains(got.stdout, state) {
			t.Errorf("show: exit %d\n%s%s", got.code, got.stdout, got.stderr)
		}
	}
	if got := p.query("output", victim.ToolCallID); got.code == 0 {
		t.Errorf("output of a rotten object: exit 0\n%s", got.stdout)
	}
}

func TestSameContentIsStoredOnceAndForGood(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	s := p.serve()
	together(t, 100, func(int) { expectStatus(t, s.call("sh", sh("echo same")), "success") })
	s.stdin.Close()
	s.wait(patience)
	objects, _ := filepath.Glob(filepath.Join(p.data, "store", "*", "*.txt"))
	if len(objects) < 2 || len(objects) > 3 { // the arguments, the output and perhaps the empty stderr
		t.Errorf("%d objects", len(objects))
	}
}

func TestOutputCommandGivesTheStoredBytes(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	s := p.serve()
	f := s.call("sh", sh(`printf 'a\033[2Jb\000\377\n'`))
	s.stdin.Close()
	s.wait(patience)
	for _, name := range []string{f.ToolCallID, *f.OutputHash} {
		if got := p.query("output", name); got.code != 0 || got.stdout != "a\x1b[2Jb\x00\xff\n" || sha256Hex(got.stdout) != *f.OutputHash {
			t.Errorf("output %s: exit %d, %q", name, got.code, got.stdout)
		}
	}
	if got := p.query("show", f.ToolCallID); strings.ContainsAny(got.stdout, "\x1b\x00") {
		t.Errorf("show prints control bytes: %q", got.stdout)
	}
}
