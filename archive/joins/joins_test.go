package joins_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"toolrun/archive/joins"
	"toolrun/archive/redact"
)

var now = time.Date(2026, 11, 30, 18, 5, 12, 0, time.UTC)

func join(id string, tokens int64) *joins.Join {
	model := redact.Plain("claude-sonnet-4-5")
	return &joins.Join{ToolCallID: redact.Plain(id), Turn: 1, Model: &model, InputTokens: &tokens, OutputTokens: &tokens, Source: "claude"}
}

func TestToJoinTwiceIsToJoinOnce(t *testing.T) {
	dir := t.TempDir()
	for i, want := range []int{2, 0, 0} {
		if n, err := joins.Add(dir, []*joins.Join{join("a", 1), join("b", 2)}, now.Add(time.Duration(i)*time.Hour)); n != want || err != nil {
			t.Errorf("time %d: %d added, want %d, %v", i, n, want, err)
		}
	}
	if n, err := joins.Add(dir, []*joins.Join{join("a", 7)}, now); n != 1 || err != nil {
		t.Error(n, err)
	}
	all, err := joins.Load(dir, func(err error) { t.Error(err) })
	if err != nil || len(all) != 2 || *all["a"].InputTokens != 7 || *all["b"].InputTokens != 2 || all["a"].JoinedAt != "2026-11-30T18:05:12.000Z" {
		t.Error(all, err)
	}
}

func TestProcessesMayJoinAtTheSameTime(t *testing.T) {
	dir := t.TempDir()
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for i := range 20 {
				if _, err := joins.Add(dir, []*joins.Join{join(fmt.Sprint("call_", i), int64(i))}, now); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	text, err := os.ReadFile(filepath.Join(dir, joins.FileName))
	if n := strings.Count(string(text), "\n"); n != 20 || err != nil {
		t.Errorf("%d lines, %v", n, err)
	}
}

func TestTornEndIsMovedAsideAndDamageIsNamed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, joins.FileName)
	if _, err := joins.Add(dir, []*joins.Join{join("a", 1)}, now); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(append([]byte("{}\n"), whole...), `{"tool_call_id":"b`...), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := joins.Add(dir, []*joins.Join{join("b", 1)}, now); n != 1 || err != nil {
		t.Error(n, err)
	}
	var damage []string
	all, err := joins.Load(dir, func(err error) { damage = append(damage, strings.TrimPrefix(err.Error(), dir+"/")) })
	if err != nil || len(all) != 2 || len(damage) != 1 || !strings.HasPrefix(damage[0], "joins.jsonl:1: ") {
		t.Error(all, damage, err)
	}
	if kept, _ := os.ReadFile(filepath.Join(dir, "ledger.damaged")); !strings.Contains(string(kept), `{"tool_call_id":"b`) {
		t.Errorf("ledger.damaged: %q", kept)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
}

func TestALineIsWhatFormatSays(t *testing.T) {
	dir := t.TempDir()
	if _, err := joins.Add(dir, []*joins.Join{join("a\u2028b", 1)}, now); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, joins.FileName))
	want := `{"tool_call_id":"a\u2028b","turn":1,"model":"claude-sonnet-4-5","provider":null,"input_tokens":1,"output_tokens":1,"estimated_cost_usd":null,"source":"claude","joined_at":"2026-11-30T18:05:12.000Z"}` + "\n"
	if err != nil || string(text) != want || !json.Valid(text) {
		t.Errorf("%s\n%s\n%v", text, want, err)
	}
}
