package runner

import (
	"context"
	"errors"
	"strings"
	"testing"

	"toolrun/sandbox"
)

func TestTurnsAreToldOrCounted(t *testing.T) {
	s := newSessions().get("s")
	for _, c := range []struct {
		told int
		name string
		want int
	}{{0, "", 0}, {0, "a", 1}, {0, "a", 1}, {0, "b", 2}, {0, "a", 1}, {7, "c", 7}, {-3, "", 0}, {0, strings.Repeat("n", 400), 3}, {0, strings.Repeat("n", 400), 3}} {
		if got := s.turn(c.told, c.name); got != c.want {
			t.Errorf("turn(%d, %.5q) = %d, want %d", c.told, c.name, got, c.want)
		}
	}
}

func TestARepeatOfAFailedCallSaysSo(t *testing.T) {
	code := 1
	g := newRig(t, testCatalog, boxFunc(func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		return exits(code, "", "")(ctx, cmd)
	}))
	call := func(session, tool, text string) *Reply {
		reply := g.Call(t.Context(), Request{Name: tool, Arguments: args("text", text), Origin: Origin{SessionID: session}})
		must(t, reply.Err)
		return &reply
	}
	first := call("s", "echo", "a")
	second := call("s", "echo", "a")
	third := call("s", "echo", "a")
	if second.Row.RepeatOf == nil || *second.Row.RepeatOf != first.Row.ToolCallID || second.Row.Repeat != 1 {
		t.Errorf("second: %v %d", second.Row.RepeatOf, second.Row.Repeat)
	}
	if *third.Row.RepeatOf != second.Row.ToolCallID || third.Row.Repeat != 2 {
		t.Errorf("third: %v %d", third.Row.RepeatOf, third.Row.Repeat)
	}
	for name, reply := range map[string]*Reply{
		"another session":      call("other", "echo", "a"),
		"other arguments":      call("s", "echo", "b"),
		"not the previous row": call("s", "echo", "a"),
	} {
		if reply.Row.RepeatOf != nil && name != "not the previous row" {
			t.Errorf("%s: a repeat of %v", name, reply.Row.RepeatOf)
		}
	}
	code = 0
	call("s", "echo", "c")
	if again := call("s", "echo", "c"); again.Row.RepeatOf != nil {
		t.Error("a call after a success is no repeat of a failure")
	}
	invented := call("s", "run_tests", "x")
	if again := call("s", "run_tests", "x"); again.Row.RepeatOf == nil || *again.Row.RepeatOf != invented.Row.ToolCallID {
		t.Error("an invented tool called again is a repeat")
	}
	g.end()
}

func TestASessionIsAnnouncedOncePerRun(t *testing.T) {
	g := newRig(t, testCatalog, exits(0, "", ""))
	must(t, g.Session(Origin{SessionID: "a", Client: "c/1", Protocol: "2025-06-18"}))
	must(t, g.Session(Origin{SessionID: "a"}))
	must(t, g.Call(t.Context(), Request{Name: "echo", Origin: Origin{SessionID: "a"}}).Err)
	must(t, g.Call(t.Context(), Request{Name: "echo"}).Err)
	_, lines := g.end()
	var ids []string
	for _, l := range lines {
		if l["type"] == "session" {
			ids = append(ids, l["session_id"].(string))
		}
	}
	if len(ids) != 2 || ids[0] != "a" || ids[1] != lines[0]["run_id"] {
		t.Errorf("session lines: %v", ids)
	}
}

func TestASessionLineThatFailedIsWrittenNextTime(t *testing.T) {
	s, n := newSessions().get("s"), 0
	write := func() error {
		if n++; n == 1 {
			return errors.New("no space")
		}
		return nil
	}
	if s.announce(write) == nil {
		t.Fatal("the error was swallowed")
	}
	must(t, s.announce(write))
	must(t, s.announce(write))
	if n != 2 {
		t.Errorf("written %d times", n)
	}
}
