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
	"sync"
	"sync/atomic"
	"testing"

	"toolrun/archive"
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
		t.Errorf("err %v, row %v, ran %d times", reply.Err, reply.Row, ran)
	}
	if !strings.Contains(reply.Text(), "ledger unavailable") || !reply.IsError() || reply.Facts().Status != "error" {
		t.Errorf("text %q, facts %+v", reply.Text(), reply.Facts())
	}
	reply = g.Call(t.Context(), again)
	must(t, reply.Err)
	if reply.Row.Outcome != OutcomeOK {
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
	if row.Outcome != OutcomeCaptureFailed || row.Status != ledger.StatusError || row.ErrorType != "CaptureError" || row.OutputHash != "" || row.OutputBytes != 1<<20 {
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

// secretCatalog declares a secret and a tool that is told it.
const secretCatalog = `
[secrets]
TOKEN = { env = "RUNNER_TEST_TOKEN" }
[tools.echo]
description = "gets the secret"
command = ["/bin/sh", "{text}"]
risk = "READ"
env = { TOKEN = "$secret:TOKEN" }
[tools.echo.params.text]
type = "string"
default = ""
dash = true
`

func TestSecretsReachTheToolAndNothingElse(t *testing.T) {
	const token = "sentinel-7731-token"
	t.Setenv("RUNNER_TEST_TOKEN", token)
	shape := "ghp_" + strings.Repeat("Q", 36)
	var log lockedBuffer
	var got sandbox.Command
	g := newRig(t, secretCatalog, boxFunc(func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		got = cmd
		return exits(3, "out "+token+" "+shape+"\n", "err "+token+" "+shape+"\n")(ctx, cmd)
	}), func(c *Config) {
		c.Logger = newLogger(&log)
	})
	origin := Origin{CallID: token, SessionID: "s-" + token, TurnID: token, Model: token, Provider: token, ParentCallID: token, Client: token}
	var said strings.Builder
	say := func(r Reply) {
		must(t, r.Err)
		fmt.Fprintf(&said, "%s %+v\n", r.Text(), r.Facts())
	}
	say(g.Call(t.Context(), Request{Name: "echo", Arguments: args("text", token+" "+shape), Origin: origin}))
	if got.Argv[1] != token+" "+shape || !slices.Contains(got.Env, "TOKEN="+token) {
		t.Errorf("the tool got %q, %q", got.Argv, got.Env)
	}
	say(g.Call(t.Context(), Request{Name: "tool-" + token, Arguments: args(token, token)}))
	say(g.Call(t.Context(), Request{Name: "echo", Arguments: args("text", 1, token, shape)}))
	say(g.Call(t.Context(), Request{Name: "echo", Arguments: []byte(`"` + token)}))
	rows, _ := g.end()
	if rows[0].Redactions < 6 || !slices.Contains(rows[0].Flags, FlagRedacted) {
		t.Errorf("redactions %d, flags %v", rows[0].Redactions, rows[0].Flags)
	}
	said.WriteString(log.String() + allFiles(t, g.dir.Path()))
	for _, secret := range []string{token, shape} {
		if i := strings.Index(said.String(), secret); i >= 0 {
			t.Errorf("a secret leaked: …%s…", said.String()[max(i-200, 0):i+len(secret)])
		}
	}
}

// allFiles is the content of every file below dir.
func allFiles(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all.Write(b)
		return err
	}))
	return all.String()
}

func TestRedactFalseLiftsShapesAndNoDeclaredSecret(t *testing.T) {
	const token = "sentinel-7731-token"
	t.Setenv("RUNNER_TEST_TOKEN", token)
	shape := "ghp_" + strings.Repeat("Q", 36)
	g := newRig(t, strings.Replace(secretCatalog, `risk = "READ"`, "risk = \"READ\"\nredact = false", 1), exits(0, token+" "+shape, ""))
	reply := g.Call(t.Context(), Request{Name: "echo", Arguments: args("text", token+" "+shape)})
	must(t, reply.Err)
	if want := "[REDACTED] " + shape; reply.Stdout.Text != want || g.stored(string(reply.Row.OutputHash)) != want || g.stored(reply.Row.InputHash) != `{"text":"`+want+`"}` {
		t.Errorf("output %q, input %s", reply.Stdout.Text, g.stored(reply.Row.InputHash))
	}
	g.end()
}

