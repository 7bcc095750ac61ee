package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The disk fills while a tool runs: the call ends as capture_failed, and what is known of it is on the record at once, its
// answer with it. What comes after does not run.
func TestCallThatADiskFillsUnderIsOnTheRecord(t *testing.T) {
	p := newPlace(t, shTool)
	tinyData(t, p, "4m")
	s := p.serve()
	expect(t, s.call("sh", sh("echo before")), 0)
	begun := filepath.Join(p.work, "begun")
	id := s.begin("sh", sh("touch begun; while [ -e begun ]; do sleep 0.05; done; echo "+strings.Repeat("late", 2000)))
	eventually(t, patience, "the call runs", func() bool { return exists(begun) })
	free := fill(t, p)
	if err := os.Remove(begun); err != nil {
		t.Fatal(err)
	}
	f, err := factsOf(s.answer(id, patience))
	if err != nil {
		t.Fatal(err)
	}
	rows := p.rows()
	last := rows[len(rows)-1]
	if f.Outcome != "capture_failed" || len(rows) != 2 || last.ToolCallID != f.ToolCallID || last.Outcome != f.Outcome || last.OutputBytes != 8001 || last.OutputHash != nil {
		t.Errorf("answer %+v\nrow %s", f, last.raw)
	}
	if a := s.answer(s.begin("sh", sh("touch begun")), patience); !strings.Contains(string(a.Result), "ledger unavailable") || exists(begun) {
		t.Errorf("on a full disk: %s", a.Result)
	}
	free()
	expect(t, s.call("sh", sh("echo after")), 0)
	s.stdin.Close()
	s.wait(patience)
	if got := p.query("verify"); got.code != 0 {
		t.Errorf("verify: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	for _, problem := range checkData(p.data) { // while it is mounted
		t.Error(problem)
	}
	p.damaged = true
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
