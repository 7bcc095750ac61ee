package runner

import (
	"strings"
	"testing"

	"toolrun/archive/ledger"
	"toolrun/archive/redact"
)

func TestCallIDs(t *testing.T) {
	used := map[string]bool{"used": true}
	s := newIDs("0a1b2c3d-0000-4000-8000-000000000000", redact.New(nil), func(id string) (bool, error) {
		was := used[id]
		used[id] = true
		return !was, nil
	})
	secret := "ghp_" + strings.Repeat("A", 36)
	for _, c := range []struct{ raw, id, client string }{
		{"", "0a1b2c3d-1", ""},
		{"toolu_1", "toolu_1", "toolu_1"},
		{"toolu_1", "toolu_1!1", "toolu_1"},
		{"toolu_1", "toolu_1!2", "toolu_1"},
		{"", "0a1b2c3d-2", ""},
		{"used", "used@0a1b2c3d", "used"},
		{"used", "used@0a1b2c3d!1", "used"},
		{secret, "0a1b2c3d-3", redact.Mark},
		{secret, "0a1b2c3d-3!1", redact.Mark},
		{strings.Repeat("l", 300), "0a1b2c3d-4", strings.Repeat("l", 256) + "..."},
		{strings.Repeat("l", 301), "0a1b2c3d-5", strings.Repeat("l", 256) + "..."},
	} {
		got, err := s.take(c.raw)
		must(t, err)
		client := ""
		if got.Client != nil {
			client = got.Client.String()
		}
		if got.ID.String() != c.id || client != c.client || got.Duplicate != strings.Contains(c.id, "!") {
			t.Errorf("take(%q) = %s, client %q, duplicate %v; want %s, %q", c.raw, got.ID, client, got.Duplicate, c.id, c.client)
		}
	}
}

func TestAForgottenIDIsNoDuplicate(t *testing.T) {
	s := newIDs("0a1b2c3d", redact.New(nil), func(string) (bool, error) { return true, nil })
	first, _ := s.take("x")
	s.forget("x", first)
	if again, _ := s.take("x"); again.Duplicate {
		t.Error("a call that never came on the record makes its re-send a duplicate")
	}
	dup, _ := s.take("x")
	s.forget("x", dup)
	if again, _ := s.take("x"); !again.Duplicate {
		t.Error("forgetting a duplicate forgot the first call")
	}
}

func TestAnIDOfAnEarlierRunGetsTheRunsSuffix(t *testing.T) {
	g := newRig(t, testCatalog, exits(0, "", ""))
	must(t, g.Call(t.Context(), Request{Name: "echo", Origin: Origin{CallID: "c1"}}).Err)
	must(t, g.Call(t.Context(), Request{Name: "echo", Origin: Origin{CallID: "c1"}}).Err)
	must(t, g.Call(t.Context(), Request{Name: "echo", Origin: Origin{CallID: "c2!1"}}).Err)
	rows, _ := g.end()
	run8 := rows[0].RunID[:8]
	for i, want := range []string{"c1", "c1!1", "c2!1@" + run8} {
		if got := rows[i].ToolCallID.String(); got != want {
			t.Errorf("row %d is %s, want %s", i, got, want)
		}
	}
	if rows[1].Outcome != ledger.OutcomeDuplicateID || strings.Join(rows[1].Flags, " ") != "DUPLICATE_ID" || rows[1].ClientCallID.String() != "c1" {
		t.Errorf("duplicate: %s %v %s", rows[1].Outcome, rows[1].Flags, rows[1].ClientCallID)
	}
}
