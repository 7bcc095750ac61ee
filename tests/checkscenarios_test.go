package tests

import (
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
)

// all-equal history, from outside: the score of what is far outside of it is a number, and is told.
func TestCheckScoresAFlatHistory(t *testing.T) {
	t.Parallel()
	x := tell(t, "claude", "honest-tests")
	x.more(t, 53, func(i int, row object) {
		row["duration_ms"], row["output_bytes"] = 10, 10
		switch i {
		case 50:
			row["duration_ms"] = 10000
		case 51:
			row["output_bytes"] = 100_000_000
		case 52:
			row["status"], row["outcome"], row["exit_code"], row["error_type"] = "error", "exit", 1, "ExitError"
		}
	})
	out, status := x.toolrun(t, "check", "--json") // rulesOf reads each line as JSON, which has no NaN
	if got := rulesOf(t, out); got != "unusual_duration unusual_output unusual_failure" || status != 3 {
		t.Errorf("status %d: %s\n%s", status, got, out)
	}
}

// What a tool runs, and whether somebody is asked, may change while its name and its schema stay: then the session goes on with
// another tool.
func TestCheckTellsWhatChangedInADefinition(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	call := func(command, approval string) {
		p.writeCatalog(fmt.Sprintf("[tools.tests]\ncommand = [%s]\nrisk = \"READ\"\napproval = %q\n[tools.other]\ncommand = [\"true\"]\nrisk = \"READ\"\n", command, approval))
		for _, tool := range []string{"tests", "other"} {
			p.run("call", tool, "--session", "s")
		}
	}
	call(`"false"`, "deny")
	call(`"false"`, "deny") // another run under the same catalog
	if out := p.query("check", "--session", "s", "--json").stdout; strings.Contains(out, "definition_changed") {
		t.Error(out)
	}
	call(`"echo", "3 passed"`, "auto")
	var told []string
	for line := range strings.Lines(p.query("check", "--session", "s", "--json").stdout) {
		var f struct {
			Rule, Text string
			Tool       string `json:"tool_name"`
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		if f.Rule == "definition_changed" {
			told = append(told, f.Tool+" "+f.Text)
		}
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], "tests ") || !strings.Contains(told[0], `approval: "deny" -> "auto"; command: ["false"] -> ["echo","3 passed"]`) {
		t.Errorf("%q", told)
	}
}

// A tool of which there are few calls has no history that a call could be outside of.
func TestCheckIsSilentOfANewTool(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 10; n++ {
		x := tell(t, "claude", "honest-tests")
		x.more(t, n, func(i int, row object) {
			row["tool_name"] = "new"
			if i == n-1 {
				row["output_bytes"] = 1_000_000_000
			}
		})
		if out, status := x.toolrun(t, "check"); out != "" || status != 0 {
			t.Errorf("%d calls: status %d\n%s", n, status, out)
		}
	}
}

// Impossible times are told as such, and poison nothing.
func TestCheckTellsClockProblemsApart(t *testing.T) {
	t.Parallel()
	x := tell(t, "claude", "honest-tests")
	x.more(t, 44, func(i int, row object) {
		row["duration_ms"], row["output_bytes"] = 10, 10
		switch i {
		case 30:
			row["ended_at"] = "2026-01-01T00:00:00.000Z" // before it began
		case 31:
			row["started_at"], row["ended_at"] = "2099-01-01T00:00:00.000Z", "2099-01-01T00:00:01.000Z"
		case 32:
			row["started_at"], row["ended_at"] = "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:01.000Z"
		case 34:
			row["started_at"] = time.Now().UTC().Truncate(time.Second).Add(-time.Hour + 35*time.Second).Format("2006-01-02T15:04:05.000Z") // that of the row before
			row["ended_at"] = row["started_at"]
		case 43:
			row["duration_ms"] = 10000
		}
		if i >= 30 && i <= 32 {
			row["duration_ms"], row["output_bytes"] = 50_000, 1_000_000 // would be no surprise any more
		}
	})
	out, status := x.toolrun(t, "check", "--json")
	if got := rulesOf(t, out); got != "clock_step clock_step clock_step unusual_duration" || status != 3 {
		t.Errorf("status %d: %s\n%s", status, got, out)
	}
}

// The first check looks at the last 30 days; one that is asked for a range looks at that.
func TestCheckLooksBackAsFarAsItSays(t *testing.T) {
	t.Parallel()
	x := tell(t, "claude", "honest-tests")
	x.more(t, 2, func(i int, row object) {
		row["duration_ms"] = 61000
		if i == 0 {
			row["started_at"], row["ended_at"], row["session_id"] = "2025-06-01T00:00:00.000Z", "2025-06-01T00:01:01.000Z", "old"
		}
	})
	for _, c := range []struct {
		args []string
		want int
	}{{nil, 1}, {nil, 0}, {[]string{"--session", "old"}, 1}, {[]string{"--until", "2025-07-01"}, 1}, {[]string{"--since", "2025-06-02"}, 1}, {[]string{"--since", "2025-05-31"}, 2}} {
		out, _ := x.toolrun(t, append([]string{"check", "--json"}, c.args...)...)
		if got := strings.Count(out, `"rule":"slow_call"`); got != c.want {
			t.Errorf("%v: %d, want %d\n%s", c.args, got, c.want, out)
		}
	}
}

