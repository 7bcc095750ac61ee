package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"toolrun/archive"
	"toolrun/archive/audit"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/archive/trace"
	"toolrun/catalog"
	"toolrun/sandbox"
)

// boxFunc is a box that runs no process.
type boxFunc func(ctx context.Context, cmd sandbox.Command) sandbox.Result

func (f boxFunc) Run(ctx context.Context, cmd sandbox.Command) sandbox.Result { return f(ctx, cmd) }

// rig is a runner over a real data directory and boxes of the test's own.
type rig struct {
	*Runner
	t         testing.TB
	dir       *archive.Dir
	workspace string
	profiles  map[string]sandbox.Profile
}

// testCatalog declares the tools that most tests call; the program is there on every host.
const testCatalog = `
[tools.echo]
description = "says what it is told"
command = ["/bin/sh", "-c", "true", "{text}"]
risk = "READ"
[tools.echo.params.text]
type = "string"
default = ""
dash = true
[tools.never]
description = "is not called"
command = ["/bin/sh"]
risk = "READ"
optional = true
`

// newRig makes a runner of the catalog text. Every box is the given one.
func newRig(t testing.TB, text string, box Box, change ...func(*Config)) *rig {
	t.Helper()
	g := &rig{t: t, workspace: filepath.Join(t.TempDir(), "work"), profiles: make(map[string]sandbox.Profile)}
	must(t, os.MkdirAll(g.workspace, 0o755))
	file := filepath.Join(g.workspace, "tools.toml")
	must(t, os.WriteFile(file, []byte(text), 0o644))
	c, err := catalog.Load(file)
	must(t, err)
	secrets, err := c.ResolveSecrets(os.Getenv, os.ReadFile)
	must(t, err)
	g.dir, err = archive.Open(filepath.Join(t.TempDir(), "data"), archive.Options{})
	must(t, err)
	run, err := g.dir.Begin(trace.Header{
		StartedAt: time.Now(), CatalogNames: c.Names(), CatalogSHA256: c.SHA256(), SchemaSHA256: c.SchemaSHA256s(),
		DefinitionSHA256: c.DefinitionSHA256s(), CatalogDefinitionSHA256: c.DefinitionSHA256(),
	})
	must(t, err)
	cfg := Config{
		Catalog:      c,
		Archive:      g.dir,
		Run:          run,
		Rules:        redact.New(secrets),
		Secrets:      secrets,
		Workspace:    g.workspace,
		DataDir:      g.dir.Path(),
		CacheDir:     filepath.Join(t.TempDir(), "cache"),
		Path:         "/usr/bin:/bin",
		LookupEnv:    os.LookupEnv,
		AllowCommand: func(id string) string { return "toolrun allow " + id },
		MakeBox: func(p sandbox.Profile) (Box, error) {
			g.profiles[p.Name] = p
			return box, nil
		},
	}
	for _, f := range change {
		f(&cfg)
	}
	g.Runner, err = New(cfg)
	must(t, err)
	return g
}

// end closes the run and gives its rows and the lines of its trace. Every hash must open, rows and lines must pair, and no
// object may be there that nothing names.
func (g *rig) end() ([]*ledger.Row, []map[string]any) {
	g.t.Helper()
	must(g.t, g.Close())
	rows, lines := g.rows(), g.lines()
	checkPairs(g.t, rows, lines)
	report, err := audit.Verify(g.t.Context(), g.dir, audit.Options{})
	must(g.t, err)
	if len(report.Findings) > 0 || report.Unreferenced > 0 {
		g.t.Errorf("verify: %d objects that nothing names, findings %+v", report.Unreferenced, report.Findings)
	}
	must(g.t, g.dir.Close())
	return rows, lines
}

// checkPairs holds rows against the lines of the trace: for every row one tool_call and one tool_result, in this order, perhaps with
// an approval between them.
func checkPairs(t testing.TB, rows []*ledger.Row, lines []map[string]any) {
	t.Helper()
	state := make(map[any]string)
	for _, l := range lines {
		id := l["tool_call_id"]
		switch {
		case l["type"] == trace.TypeToolCall && state[id] == "":
			state[id] = "called"
		case l["type"] == trace.TypeApproval && state[id] == "called":
		case l["type"] == trace.TypeToolResult && state[id] == "called":
			state[id] = "ended"
		case id != nil:
			t.Errorf("%v of %v after %q", l["type"], id, state[id])
		}
	}
	for _, row := range rows {
		if id := row.ToolCallID.String(); state[id] != "ended" {
			t.Errorf("row %s has the trace state %q", id, state[id])
		}
	}
	if len(state) != len(rows) {
		t.Errorf("%d rows for %d calls", len(rows), len(state))
	}
}

func (g *rig) rows() (rows []*ledger.Row) {
	g.t.Helper()
	for row, err := range ledger.Rows(g.dir.Path()) {
		must(g.t, err)
		rows = append(rows, row)
	}
	return rows
}

func (g *rig) lines() (lines []map[string]any) {
	g.t.Helper()
	text, err := os.ReadFile(g.cfg.Run.Path())
	must(g.t, err)
	for line := range bytes.Lines(text) {
		var l map[string]any
		must(g.t, json.Unmarshal(line, &l))
		lines = append(lines, l)
	}
	return lines
}

// stored reads an object.
func (g *rig) stored(hash string) string {
	g.t.Helper()
	r, err := g.dir.Store.Open(hash)
	must(g.t, err)
	defer r.Close()
	b, err := io.ReadAll(r)
	must(g.t, err)
	return string(b)
}

// exits is a box whose program writes and exits.
func exits(code int, stdout, stderr string) boxFunc {
	return func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		res := sandbox.Result{Outcome: sandbox.Exited, HasExit: true, ExitCode: code, Started: time.Now(), Usage: sandbox.Usage{CPU: 3 * time.Millisecond}, Enforced: []string{"view"}}
		for _, w := range []struct {
			to   io.Writer
			text string
		}{{cmd.Stdout, stdout}, {cmd.Stderr, stderr}} {
			if w.text == "" {
				continue
			}
			if _, err := io.WriteString(w.to, w.text); err != nil {
				return sandbox.Result{Outcome: sandbox.CaptureFailed, Err: err, Started: res.Started}
			}
		}
		return res
	}
}

// sleeps is a box whose program writes and then runs until it is killed.
func sleeps(stdout string) boxFunc {
	return func(ctx context.Context, cmd sandbox.Command) sandbox.Result {
		started := time.Now()
		io.WriteString(cmd.Stdout, stdout)
		<-ctx.Done()
		return sandbox.Result{Outcome: sandbox.Cancelled, Signal: 9, Started: started}
	}
}

// lockedBuffer takes log lines of several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Builder.Write(p)
}

func args(pairs ...any) json.RawMessage {
	m := make(map[string]any)
	for i := 0; i < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newLogger(to io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