func TestPayloadsHashKeepsHashesAndDropsContent(t *testing.T) {
	g := newRig(t, testCatalog, exits(2, "private-out\n", "private-err\n"), func(c *Config) { c.Payloads = PayloadsHash })
	with := newRig(t, testCatalog, exits(2, "private-out\n", "private-err\n"))
	reply := g.Call(t.Context(), Request{Name: "echo", Arguments: args("text", "private-in")})
	must(t, reply.Err)
	if reply.Stdout.Text != "private-out\n" {
		t.Errorf("the caller gets %q", reply.Stdout.Text)
	}
	same := with.Call(t.Context(), Request{Name: "echo", Arguments: args("text", "private-in")})
	rows, _ := g.end()
	with.end()
	row := rows[0]
	if row.Payloads != "hash" || row.InputHash != same.Row.InputHash || row.OutputHash != same.Row.OutputHash || row.StderrHash != same.Row.StderrHash || row.ErrorMessage.String() != "exit status 2" {
		t.Errorf("%q %s %s %s %q", row.Payloads, row.InputHash, row.OutputHash, row.StderrHash, row.ErrorMessage)
	}
	if strings.Contains(allFiles(t, g.dir.Path()), "private") {
		t.Error("content is in the data directory")
	}
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
			if row := reply.Row; row.Outcome != OutcomeInterrupted || row.ErrorType != "InterruptedError" || !slices.Contains(row.Flags, FlagPanic) {
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

func TestTwoHundredConcurrentCallsKeepTheInvariants(t *testing.T) {
	var path atomic.Value
	var running, most, ran atomic.Int64
	g := newRig(t, testCatalog, boxFunc(func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		ran.Add(1)
		text, err := os.ReadFile(path.Load().(string))
		if err != nil || !strings.Contains(string(text), `"arguments":{"text":"`+cmd.Argv[3]+`"}`) {
			t.Errorf("call %s started before its tool_call line", cmd.Argv[3])
		}
		return exits(len(cmd.Argv[3])%2, strings.Repeat(cmd.Argv[3]+"\n", 3000), cmd.Argv[3])(ctx, cmd)
	}))
	path.Store(g.cfg.Run.Path())
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			req := Request{Name: "echo", Arguments: args("text", fmt.Sprintf("n%d.", i)), Origin: Origin{CallID: fmt.Sprint("c", i), SessionID: fmt.Sprint("s", i%7), TurnID: fmt.Sprint(i % 5)}}
			switch i % 10 {
			case 3:
				req.Name = "invented"
			case 4:
				req.Origin.CallID = "c0"
			case 5:
				req.Arguments = args("text", i)
			case 6:
				cancel(ErrCancelled)
			}
			reply := g.Call(ctx, req)
			if reply.Err != nil {
				t.Error(reply.Err)
				return
			}
			found := false
			for row, err := range ledger.Rows(g.dir.Path()) {
				found = found || err == nil && row.Seq == reply.Row.Seq && row.ToolCallID == reply.Row.ToolCallID
			}
			if !found {
				t.Errorf("an answer without its row: %s", reply.Row.ToolCallID)
			}
		})
	}
	wg.Wait()
	rows, _ := g.end()
	if len(rows) != 200 || ran.Load() != 120 || most.Load() > DefaultJobs {
		t.Errorf("%d rows, %d ran, at most %d at a time", len(rows), ran.Load(), most.Load())
	}
	outcomes := make(map[string]int)
	for i, row := range rows {
		outcomes[row.Outcome]++
		if row.Seq != int64(i) {
			t.Errorf("row %d has seq %d", i, row.Seq)
		}
	}
	if outcomes[OutcomeUnknownTool] != 20 || outcomes[OutcomeDuplicateID] < 19 || outcomes[OutcomeInvalidArguments] != 20 || outcomes[OutcomeCancelled] != 20 {
		t.Errorf("outcomes: %v", outcomes)
	}
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

func TestDurabilityRowSyncsTheLineBeforeTheTool(t *testing.T) {
	g := newRig(t, testCatalog, exits(0, "x", ""), func(c *Config) { c.Archive.Config.Durability = archive.PerRow })
	must(t, g.Call(t.Context(), Request{Name: "echo"}).Err)
	g.end()
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
