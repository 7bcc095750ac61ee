package runner

import (
	"context"
	"os"
	"strings"
	"testing"

	"toolrun/archive"
	"toolrun/archive/ledger"
	"toolrun/archive/trace"
	"toolrun/sandbox"
)

const outputCatalog = testCatalog + `
[tools.output]
builtin = "output"
risk = "READ"
preview = "1KiB"
`

func TestTheBuiltinReadsAStoredOutputOfItsOwnSession(t *testing.T) {
	text := string(numbered(1000))
	g := newRig(t, outputCatalog, exits(0, text, "warned\n"))
	ask := func(session string, pairs ...any) Reply {
		reply := g.Call(t.Context(), Request{Name: "output", Arguments: args(pairs...), Origin: Origin{SessionID: session}})
		must(t, reply.Err)
		return reply
	}
	made := g.Call(t.Context(), Request{Name: "echo", Origin: Origin{SessionID: "mine"}})
	hash, errHash := string(made.Row.OutputHash), string(made.Row.StderrHash)

	if got := ask("mine", "hash", hash, "offset", 100, "length", 50); got.IsError() || got.Stdout.Text != text[100:150] || got.Row.ExitCode != nil ||
		got.Row.Outcome != ledger.OutcomeOK || got.Stderr.Text != "50 bytes from offset 100 of 25890\n" || !got.Row.Argv.IsNull() {
		t.Errorf("a part: %+v", got.Facts())
	}
	if got := ask("mine", "hash", hash); got.Stdout.Text != text[:1024] || got.Stdout.LeftOut != 0 {
		t.Errorf("the default length is not what the preview shows: %d bytes, %d left out", len(got.Stdout.Text), got.Stdout.LeftOut)
	}
	if got := ask("mine", "hash", hash, "offset", 1<<40); got.IsError() || got.Stdout.Text != "" || !strings.Contains(got.Stderr.Text, "of 25890") {
		t.Errorf("behind the end: %+v", got.Facts())
	}
	if got := ask("mine", "hash", errHash); got.Stdout.Text != "warned\n" {
		t.Errorf("stderr: %+v", got.Facts())
	}
	for session, h := range map[string]string{"other": hash, "mine": strings.Repeat("0", 64)} {
		if got := ask(session, "hash", h); got.Row.Outcome != ledger.OutcomeInvalidArguments || got.Row.Status != "blocked" || strings.Contains(got.Text(), text[:20]) || !strings.Contains(got.Message, `"hash"`) {
			t.Errorf("%s: %+v", session, got.Facts())
		}
	}
	must(t, os.WriteFile(g.dir.Store.Path(errHash), []byte("tampered"), 0o600))
	if got := ask("mine", "hash", errHash); got.Row.Outcome != ledger.OutcomeCaptureFailed || strings.Contains(got.Text(), "tampered") || !strings.Contains(got.Text(), "corrupt") {
		t.Errorf("a corrupt object: %+v", got.Facts())
	}
	must(t, os.WriteFile(g.dir.Store.Path(errHash), []byte("warned\n"), 0o600))
	g.end()
}

func TestTheBuiltinFindsOutputsOfTheSessionsEarlierRuns(t *testing.T) {
	g := newRig(t, outputCatalog, exits(0, "from before\n", ""))
	made := g.Call(t.Context(), Request{Name: "echo", Origin: Origin{SessionID: "mine"}})
	must(t, made.Err)
	g.end()

	dir, err := archive.Open(g.dir.Path(), archive.Options{})
	must(t, err)
	cfg := g.cfg
	cfg.Archive = dir
	cfg.Run, err = dir.Begin(trace.Header{CatalogNames: cfg.Catalog.Names(), CatalogSHA256: cfg.Catalog.SHA256()})
	must(t, err)
	cfg.MakeBox = func(sandbox.Profile) (Box, error) {
		return boxFunc(func(context.Context, sandbox.Command) sandbox.Result { return sandbox.Result{} }), nil
	}
	later, err := New(cfg)
	must(t, err)
	for session, outcome := range map[string]string{"mine": ledger.OutcomeOK, "other": ledger.OutcomeInvalidArguments} {
		reply := later.Call(t.Context(), Request{Name: "output", Arguments: args("hash", string(made.Row.OutputHash)), Origin: Origin{SessionID: session}})
		must(t, reply.Err)
		if reply.Row.Outcome != outcome || (outcome == ledger.OutcomeOK) != (reply.Stdout.Text == "from before\n") {
			t.Errorf("%s: %+v", session, reply.Facts())
		}
	}
	must(t, later.Close())
	must(t, dir.Close())
}
