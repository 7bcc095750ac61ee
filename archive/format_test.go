package archive_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"toolrun/archive"
	"toolrun/archive/evidence"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/archive/trace"
)

// FORMAT.md shows a directory as it is after this. Where the test fails, the document is wrong, or the format changed.
func TestFormatShowsWhatIsWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	clock := time.Date(2026, 11, 30, 18, 5, 12, 123_000_000, time.UTC)
	d, err := archive.Open(dir, archive.Options{Now: func() time.Time { return clock }})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := os.WriteFile(filepath.Join(dir, evidence.KeyName), []byte(sampleKey(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	if fresh, err := d.Ledger.Claim("toolu_01A"); err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	run, err := d.Begin(sampleHeader(clock))
	if err != nil {
		t.Fatal(err)
	}
	client := redact.Plain("claude-code/2.1.332")
	if err := run.Session(trace.Session{SessionID: redact.Plain("9c1f"), Client: &client, Protocol: "2025-11-25"}); err != nil {
		t.Fatal(err)
	}
	sampleCall(t, d, run, &clock, client)
	sampleRefusal(t, d, run, client)
	if err := run.RejectedLine(-32700, 7, sha("{\"id\":1")); err != nil {
		t.Fatal(err)
	}
	if err := d.End(run, []string{"git_log"}); err != nil {
		t.Fatal(err)
	}
	tear(t, filepath.Join(dir, "ledger.jsonl"), `{"tool_call_id":"tor`)
	other, err := archive.Open(dir, archive.Options{Now: func() time.Time { return clock }})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()

	doc, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := other.Receipt("3f2a9c10-2")
	if err != nil {
		t.Fatal(err)
	}
	if want := "A receipt of the second call:\n```\n" + receipt.String() + "```\n"; !strings.Contains(string(doc), want) {
		t.Errorf("FORMAT.md does not show\n%s", want)
	}
	for _, name := range []string{"checkpoint.pub", "checkpoints", "ledger.jsonl", "runs/" + run.ID() + ".jsonl", "ledger.damaged", "store/" + sha("FAIL\tdemo\n")[:2] + "/" + sha("FAIL\tdemo\n") + ".txt"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if want := "`" + name + "`:\n```\n" + string(b) + "```\n"; !strings.Contains(string(doc), want) {
			t.Errorf("FORMAT.md does not show\n%s", want)
		}
	}
	verify(t, dir)
}

// sampleKey is a private key that everybody knows.
func sampleKey(t *testing.T) string {
	t.Helper()
	const name = "toolrun/0123456789abcdef"
	seed := make([]byte, ed25519.SeedSize)
	public, err := note.NewEd25519VerifierKey(name, ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	id := public[:strings.LastIndex(public[:len(name)+10], "+")]
	return "PRIVATE+KEY+" + id + "+" + base64.StdEncoding.EncodeToString(append([]byte{1}, seed...)) + "\n"
}

func sha(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func sampleHeader(at time.Time) trace.Header {
	return trace.Header{
		RunID: "3f2a9c10-5b1e-4c57-9a41-7d0f3c2b8e66", StartedAt: at, CatalogNames: []string{"git_log", "go_test"}, CatalogSHA256: sha(`["git_log","go_test"]`),
		SchemaSHA256: map[string]string{"git_log": sha("1"), "go_test": sha("2")}, DefinitionSHA256: map[string]string{"git_log": sha("3"), "go_test": sha("4")},
		CatalogDefinitionSHA256: sha(`{"git_log":"` + sha("3") + `","go_test":"` + sha("4") + `"}`), Version: "0.1.0", Host: "build-7", PID: 4711,
	}
}

func sampleCall(t *testing.T, d *archive.Dir, run *trace.Run, clock *time.Time, client redact.Text) {
	t.Helper()
	text := func(s string) *redact.Text { v := redact.Plain(s); return &v }
	args, err1 := rules.JSON([]byte(`{"package":"./..."}`))
	argv, err2 := rules.JSON([]byte(`["go","test","./..."]`))
	in, err3 := d.Store.Put(args)
	row := &ledger.Row{
		ToolCallID: redact.Plain("toolu_01A"), SessionID: redact.Plain("9c1f"), SessionFrom: "env", Turn: 1, ToolName: redact.Plain("go_test"), RiskClass: "READ",
		Attempt: 1, StartedAt: ledger.FormatTime(*clock), InputSummary: redact.Summary(args.Text(), 300), InputHash: in, Model: text("claude-sonnet-4-5"), Seq: -1, RunID: run.ID(),
		ClientCallID: text("toolu_01A"), CatalogSHA256: sha(`["git_log","go_test"]`), SchemaSHA256: ledger.OrNull(sha("2")), DefinitionSHA256: ledger.OrNull(sha("4")), Known: true,
		Flags: []string{}, Client: &client,
	}
	err4 := run.ToolCall(trace.Call{Row: row, Arguments: args})
	*clock = clock.Add(456 * time.Millisecond)
	out, err5 := d.Store.Put(redact.Plain("FAIL\tdemo\n"))
	row.Status, row.Outcome, row.ErrorType, row.ErrorMessage, row.ExitCode = ledger.StatusError, "exit", "ExitError", text("exit status 1"), new(1)
	row.EndedAt, row.DurationMS = ledger.FormatTime(*clock), 456
	row.OutputHash, row.OutputSummary, row.OutputBytes, row.StoredBytes = ledger.OrNull(out), redact.Plain("FAIL demo"), 10, 10
	row.Argv, row.ExePath, row.ExeSHA256, row.Cwd, row.User = argv, text("/usr/local/go/bin/go"), ledger.OrNull(sha("5")), text("."), "0:0"
	row.CPUMS, row.MemoryPeakBytes, row.OOMKills, row.PidsLimitHit, row.Enforced = new(int64(311)), new(int64(48234496)), new(int64(0)), new(false), []string{"cgroup.memory", "cgroup.pids", "ns.pid", "view"}
	err6 := d.Commit(run, row)
	err7 := run.ToolResult(trace.Result{Row: row, Head: redact.Plain("FAIL\tdemo\n")})
	for _, err := range []error{err1, err2, err3, err4, err5, err6, err7} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func sampleRefusal(t *testing.T, d *archive.Dir, run *trace.Run, client redact.Text) {
	t.Helper()
	args, err1 := rules.JSON([]byte(`{}`))
	in, err2 := d.Store.Put(args)
	message := redact.Plain("unknown tool: run_tests")
	at := "2026-11-30T18:05:12.579Z"
	row := &ledger.Row{
		ToolCallID: redact.Plain("3f2a9c10-2"), SessionID: redact.Plain("9c1f"), SessionFrom: "env", Turn: 1, ToolName: redact.Plain("run_tests"), Status: ledger.StatusBlocked, Attempt: 1,
		StartedAt: at, EndedAt: at, InputSummary: redact.Plain("{}"), InputHash: in, ErrorType: "UnknownTool", ErrorMessage: &message, Seq: -1, RunID: run.ID(),
		CatalogSHA256: sha(`["git_log","go_test"]`), Flags: []string{trace.FlagUnknownTool}, Outcome: "unknown_tool", Client: &client,
	}
	err3 := run.ToolCall(trace.Call{Row: row, Arguments: args})
	err4 := d.Commit(run, row)
	err5 := run.ToolResult(trace.Result{Row: row})
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestFormatNamesEveryKey(t *testing.T) {
	doc, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := ledger.Keys()
	line := reflect.TypeFor[trace.Line]()
	for i := range line.NumField() {
		if name, _, _ := strings.Cut(line.Field(i).Tag.Get("json"), ","); name != "-" {
			keys = append(keys, name)
		}
	}
	if len(keys) < 80 {
		t.Errorf("only %d keys", len(keys))
	}
	for _, key := range keys {
		if !regexp.MustCompile("`" + key + "`").Match(doc) {
			t.Errorf("FORMAT.md does not name `%s`", key)
		}
	}
	for outcome, ending := range ledger.Endings {
		if !strings.Contains(string(doc), "`"+outcome+"`") || !strings.Contains(string(doc), string(ending.ErrorType)) {
			t.Errorf("FORMAT.md does not name outcome %s, %s", outcome, ending.ErrorType)
		}
	}
}
