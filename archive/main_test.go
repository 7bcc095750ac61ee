package archive_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"toolrun/archive"
	"toolrun/archive/audit"
	"toolrun/archive/held"
	"toolrun/archive/internal/breakpoint"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/archive/trace"
)

// The test binary runs itself as another process: what TestMain finds in these variables it does in place of the tests.
const (
	childDir   = "ARCHIVE_DIR"   // the data directory
	childDo    = "ARCHIVE_DO"    // "life", "recover", …: see below
	childBreak = "ARCHIVE_BREAK" // "n how": breakpoint.At
	childPower = "ARCHIVE_POWER" // "n seed image": breakpoint.PowerLoss
)

func TestMain(m *testing.M) {
	dir := os.Getenv(childDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	if n, how, ok := strings.Cut(os.Getenv(childBreak), " "); ok {
		step, err := strconv.Atoi(n)
		if err != nil {
			panic(err)
		}
		breakpoint.At(step, how, false)
	}
	if power := os.Getenv(childPower); power != "" {
		var n int
		var seed uint64
		var image string
		if _, err := fmt.Sscan(power, &n, &seed, &image); err != nil {
			panic(err)
		}
		breakpoint.PowerLoss(dir, n, seed, image)
	}
	d, err := archive.Open(dir, archive.Options{})
	if err != nil {
		panic(err)
	}
	n, err := d.Recover("the test's child")
	if err != nil {
		panic(err)
	}
	switch os.Getenv(childDo) {
	case "life":
		life(d)
	case "recover":
		fmt.Println(n)
	case "hold":
		holdOpen(d)
	case "asked":
		asked(d)
	case "covered":
		covered(d)
	case "write":
		writeOn(d)
	case "seal":
		sealAll(d)
	case "lock":
		_ = d.Ledger.Locked(func() error { fmt.Println("held"); select {} })
	}
	if err := d.Close(); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// child is this binary as another process.
func child(t testing.TB, dir, do, broken string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir, childDo+"="+do, childBreak+"="+broken)
	cmd.Stderr = os.Stderr
	return cmd
}

var rules = redact.New(nil)

func header() trace.Header {
	hash := strings.Repeat("ab", 32)
	return trace.Header{
		StartedAt: time.Now(), CatalogNames: []string{"echo"}, CatalogSHA256: hash, SchemaSHA256: map[string]string{"echo": hash},
		DefinitionSHA256: map[string]string{"echo": hash}, CatalogDefinitionSHA256: hash, Version: "test", Host: "here", PID: os.Getpid(),
	}
}

// call is one call as the runner makes it, step by step.
type call struct {
	d    *archive.Dir
	run  *trace.Run
	row  *ledger.Row
	args redact.JSON
	held bool
}

func newCall(d *archive.Dir, run *trace.Run, id string) (*call, error) {
	args, err := rules.JSON([]byte(`{"text":"` + id + `"}`))
	if err != nil {
		return nil, err
	}
	at := ledger.FormatTime(time.Now())
	return &call{d: d, run: run, args: args, row: &ledger.Row{
		ToolCallID: redact.Plain(id), SessionID: redact.Plain("s"), SessionFrom: "meta", ToolName: redact.Plain("echo"), RiskClass: "READ", Attempt: 1, Turn: 1,
		StartedAt: at, EndedAt: at, InputSummary: redact.Summary(args.Text(), 300), RunID: run.ID(), Known: true,
		CatalogSHA256: strings.Repeat("ab", 32), SchemaSHA256: ledger.OrNull(strings.Repeat("ab", 32)), Flags: []string{}, Seq: -1,
	}}, nil
}

// start puts the call on the record before anything of it runs: the input object, then the tool_call line.
func (c *call) start() (err error) {
	if c.row.InputHash, err = c.d.Store.Put(c.args); err != nil {
		return fmt.Errorf("%w: %w", archive.ErrUnavailable, err)
	}
	return c.d.Announce(c.run, trace.Call{Row: c.row, Arguments: c.args, Held: c.held})
}

// answer is a person's answer, where the call is held.
func (c *call) answer(status string) error {
	by, err := rules.JSON([]byte(`{"via":"terminal","uid":0,"tty":"/dev/pts/1","pid":1,"exe":"/bin/toolrun"}`))
	if err != nil || !c.held {
		return err
	}
	if err := c.d.Approve(c.run, trace.Approval{Row: c.row, Answer: status, By: by}); err != nil {
		return err
	}
	c.row.ApprovalStatus, c.row.ApprovedBy = ledger.OrNull(status), by
	return nil
}

func (c *call) allow() error { return c.answer(ledger.ApprovalApproved) }

func (c *call) capture() error {
	text := redact.Plain("output of " + c.row.ToolCallID.String())
	hash, err := c.d.Store.Put(text)
	if err != nil {
		c.row.Status, c.row.Outcome, c.row.ErrorType = ledger.StatusError, "capture_failed", "CaptureError"
		c.row.OutputBytes = int64(len(text.String()))
		return err
	}
	c.row.OutputHash, c.row.OutputSummary, c.row.OutputBytes = ledger.OrNull(hash), text, int64(len(text.String()))
	c.row.StoredBytes = c.row.OutputBytes
	code := 0
	c.row.Status, c.row.Outcome, c.row.ExitCode = ledger.StatusSuccess, "ok", &code
	return nil
}

func (c *call) commit() error { return c.d.Commit(c.run, c.row) }

func (c *call) result() error {
	return c.run.ToolResult(trace.Result{Row: c.row, Head: c.row.OutputSummary})
}

func (c *call) all() error {
	for _, step := range []func() error{c.start, c.allow, c.capture, c.commit, c.result} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// life is a run of two calls in order, the second of them held; what is acknowledged is printed.
func life(d *archive.Dir) {
	run, err := d.Begin(header())
	if err != nil {
		panic(err)
	}
	if err := run.Session(trace.Session{SessionID: redact.Plain("s"), Protocol: "2025-11-25"}); err != nil {
		panic(err)
	}
	for i := range 2 {
		id := fmt.Sprintf("%s-%d", run.ID()[:8], i+1)
		if i == 1 {
			id = "client_" + run.ID()[:4]
			if fresh, err := d.Ledger.Claim(id); err != nil || !fresh {
				panic(err)
			}
		}
		c, err := newCall(d, run, id)
		if err == nil {
			c.held = i == 1
			err = c.all()
		}
		if err != nil {
			panic(err)
		}
		fmt.Println(id)
	}
	if err := d.End(run, nil); err != nil {
		panic(err)
	}
}

// asked begins a run with three held calls, one that nobody answered, one allowed and one denied, and waits to be killed.
func asked(d *archive.Dir) {
	run, err := d.Begin(header())
	if err != nil {
		panic(err)
	}
	for i, answer := range []string{"", ledger.ApprovalApproved, ledger.ApprovalDenied} {
		c, err := newCall(d, run, fmt.Sprintf("%s-%d", run.ID()[:8], i+1))
		if err == nil {
			c.held = true
			err = c.start()
		}
		if err == nil && answer != "" {
			err = c.answer(answer)
		}
		if err == nil {
			_, err = held.NewDesk(d.Path(), run.ID(), time.Now).Hold(held.Call{ToolCallID: c.row.ToolCallID}, time.Now().Add(time.Hour))
		}
		if err != nil {
			panic(err)
		}
		_ = os.Remove(filepath.Join(d.Path(), held.DirName, run.ID()+".sock")) // the next desk makes it anew
	}
	fmt.Println(run.ID())
	select {}
}

// covered is a run of three calls with a checkpoint before the last; what is acknowledged is printed, and how many rows a
// checkpoint covers.
func covered(d *archive.Dir) {
	run, err := d.Begin(header())
	if err != nil {
		panic(err)
	}
	for i := range 3 {
		if i == 2 {
			c, err := d.Checkpoint()
			if err != nil {
				panic(err)
			}
			fmt.Println("covered", c.Tree.N, c.OneLine())
		}
		id := fmt.Sprintf("%s-%d", run.ID()[:8], i+1)
		c, err := newCall(d, run, id)
		if err == nil {
			err = c.all()
		}
		if err != nil {
			panic(err)
		}
		fmt.Println(id)
	}
	if err := d.End(run, nil); err != nil {
		panic(err)
	}
	c := d.Newest()
	fmt.Println("covered", c.Tree.N, c.OneLine())
}

// writeOn makes calls until it is killed, with a checkpoint now and then; what is acknowledged is printed.
func writeOn(d *archive.Dir) {
	for {
		run, err := d.Begin(header())
		if err != nil {
			panic(err)
		}
		for i := range 10 {
			id := fmt.Sprintf("%s-%d", run.ID()[:8], i+1)
			c, err := newCall(d, run, id)
			if err == nil {
				err = c.all()
			}
			if err == nil && i == 5 {
				_, err = d.Checkpoint()
			}
			if err != nil {
				panic(err)
			}
			fmt.Println(id)
		}
		if err := d.End(run, nil); err != nil {
			panic(err)
		}
	}
}

// holdOpen begins a run with three calls, one of them done, one with its row, one only begun, and waits to be killed.
func holdOpen(d *archive.Dir) {
	run, err := d.Begin(header())
	if err != nil {
		panic(err)
	}
	for i := range 3 {
		c, err := newCall(d, run, fmt.Sprintf("%s-%d", run.ID()[:8], i+1))
		if err != nil {
			panic(err)
		}
		for _, step := range []func() error{c.start, c.capture, c.commit, c.result}[:[...]int{4, 3, 1}[i]] {
			if err := step(); err != nil {
				panic(err)
			}
		}
	}
	fmt.Println(run.ID())
	select {}
}

func open(t testing.TB, dir string) *archive.Dir {
	t.Helper()
	d, err := archive.Open(dir, archive.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func begin(t testing.TB, d *archive.Dir) *trace.Run {
	t.Helper()
	run, err := d.Begin(header())
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func doCall(t testing.TB, d *archive.Dir, run *trace.Run, id string) *ledger.Row {
	t.Helper()
	c, err := newCall(d, run, id)
	if err == nil {
		err = c.all()
	}
	if err != nil {
		t.Fatal(err)
	}
	return c.row
}

// verify demands that the whole directory is as it should be.
func verify(t testing.TB, dir string) *audit.Report {
	t.Helper()
	d, err := archive.Open(dir, archive.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	report, err := audit.Verify(t.Context(), d, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		t.Errorf("%s:%d: %s %v %s", f.File, f.Line, f.Kind, f.CallIDs, f.Text)
	}
	return report
}

// rowsOf returns the rows by call.
func rowsOf(t testing.TB, dir string) map[string]*ledger.Row {
	t.Helper()
	rows := map[string]*ledger.Row{}
	for row, err := range ledger.Rows(dir) {
		if err != nil {
			t.Fatal(err)
		}
		if rows[row.ToolCallID.String()] != nil {
			t.Errorf("two rows of %s", row.ToolCallID)
		}
		rows[row.ToolCallID.String()] = row
	}
	return rows
}

// noMarkers demands that no run is left to be closed.
func noMarkers(t testing.TB, dir string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "live"))
	if err != nil || len(entries) > 0 {
		t.Errorf("markers are left: %v, %v", entries, err)
	}
}

func killed(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.String() == "signal: killed"
}
