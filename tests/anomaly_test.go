package tests

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// more appends n rows to the record, copies of its first one with other ids, each changed.
func (x *told) more(t testing.TB, n int, change func(i int, row object)) {
	t.Helper()
	path := filepath.Join(x.data, "ledger.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	lines := strings.Count(string(text), "\n")
	at := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
	for i := range n {
		row := object{}
		dec := json.NewDecoder(strings.NewReader(first))
		dec.UseNumber()
		if err := dec.Decode(&row); err != nil {
			t.Fatal(err)
		}
		seq := lines + i
		row["seq"], row["tool_call_id"], row["input_hash"] = seq, fmt.Sprint("more_", seq), fmt.Sprintf("%064x", seq)
		row["started_at"] = at.Add(time.Duration(seq) * time.Second).Format("2006-01-02T15:04:05.000Z")
		row["ended_at"], row["duration_ms"] = row["started_at"], 0
		if change != nil {
			change(i, row)
		}
		text = append(append(text, toJSON(row)...), '\n')
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func slow(i int, row object) { row["duration_ms"] = 61000 }

func rulesOf(t testing.TB, out string) string {
	t.Helper()
	var rules []string
	for line := range strings.Lines(out) {
		var f struct {
			Rule  string
			Seq   *int
			Value *float64
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil || f.Seq == nil || f.Value == nil {
			t.Fatalf("%v: %s", err, line)
		}
		rules = append(rules, f.Rule)
	}
	return strings.Join(rules, " ")
}

func TestCheckSaysNothingWhenAllIsWellAndEachThingOnce(t *testing.T) {
	t.Parallel()
	x := tell(t, "claude", "honest-tests")
	if out, status := x.toolrun(t, "check"); out != "" || status != 0 {
		t.Errorf("all is well: status %d, %q", status, out)
	}
	x.more(t, 2, slow)
	// Two timers at once: the lock gives it to one of them.
	var outs [2]string
	var wait sync.WaitGroup
	for i := range outs {
		wait.Go(func() { outs[i], _ = x.toolrun(t, "check", "--json") })
	}
	wait.Wait()
	if got := rulesOf(t, outs[0]+outs[1]); got != "slow_call slow_call" {
		t.Errorf("two at once: %q", got)
	}
	if out, status := x.toolrun(t, "check"); out != "" || status != 0 {
		t.Errorf("again: status %d, %q", status, out)
	}
	if out, status := x.toolrun(t, "check", "--since", "1d", "--json"); rulesOf(t, out) != "slow_call slow_call" || status != 3 {
		t.Errorf("a range: status %d, %q", status, out)
	}
	if out, status := x.toolrun(t, "check", "--session", "another"); out != "" || status != 1 {
		t.Errorf("a session that nobody had: status %d, %q", status, out)
	}
}

func TestCheckHandsWhatItFoundToACommandUntilThatTakesIt(t *testing.T) {
	t.Parallel()
	x := tell(t, "claude", "honest-tests")
	mail := filepath.Join(t.TempDir(), "mail")
	if out, status := x.toolrun(t, "check", "--exec", "touch "+mail); out != "" || status != 0 {
		t.Errorf("status %d, %q", status, out)
	}
	if _, err := os.Stat(mail); err == nil {
		t.Error("the command ran although all was well")
	}
	x.more(t, 1, slow)
	if _, status := x.toolrun(t, "check", "--exec", "exit 7"); status != 1 {
		t.Errorf("a command that fails: status %d", status)
	}
	if _, status := x.toolrun(t, "check", "--json", "--exec", "cat >"+mail); status != 3 {
		t.Errorf("status %d", status)
	}
	text, err := os.ReadFile(mail)
	if err != nil || rulesOf(t, string(text)) != "slow_call" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestCheckObeysItsTableInTheConfiguration(t *testing.T) {
	t.Parallel()
	x := tell(t, "claude", "honest-tests")
	config := filepath.Join(x.data, "config.toml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("[check]\nsession_cost_usd = 0.001\n")
	if out, status := x.toolrun(t, "check"); out != "" || status != 0 {
		t.Errorf("status %d, %q", status, out)
	}
	// What the rows cost is learned later; they were looked at before.
	if _, status := x.toolrun(t, "audit"); status != 0 {
		t.Errorf("audit: status %d", status)
	}
	if out, status := x.toolrun(t, "check", "--json"); rulesOf(t, out) != "session_cost" || status != 3 {
		t.Errorf("status %d, %q", status, out)
	}
	if out, status := x.toolrun(t, "check"); out != "" || status != 0 {
		t.Errorf("again: status %d, %q", status, out)
	}
	write("[check]\noff = [\"slow_call\"]\n")
	x.more(t, 1, slow)
	if out, status := x.toolrun(t, "check"); out != "" || status != 0 {
		t.Errorf("switched off: status %d, %q", status, out)
	}
	for _, bad := range []string{"check = 1\n", "[check]\nsession_calls = 0\n", "[check]\nslow = 3\n", "[check]\noff = [\"slow\"]\n", "[Check]\n"} {
		write("durability = \"row\"\n" + bad)
		if out, status := x.toolrun(t, "check"); out != "" || status != 5 {
			t.Errorf("%q: status %d, %q", bad, status, out)
		}
	}
}

// Rows of all-equal history, impossible times, and damage, from the outside.
func TestCheckGoesOnOverDamageAndImpossibleTimes(t *testing.T) {
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
			row["started_at"], row["ended_at"] = "2099-01-01T00:00:00.000Z", "2099-01-01T00:00:01.000Z"
		}
	})
	path := filepath.Join(x.data, "ledger.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	lines[5] = "x" + lines[5][1:]
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, status := x.toolrun(t, "check", "--json"); rulesOf(t, out) != "unusual_duration unusual_output clock_step" || status != 3 {
		t.Errorf("status %d, %q", status, out)
	}
	if out, status := x.toolrun(t, "check"); out != "" || status != 0 {
		t.Errorf("again: status %d, %q", status, out)
	}
}
