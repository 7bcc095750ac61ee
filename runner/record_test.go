package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toolrun/archive/ledger"
	"toolrun/archive/trace"
	"toolrun/sandbox"
)

// takeAway puts something in the place of a file or folder of the data directory with which nobody can work, until the
// returned function runs.
func (g *rig) takeAway(name string) (restore func()) {
	g.t.Helper()
	path := filepath.Join(g.dir.Path(), name)
	info, err := os.Stat(path)
	must(g.t, err)
	must(g.t, os.Rename(path, path+".away"))
	if info.IsDir() {
		must(g.t, os.WriteFile(path, nil, 0o600))
	} else {
		must(g.t, os.Mkdir(path, 0o700))
	}
	return func() {
		must(g.t, os.Remove(path))
		must(g.t, os.Rename(path+".away", path))
	}
}

func TestWhatCannotBeRecordedDoesNotRunAndLaterWorksAgain(t *testing.T) {
	ran := 0
	g := newRig(t, testCatalog, boxFunc(func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		ran++
		return exits(0, "", "")(ctx, cmd)
	}))
	must(t, g.Call(t.Context(), Request{Name: "echo"}).Err)
	again := Request{Name: "echo", Arguments: args("text", "new"), Origin: Origin{CallID: "again"}}
	restore := g.takeAway("store")
	reply := g.Call(t.Context(), again)
	restore()
	if !errors.Is(reply.Err, ErrLedgerUnavailable) || reply.Row != nil || ran != 1 {
		t.Fatalf("err %v, row %v, ran %d times", reply.Err, reply.Row, ran)
	}
	if strings.Count(reply.Err.Error(), "ledger unavailable") != 1 || !strings.Contains(reply.Text(), "ledger unavailable") || !reply.IsError() || reply.Facts().Status != "error" {
		t.Errorf("text %q, facts %+v", reply.Text(), reply.Facts())
	}
	reply = g.Call(t.Context(), again)
	must(t, reply.Err)
	if reply.Row.Outcome != ledger.OutcomeOK {
		t.Errorf("the same id after it was refused for want of space: %s", reply.Row.Outcome)
	}
	if rows, _ := g.end(); len(rows) != 2 {
		t.Errorf("%d rows", len(rows))
	}
}

func TestARowThatCouldNotBeWrittenIsWrittenBeforeTheNextToolStarts(t *testing.T) {
	var restore func()
	g := newRig(t, testCatalog, nil)
	ran := 0
	g.plans["echo"].box = boxFunc(func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		if ran++; ran == 1 {
			restore = g.takeAway("ledger.jsonl")
		} else if rows := g.rows(); len(rows) != 1 || rows[0].ToolCallID.String() != "first" {
			t.Errorf("the next tool started with %d rows", len(rows))
		}
		return exits(0, "", "")(ctx, cmd)
	})
	reply := g.Call(t.Context(), Request{Name: "echo", Origin: Origin{CallID: "first"}})
	if !errors.Is(reply.Err, ErrLedgerUnavailable) || reply.Row != nil {
		t.Errorf("an answer without a row: %+v", reply)
	}
	if reply := g.Call(t.Context(), Request{Name: "echo"}); !errors.Is(reply.Err, ErrLedgerUnavailable) || ran != 1 {
		t.Error("a tool ran while a row was owed")
	}
	restore()
	must(t, g.Call(t.Context(), Request{Name: "echo", Origin: Origin{CallID: "second"}}).Err)
	rows, _ := g.end()
	if len(rows) != 2 || rows[1].ToolCallID.String() != "second" {
		t.Errorf("%d rows", len(rows))
	}
}

func TestOutputThatCannotBeStoredEndsTheToolAndIsOnTheRecord(t *testing.T) {
	var restore func()
	g := newRig(t, testCatalog, nil)
	g.plans["echo"].box = boxFunc(func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		restore = g.takeAway("store")
		return exits(0, strings.Repeat("z", 1<<20), "")(ctx, cmd)
	})
	reply := g.Call(t.Context(), Request{Name: "echo"})
	restore()
	must(t, reply.Err)
	row := reply.Row
	if row.Outcome != ledger.OutcomeCaptureFailed || row.Status != ledger.StatusError || row.ErrorType != "CaptureError" || row.OutputHash != "" || row.OutputBytes != 1<<20 {
		t.Errorf("%s %s %s %q %d", row.Outcome, row.Status, row.ErrorType, row.OutputHash, row.OutputBytes)
	}
	if !strings.HasPrefix(reply.Stdout.Text, "zzz") {
		t.Error("what was captured is not in the reply")
	}
	g.end()
	noTemporaryFiles(t, g.dir.Path())
}

