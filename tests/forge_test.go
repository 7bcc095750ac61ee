package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A row is removed, one edited, two change places: verify names each by file, line and call, and goes on to the end.
func TestRowsRemovedEditedAndReorderedAreNamed(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	p.damaged = true
	rows := fifty(t, p)
	path := filepath.Join(p.data, "ledger.jsonl")
	lines := strings.SplitAfter(readFile(t, path), "\n")
	lines[8] = strings.Replace(lines[8], `"exit_code":0`, `"exit_code":1`, 1)
	lines[9], lines[10] = lines[10], lines[9]
	if err := os.WriteFile(path, []byte(strings.Join(append(lines[:7:7], lines[8:]...), "")), 0o600); err != nil {
		t.Fatal(err)
	}
	got := p.query("verify", "--json")
	if got.code != 4 {
		t.Errorf("verify: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	for _, want := range []string{"ledger.jsonl", rows[7].ToolCallID, rows[8].ToolCallID, rows[9].ToolCallID, rows[10].ToolCallID} {
		if !strings.Contains(got.stdout, `"`+want+`"`) {
			t.Errorf("verify does not name %s:\n%s", want, got.stdout)
		}
	}
	for line := 8; line <= 10; line++ {
		if !regexp.MustCompile(fmt.Sprintf(`"line":%d\b`, line)).MatchString(got.stdout) {
			t.Errorf("verify does not name line %d:\n%s", line, got.stdout)
		}
	}
}

// Rows that were removed, edited and swapped, and a sealed month that is gone, all at once: each is named with its seq or its
// month, and its file.
func TestRowsAndAMonthThatAreGoneAreNamed(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	p.damaged = true
	threeMonths(newPast(p)) // seq 0 to 6
	p.query("sessions")     // closes what the past left, which signs
	p.archived(0)
	s := p.serve()
	for i := range 8 {
		expect(t, s.call("sh", sh(fmt.Sprintf("echo %d", i))), 0)
	}
	s.stdin.Close()
	s.wait(patience)
	if got := p.query("verify"); got.code != 0 {
		t.Fatalf("before: status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	path := filepath.Join(p.data, "ledger.jsonl")
	lines := strings.SplitAfter(readFile(t, path), "\n") // the hot row of the past, and the 8
	lines[2] = strings.Replace(lines[2], `"exit_code":0`, `"exit_code":1`, 1)
	lines[3], lines[4] = lines[4], lines[3]
	if err := os.WriteFile(path, []byte(strings.Join(append(lines[:1:1], lines[2:]...), "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(p.data, "archive", "2025-01")); err != nil {
		t.Fatal(err)
	}
	got := p.query("verify", "--json")
	if got.code != 4 {
		t.Errorf("verify: status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	for _, want := range []string{`"kind":"ROW_REMOVED","file":"ledger.jsonl".*"seq":7\b`, `"kind":"ROW_EDITED","file":"ledger.jsonl".*"seq":8\b`, `"kind":"ROW_MOVED","file":"ledger.jsonl".*"seq":(9|10)\b`,
		`"file":"ledger.jsonl".*"seq":9\b`, `"file":"ledger.jsonl".*"seq":10\b`, `"kind":"MONTH_MISSING","file":"archive/2025-01/`} {
		if !regexp.MustCompile(want).MatchString(got.stdout) {
			t.Errorf("verify does not tell %s:\n%s", want, got.stdout)
		}
	}
}

// The whole of it once more from outside, as somebody would who has toolrun, the directory, and a checkpoint from the
// log of the run: a cut that takes the checkpoints along is found with that line only.
func TestCutIsFoundWithTheLineOfALog(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	p.damaged = true
	run := func(n int) (line string) {
		s := p.serve()
		for i := range n {
			expect(t, s.call("sh", sh(fmt.Sprintf("echo %d", i))), 0)
		}
		s.stdin.Close()
		s.wait(patience)
		return s.stderr.String()
	}
	run(3)
	older := filepath.Join(p.root, "older")
	if err := os.CopyFS(older, os.DirFS(p.data)); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(p.root, "log")
	if err := os.WriteFile(log, []byte(run(2)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p.query("verify", "--checkpoint", log); got.code != 0 {
		t.Errorf("verify of what was not changed: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if err := os.RemoveAll(p.data); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(p.data, os.DirFS(older)); err != nil {
		t.Fatal(err)
	}
	if got := p.query("verify"); got.code != 0 {
		t.Errorf("verify by itself: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got := p.query("verify", "--checkpoint", log); got.code != 4 || !strings.Contains(got.stdout, "ledger.jsonl:4") {
		t.Errorf("verify with the checkpoint that was kept: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}
