package tests

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// damage appends bytes to the ledger.
func (p *place) damage(text string) {
	p.t.Helper()
	f, err := os.OpenFile(filepath.Join(p.data, "ledger.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func TestTornTailIsSetAsideAndGluedToNothing(t *testing.T) {
	t.Parallel()
	for name, tail := range map[string]string{"torn": `{"seq":4,"to`, "NULs": strings.Repeat("\x00", 4096), "a whole row but its newline": `{"tool_call_id":"x","session_id":"y"}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, shTool)
			s := p.serve()
			for range 3 {
				s.call("sh", sh("echo hi"))
			}
			s.stdin.Close()
			s.wait(patience)
			size := usage(filepath.Join(p.data, "ledger.jsonl"))
			p.damage(tail)
			s = p.serve()
			s.call("sh", sh("echo hi"))
			s.call("sh", sh("echo hi"))
			if n := len(p.rows()); n != 5 {
				t.Errorf("%d rows", n)
			}
			set := readFile(t, filepath.Join(p.data, "ledger.damaged"))
			if tail := strings.Trim(tail, "\x00"); !strings.Contains(set, tail) && !strings.Contains(set, strings.Trim(toJSON(tail), `"`)) {
				t.Errorf("ledger.damaged lacks the tail: %.200q", set)
			}
			if !strings.Contains(set, fmt.Sprint(size)) {
				t.Errorf("ledger.damaged lacks the offset %d: %.200q", size, set)
			}
			s.stdin.Close()
			s.wait(patience)
			if strings.Count(s.stderr.String(), "ledger.damaged") != 1 {
				t.Errorf("stderr: %s", s.stderr)
			}
		})
	}
}

func TestDamagedLinesAreNamedAndSkipped(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	p.damaged = true
	s := p.serve()
	call := func(n int) {
		for range n {
			s.call("sh", object{"script": "echo hi"})
		}
	}
	call(3)
	s.stdin.Close()
	s.wait(patience)
	session := p.rows()[0].SessionID
	p.damage("\xff\xfe bad UTF-8\n" + strings.Repeat("x", 10<<20) + "\n" + strings.Repeat("\x00", 100) + "\n\n")
	path := filepath.Join(p.data, "ledger.jsonl")
	text := readFile(t, path)
	whole := strings.Split(text, "\n")[0]
	if err := os.WriteFile(path, []byte(strings.Replace(text, "}\n", "}\r\n", 2)), 0o600); err != nil { // two ends of another system
		t.Fatal(err)
	}
	s = p.serve()
	call(2)
	s.stdin.Close()
	s.wait(patience)
	rows, problems := readRows(p.data)
	if len(rows) != 5 || len(problems) != 4 {
		t.Errorf("%d rows and %d damaged lines", len(rows), len(problems))
	}
	got := p.query("sessions", "--json")
	if got.code != 3 || strings.Count(got.stdout, "\n") != 2 {
		t.Errorf("sessions: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	for line := 4; line <= 7; line++ {
		if !strings.Contains(got.stderr, fmt.Sprintf("ledger.jsonl:%d", line)) {
			t.Errorf("line %d is not named: %s", line, got.stderr)
		}
	}
	got = p.query("session", session, "--json")
	if got.code != 3 || !strings.Contains(got.stdout, rows[0].ToolCallID) {
		t.Errorf("session: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if !strings.HasPrefix(readFile(t, filepath.Join(p.data, "ledger.jsonl")), whole) {
		t.Error("the damaged file was moved away")
	}
	if got := p.query("verify"); got.code == 0 || !strings.Contains(got.stdout+got.stderr, "ledger.jsonl:5") {
		t.Errorf("verify: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

// tinyData puts the data directory on a file system of its own with that many bytes.
func tinyData(t *testing.T, p *place, size string) {
	t.Helper()
	needRoot(t)
	if err := os.MkdirAll(p.data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", p.data, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(p.data, unix.MNT_DETACH) })
}

// fill takes all space of the data directory; the function it returns gives it back.
func fill(t *testing.T, p *place) (free func()) {
	t.Helper()
	path := filepath.Join(p.data, "ballast")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for page := bytes.Repeat([]byte{'.'}, 4096); err == nil; {
		_, err = f.Write(page)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNothingRunsThatCannotBeRecorded(t *testing.T) {
	p := newPlace(t, shTool)
	tinyData(t, p, "2m")
	s := p.serve()
	expect(t, s.call("sh", sh("echo before")), 0)
	free := fill(t, p)
	marker := filepath.Join(p.work, "marker")
	// the page that a file already has may still take a line or two
	refused := 0
	for i := 0; i < 30 && refused < 3; i++ {
		os.Remove(marker)
		a := s.answer(s.begin("sh", sh(fmt.Sprintf("touch marker; echo %d %s", i, strings.Repeat("x", 400)))), patience)
		if !strings.Contains(string(a.Result), "ledger unavailable") || !strings.Contains(string(a.Result), `"isError":true`) {
			continue
		}
		refused++
		if _, err := os.Stat(marker); err == nil {
			t.Error("a tool ran that cannot be recorded")
		}
	}
	if refused < 3 {
		t.Errorf("%d calls were refused on a full disk", refused)
	}
	s.send(request(7, "ping", nil))
	s.answer(7, patience)
	free()
	for range 3 {
		expect(t, s.call("sh", sh("echo after")), 0)
	}
	rows := p.rows()
	if last := rows[len(rows)-1]; last.Outcome != "ok" {
		t.Errorf("row %s", last.raw)
	}
	s.stdin.Close()
	s.wait(patience)
	p.checkedNow()
}

func TestAnswerMeansRowWhateverHappensNext(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	const rounds = 200
	for i := range rounds {
		s := p.serve()
		if f := s.call("sh", sh(fmt.Sprintf("echo %d", i))); f.Status != "success" {
			t.Fatal(f.Text)
		}
		s.kill()
		if n := len(p.rows()); n != i+1 {
			t.Fatalf("%d answers, %d rows", i+1, n)
		}
	}
	p.recover()
}

// recover has a last process close what kills left open. A run is alive as long as somebody holds its file: a program that was
// just being started when its server was killed does so for a moment.
func (p *place) recover() {
	p.t.Helper()
	eventually(p.t, patience, "no run is open", func() bool {
		s := p.serve()
		s.send(request(1, "ping", nil))
		s.answer(1, patience)
		s.stdin.Close()
		s.wait(patience)
		open, err := os.ReadDir(filepath.Join(p.data, "live"))
		return err == nil && len(open) == 0
	})
}

func TestCallThatAKillLeftOpenIsClosedByTheNextProcess(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	s := p.serve()
	s.begin("sh", sh("echo begun; sleep 63.4"))
	eventually(t, patience, "the call runs", func() bool { return len(processes("sleep 63.4")) > 0 })
	s.kill()
	noProcess(t, "sleep 63.4")
	if n := len(p.rows()); n != 0 {
		t.Fatalf("%d rows", n)
	}
	p.recover()
	rows := p.rows()
	if len(rows) != 1 || rows[0].Outcome != "interrupted" || rows[0].OutputHash != nil || !strings.Contains(fmt.Sprint(rows[0].Flags), "CLOSED_LATER") || !bytes.Contains(rows[0].raw, []byte(`"closed_by":"`)) {
		t.Errorf("rows %v", rows)
	}
}