func noTemporaryFiles(t *testing.T, dir string) {
	t.Helper()
	must(t, filepath.WalkDir(filepath.Join(dir, "store"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(path, ".txt") {
			t.Errorf("left over: %s", path)
		}
		return err
	}))
}

func TestAPanicOfTheRunnerIsTheEndOfOneCallOnTheRecord(t *testing.T) {
	for name, breakIt := range map[string]func(*Runner){
		"while the arguments are read": func(r *Runner) { r.onlyDeclared = nil },
		"while the tool is started":    func(r *Runner) { r.exes = nil },
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, strings.Replace(testCatalog, `risk = "READ"`, "risk = \"READ\"\nredact = false", 1), exits(0, "", ""))
			breakIt(g.Runner)
			reply := g.Call(t.Context(), Request{Name: "echo"})
			must(t, reply.Err)
			if row := reply.Row; row.Outcome != ledger.OutcomeInterrupted || row.ErrorType != "InterruptedError" || !slices.Contains(row.Flags, FlagPanic) {
				t.Errorf("%s %s %v", row.Outcome, row.ErrorType, row.Flags)
			}
			if running, _ := g.gate.load(); running != 0 {
				t.Errorf("%d places are lost", running)
			}
			if rows, _ := g.end(); len(rows) != 1 {
				t.Errorf("%d rows", len(rows))
			}
		})
	}
}

func TestAPanicBeforeAnythingCanBeRecordedIsAnAnswerAllTheSame(t *testing.T) {
	g := newRig(t, testCatalog, mustNotRun(t))
	sessions := g.sessions
	g.sessions = nil
	if reply := g.Call(t.Context(), Request{Name: "echo"}); !errors.Is(reply.Err, ErrLedgerUnavailable) {
		t.Errorf("%+v", reply)
	}
	g.sessions = sessions
	g.end()
}

func TestCloseNamesWhatNobodyCalled(t *testing.T) {
	g := newRig(t, testCatalog+`
[tools.idle]
description = "nobody calls it"
command = ["/bin/sh"]
risk = "READ"
`, exits(0, "", ""))
	must(t, g.Call(t.Context(), Request{Name: "echo", Arguments: args("text", 1)}).Err) // refused, but called
	_, lines := g.end()
	last := lines[len(lines)-1]
	if last["type"] != trace.TypeUnused || fmt.Sprint(last["unused_names"], last["flags"]) != "[idle] [UNUSED_TOOL]" {
		t.Errorf("last line: %v", last)
	}
	if reply := g.Call(t.Context(), Request{Name: "echo"}); !errors.Is(reply.Err, ErrLedgerUnavailable) {
		t.Errorf("a call after Close: %+v", reply)
	}
	must(t, g.Close())
}

func TestCostIsAnEstimateOnlyWhereAllIsKnown(t *testing.T) {
	g := newRig(t, testCatalog+`
[prices]
"anthropic/claude" = [3.0, 15.0]
"anthropic/" = [1.0, 1.0]
"ollama/" = [0.0, 0.0]
`, exits(0, "", ""))
	n := func(v int64) *int64 { return &v }
	for _, c := range []struct {
		o    Origin
		want float64 // NaN: null
	}{
		{Origin{Provider: "anthropic", Model: "Claude-Sonnet", InputTokens: n(1000), OutputTokens: n(333)}, 0.007995},
		{Origin{Provider: "anthropic", Model: "other", InputTokens: n(1), OutputTokens: n(2)}, 0.000003},
		{Origin{Provider: "ollama", Model: "qwen", InputTokens: n(1000), OutputTokens: n(1)}, 0},
		{Origin{Provider: "openai", Model: "gpt", InputTokens: n(1), OutputTokens: n(1)}, math.NaN()},
		{Origin{Model: "claude", InputTokens: n(1), OutputTokens: n(1)}, math.NaN()},
		{Origin{Provider: "anthropic", Model: "claude", InputTokens: n(1)}, math.NaN()},
		{Origin{Provider: "anthropic", Model: "claude", InputTokens: n(-1), OutputTokens: n(1)}, math.NaN()},
	} {
		reply := g.Call(t.Context(), Request{Name: "echo", Origin: c.o})
		must(t, reply.Err)
		got := math.NaN()
		if reply.Row.EstimatedCostUSD != nil {
			got = *reply.Row.EstimatedCostUSD
		}
		if got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%+v: %v, want %v", c.o, got, c.want)
		}
	}
	g.end()
}