// Killed when it has told, and before it has kept that it did, it tells the same again, and loses nothing.
func TestCheckThatIsKilledTellsItAgain(t *testing.T) {
	t.Parallel()
	x := tell(t, "claude", "honest-tests")
	if out, status := x.toolrun(t, "check"); out != "" || status != 0 {
		t.Fatalf("status %d, %q", status, out)
	}
	x.more(t, 1, slow)
	out, status := x.toolrun(t, "check", "--json", "--exec", "kill -9 $PPID")
	if got := rulesOf(t, out); got != "slow_call" || status != -1 {
		t.Errorf("killed: status %d, %q", status, got)
	}
	out, status = x.toolrun(t, "check", "--json")
	if got := rulesOf(t, out); got != "slow_call" || status != 3 {
		t.Errorf("after it: status %d, %q", status, got)
	}
	if out, status := x.toolrun(t, "check"); out != "" || status != 0 {
		t.Errorf("and then: status %d, %q", status, out)
	}
}

// What stands in README.md for an hourly check is taken by cron and by systemd.
func TestCronLineAndTimerOfTheReadmeAreTaken(t *testing.T) {
	t.Parallel()
	readme := document(t, "README.md")
	t.Run("cron", func(t *testing.T) {
		m := regexp.MustCompile(`(?m)^((?:[\d*/,-]+ +){5})/usr/local/bin/(toolrun check .*)$`).FindStringSubmatch(readme)
		if m == nil || strings.Contains(m[2], "%") { // which cron takes for a new line
			t.Fatalf("no line of cron: %q", m)
		}
		x := tell(t, "claude", "honest-tests")
		x.more(t, 1, slow)
		bin := t.TempDir()
		if err := os.WriteFile(filepath.Join(bin, "mail"), []byte("#!/bin/sh\necho \"$@\" > $MAIL\ncat >> $MAIL\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		mail := filepath.Join(bin, "sent")
		cmd := exec.Command("/bin/sh", "-c", toolrun+strings.TrimPrefix(m[2], "toolrun"))
		cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + x.home, "TOOLRUN_DATA=" + x.data, "MAIL=" + mail}
		out, _ := cmd.CombinedOutput()
		if text := readFile(t, mail); cmd.ProcessState.ExitCode() != 3 || !strings.Contains(text, "me@example.org") || !strings.Contains(text, "slow_call") {
			t.Errorf("%v\n%s\n%s", cmd.ProcessState, out, text)
		}
	})
	t.Run("systemd", func(t *testing.T) {
		if _, err := exec.LookPath("systemd-analyze"); err != nil {
			skipFor(t, err.Error())
		}
		dir := t.TempDir()
		var units []string
		for _, block := range fences.FindAllStringSubmatch(readme, -1) {
			for _, part := range strings.Split(block[2], "# ~/.config/systemd/user/")[1:] {
				name, text, _ := strings.Cut(part, "\n")
				text = strings.ReplaceAll(text, "ExecStart=/usr/local/bin/toolrun", "ExecStart="+toolrun)
				units = append(units, filepath.Join(dir, name))
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !slices.ContainsFunc(units, func(u string) bool { return strings.HasSuffix(u, "toolrun-check.timer") }) {
			t.Fatal(fmt.Sprint(units))
		}
		cmd := exec.Command("systemd-analyze", append([]string{"verify", "--user", "--man=no"}, units...)...)
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 { // what it does not know it warns of, and passes over
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// A ledger that came back from a backup has other rows where those were that check has told of: nothing of it passes for told.
func TestCheckOfARestoredLedgerTellsAgain(t *testing.T) {
	t.Parallel()
	x := tell(t, "claude", "honest-tests")
	path := filepath.Join(x.data, "ledger.jsonl")
	backup := readFile(t, path)
	for _, rows := range []int{1, 5} { // fewer than there were, and more
		x.more(t, 3, nil)
		if out, status := x.toolrun(t, "check"); out != "" || status != 0 {
			t.Fatalf("status %d\n%s", status, out)
		}
		if err := os.WriteFile(path, []byte(backup), 0o600); err != nil {
			t.Fatal(err)
		}
		x.more(t, rows, func(i int, row object) {
			if i == 0 {
				slow(i, row)
			}
			row["started_at"], row["ended_at"] = time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
		})
		if out, status := x.toolrun(t, "check", "--json"); rulesOf(t, out) != "slow_call" || status != 3 {
			t.Errorf("%d rows: status %d\n%s", rows, status, out)
		}
		if out, status := x.toolrun(t, "check"); out != "" || status != 0 {
			t.Errorf("%d rows, again: status %d\n%s", rows, status, out)
		}
		os.Remove(filepath.Join(x.data, "check.json"))
		if err := os.WriteFile(path, []byte(backup), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// What lies in a sealed month is looked at where the range reaches it.
func TestCheckReadsSealedMonths(t *testing.T) {
	t.Parallel()
	p := barePlace(t, "")
	p.damaged = true
	h := newPast(p)
	h.run(pastCall{at: timeOf(t, "2025-01-02T10:00:00Z"), took: 70 * time.Second, id: "long", out: "x"})
	h.run(pastCall{at: timeOf(t, "2025-02-03T10:00:00Z"), id: "short", out: "y"})
	p.query("sessions") // closes what the past left, which signs
	p.archived(0)
	if err := os.WriteFile(filepath.Join(p.data, "config.toml"), []byte("[check]\noff = [\"wall_missing\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want int
	}{{[]string{"--since", "2025-01-01"}, 1}, {[]string{"--until", "2025-02-01"}, 1}, {[]string{"--since", "2025-02-01"}, 0}, {[]string{"--since", "2025-01-01", "--hot"}, 0}, {nil, 0}} {
		got := p.query(append([]string{"check", "--json"}, c.args...)...)
		if n := strings.Count(got.stdout, `"rule":"slow_call"`); n != c.want || got.code != map[int]int{0: 0, 1: 3}[c.want] {
			t.Errorf("%v: %d, want %d: status %d\n%s%s", c.args, n, c.want, got.code, got.stdout, got.stderr)
		}
	}
}
