package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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
	p.checkedNow()
}

// Sixteen calls run, as many as run at a time, while a real file system fills: each is answered and on the record. Where
// only hashes are kept nothing needed the space, and they end as they would have.
func TestSixteenCallsAreOnTheRecordOfAFullDisk(t *testing.T) {
	for _, payloads := range []string{"", "hash"} {
		t.Run("payloads="+payloads, func(t *testing.T) {
			p := newPlace(t, shTool)
			loopData(t, p)
			s := p.serve("--payloads=" + payloads)
			var ids []int
			for i := range 16 {
				ids = append(ids, s.begin("sh", sh(fmt.Sprintf("touch begun-%d; while [ -e begun-%d ]; do sleep 0.05; done; echo %d%s; exit 3", i, i, i, strings.Repeat("late", 2000)))))
			}
			eventually(t, patience, "the calls run", func() bool { found, _ := filepath.Glob(p.work + "/begun-*"); return len(found) == 16 })
			free := fill(t, p)
			for i := range 16 {
				if err := os.Remove(fmt.Sprintf("%s/begun-%d", p.work, i)); err != nil {
					t.Fatal(err)
				}
			}
			outcomes := map[string]int{} // what one row gives back of the reserve may hold another's output
			for i, id := range ids {
				f, err := factsOf(s.answer(id, patience))
				if err != nil || (f.OutputHash == nil) != (f.Outcome == "capture_failed") {
					t.Errorf("call %d: %v %.300s", i, err, f.Text)
				}
				outcomes[f.Outcome]++
			}
			rows := p.rows()
			for _, r := range rows {
				if r.OutputBytes < 8002 || (r.OutputHash == nil) != (r.Outcome == "capture_failed") {
					t.Errorf("row %s", r.raw)
				}
				outcomes[r.Outcome]--
			}
			if len(rows) != 16 || outcomes["exit"] != 0 || outcomes["capture_failed"] != 0 {
				t.Errorf("%d rows, and answers that are not theirs: %v", len(rows), outcomes)
			}
			if failed := count(rows, "capture_failed"); payloads == "" && failed < 4 || payloads == "hash" && failed > 0 {
				t.Errorf("%d calls ended as capture_failed", failed)
			}
			free()
			expect(t, s.call("sh", sh("exit 0")), 0)
			s.stdin.Close()
			s.wait(patience)
			if got := p.query("verify"); got.code != 0 {
				t.Errorf("verify: exit %d\n%s%s", got.code, got.stdout, got.stderr)
			}
			p.damaged = true // it is gone when the test has ended
		})
	}
}

// A file system turns read-only under the server, as ext4 does after an error. Nothing runs that cannot be recorded, what
// was recorded can be read, a new server is refused with the reason; and mounted again all goes on.
func TestNothingRunsOnADiskThatTurnedReadOnly(t *testing.T) {
	p := newPlace(t, shTool)
	remount := loopData(t, p)
	if err := os.WriteFile(filepath.Join(p.data, "config.toml"), []byte("durability = \"row\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := p.serve()
	expect(t, s.call("sh", sh("echo before")), 0)
	if err := unix.Mount("", p.data, "", unix.MS_REMOUNT, "abort"); err != nil {
		skipFor(t, "remount: "+err.Error())
	}
	marker := filepath.Join(p.work, "marker")
	for range 3 {
		if a := s.answer(s.begin("sh", sh("touch marker")), patience); !strings.Contains(string(a.Result), "ledger unavailable") || !strings.Contains(string(a.Result), `"isError":true`) {
			t.Errorf("%+v", a)
		}
	}
	if exists(marker) {
		t.Error("a tool ran that is not on the record")
	}
	if got := p.query("sessions", "--json"); got.code != 0 || strings.Count(got.stdout, "\n") != 1 {
		t.Errorf("sessions: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got := p.query("verify"); got.code != 0 {
		t.Errorf("verify: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	s.stdin.Close()
	if code := s.wait(patience); code == 0 {
		t.Errorf("the server ends as if all were well: %s", s.stderr)
	}
	if got := p.run("serve"); got.code != 5 || !strings.Contains(got.stderr, p.data) || !strings.Contains(got.stderr, "read-only file system") {
		t.Errorf("serve: exit %d\n%s", got.code, got.stderr)
	}
	remount()
	s = p.serve()
	expect(t, s.call("sh", sh("echo after")), 0)
	s.stdin.Close()
	s.wait(patience)
	if rows := p.rows(); len(rows) != 2 {
		t.Errorf("%d rows", len(rows))
	}
	p.checkedNow()
}

// loopData puts the data directory on an ext4 of 8 MB; remount takes it off and mounts it again.
func loopData(t *testing.T, p *place) (remount func()) {
	t.Helper()
	needRoot(t)
	image := filepath.Join(p.root, "image")
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			skipFor(t, fmt.Sprintf("no file system in a file: %s: %v %s", name, err, out))
		}
	}
	run("truncate", "-s", "8M", image)
	run("mkfs.ext4", "-q", "-O", "^has_journal", "-m", "0", image)
	if err := os.MkdirAll(p.data, 0o700); err != nil {
		t.Fatal(err)
	}
	mount := func() {
		t.Helper()
		run("mount", "-o", "loop", image, p.data)
		if err := os.Chmod(p.data, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	mount()
	t.Cleanup(func() { unix.Unmount(p.data, unix.MNT_DETACH) })
	os.Remove(filepath.Join(p.data, "lost+found"))
	return func() {
		t.Helper()
		if err := unix.Unmount(p.data, 0); err != nil {
			t.Fatal(err)
		}
		mount()
	}
}

func count(rows []row, outcome string) (n int) {
	for _, r := range rows {
		if r.Outcome == outcome {
			n++
		}
	}
	return n
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
