package archive_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"toolrun/archive"
	"toolrun/archive/audit"
	"toolrun/archive/internal/breakpoint"
	"toolrun/archive/ledger"
	"toolrun/archive/month"
	"toolrun/archive/redact"
	"toolrun/archive/trace"
)

const keep = 30 * 24 * time.Hour

func sha256Hex(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// sealAll is what the child does that is to be killed.
func sealAll(d *archive.Dir) {
	_, err := d.Seal(context.Background(), archive.SealOptions{Keep: keep, Say: func(format string, args ...any) { fmt.Printf(format+"\n", args...) }})
	if err != nil {
		fmt.Println("failed:", err)
	}
}

// past is a data directory in which calls were made at other times.
type past struct {
	t     testing.TB
	dir   string
	clock time.Time
	ids   []string // of the rows, in the order of seq
}

type said struct{ at, id, text string }

// run makes a run of calls that ends in order.
func (p *past) run(calls ...said) {
	p.t.Helper()
	d, err := archive.Open(p.dir, archive.Options{Now: func() time.Time { return p.clock }})
	if err != nil {
		p.t.Fatal(err)
	}
	defer d.Close()
	p.clock = p.time(calls[0].at)
	h := header()
	h.StartedAt = p.clock
	run, err := d.Begin(h)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, s := range calls {
		p.clock = p.time(s.at)
		p.call(d, run, s)
	}
	if err := d.End(run, nil); err != nil {
		p.t.Fatal(err)
	}
}

func (p *past) call(d *archive.Dir, run *trace.Run, s said) {
	p.t.Helper()
	if fresh, err := d.Ledger.Claim(s.id); err != nil || !fresh {
		p.t.Fatal(fresh, err)
	}
	c, err := newCall(d, run, s.id)
	if err != nil {
		p.t.Fatal(err)
	}
	c.row.StartedAt, c.row.EndedAt = ledger.FormatTime(p.time(s.at)), ledger.FormatTime(p.time(s.at))
	if err := c.start(); err != nil {
		p.t.Fatal(err)
	}
	hash, err := d.Store.Put(redact.Plain(s.text))
	if err != nil {
		p.t.Fatal(err)
	}
	code := 0
	c.row.OutputHash, c.row.OutputBytes, c.row.StoredBytes, c.row.OutputSummary = ledger.OrNull(hash), int64(len(s.text)), int64(len(s.text)), redact.Plain(s.text)
	c.row.Status, c.row.Outcome, c.row.ExitCode = ledger.StatusSuccess, "ok", &code
	if err := errors.Join(c.commit(), c.result()); err != nil {
		p.t.Fatal(err)
	}
	p.ids = append(p.ids, s.id)
}

func (p *past) time(s string) time.Time {
	if s == "now" {
		return time.Now()
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		p.t.Fatal(err)
	}
	return at
}

// twoMonths is a past of which two months are due. Rows of one stand between rows of others, a call goes over the end of a
// month, and what is hot names an object that is also sealed.
func twoMonths(t testing.TB) *past {
	p := &past{t: t, dir: filepath.Join(t.TempDir(), "data")}
	p.run(said{"2024-12-30T10:00:00Z", "december_1", "same"}, said{"2024-12-31T23:59:59.500Z", "december_2", "a"}, said{"2025-01-01T00:00:00Z", "january_1", "same"})
	p.run(said{"2025-01-15T10:00:00Z", "january_2", "b"})
	p.run(said{"now", "hot_1", "same"}, said{"2024-12-15T10:00:00Z", "december_late", "c"}, said{"now", "hot_2", "d"})
	return p
}

// copied is the same directory somewhere else.
func (p *past) copied(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(dir, os.DirFS(p.dir)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "runs", "live", "store"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// readable demands that every row is there, once, and that nothing is wrong but a note that a crash tore.
func readable(t *testing.T, dir string, ids []string) {
	t.Helper()
	for _, f := range find(t, dir, "").Findings {
		if f.Kind != audit.CheckpointBad || !strings.Contains(f.Text, "torn") {
			t.Errorf("%+v", f)
		}
	}
	if got := allIDs(t, dir, archive.Scope{}); !slices.Equal(got, ids) {
		t.Errorf("rows %v, not %v", got, ids)
	}
}

// whole demands that the directory has these rows, each once, and that nothing is wrong with it.
func whole(t testing.TB, dir string, ids []string) *audit.Report {
	t.Helper()
	report := verify(t, dir)
	if got := allIDs(t, dir, archive.Scope{}); !slices.Equal(got, ids) {
		t.Errorf("rows %v, not %v", got, ids)
	}
	return report
}

func allIDs(t testing.TB, dir string, s archive.Scope) (ids []string) {
	t.Helper()
	d, err := archive.Open(dir, archive.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for row, err := range d.RowsIn(s) {
		if err != nil {
			t.Error(err)
			continue
		}
		ids = append(ids, row.ToolCallID.String())
	}
	return ids
}

// seal seals what is due in this process, and demands that nothing is left to do.
func seal(t testing.TB, dir string) (made []*month.Manifest) {
	t.Helper()
	d := open(t, dir)
	defer d.Close()
	o := archive.SealOptions{Keep: keep, Say: func(string, ...any) {}}
	made, err := d.Seal(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := d.Seal(t.Context(), o); err != nil || len(again) > 0 {
		t.Errorf("sealed again: %v, %v", again, err)
	}
	return made
}

// once demands that no line is hot and sealed at the same time, nothing is left beside, and the hot ledger has these rows.
func once(t testing.TB, dir string, hot ...string) {
	t.Helper()
	var got []string
	for row, err := range ledger.Rows(dir) {
		if err != nil {
			t.Error(err)
			continue
		}
		got = append(got, row.ToolCallID.String())
	}
	if !slices.Equal(got, hot) {
		t.Errorf("hot are %v, not %v", got, hot)
	}
	for _, name := range []string{"archive/.new", "ledger.jsonl.new"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is left", name)
		}
	}
}

func TestMonthsThatAreDueAreSealed(t *testing.T) {
	p := twoMonths(t)
	before := whole(t, p.dir, p.ids)
	made := seal(t, p.dir)
	if len(made) != 2 || made[0].Month != "2024-12" || made[0].Rows != 3 || made[1].Month != "2025-01" || made[1].Rows != 2 {
		t.Fatalf("made %+v", made)
	}
	if r := made[0].Ranges; len(r) != 2 || r[0].Line != 0 || r[0].Lines != 2 || r[1].Line != 5 || r[1].FirstSeq != 5 {
		t.Errorf("ranges of December: %+v", r)
	}
	once(t, p.dir, "hot_1", "hot_2")
	after := whole(t, p.dir, p.ids)
	if after.Rows != before.Rows || after.Runs != before.Runs || after.Objects != before.Objects || after.Unreferenced != 0 || after.Months != 2 {
		t.Errorf("before %+v\nafter %+v", before, after)
	}
	// A trace goes with the month its run ended in: the first run ended in January. An object that is hot stays hot too.
	if made[0].Runs != 0 || made[1].Runs != 2 {
		t.Errorf("%d and %d traces", made[0].Runs, made[1].Runs)
	}
	d := open(t, p.dir)
	for text, hot := range map[string]bool{"same": true, "a": false, "b": false, "c": false, "d": true} {
		hash := sha256Hex(text)
		if _, err := os.Lstat(d.Store.Path(hash)); (err == nil) != hot {
			t.Errorf("%q is hot: %v", text, err == nil)
		}
		if err := d.Store.Verify(hash); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestLedgerGoesOnBehindSealedMonths(t *testing.T) {
	p := &past{t: t, dir: filepath.Join(t.TempDir(), "data")}
	p.run(said{"2025-01-01T00:00:00Z", "one", "x"}, said{"2025-01-02T00:00:00Z", "two", "y"})
	d := open(t, p.dir) // and remembers what the ledger was
	if fresh, err := d.Ledger.Claim("three"); err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	seal(t, p.dir)
	once(t, p.dir)
	run := begin(t, d)
	row := doCall(t, d, run, "three")
	if err := d.End(run, nil); err != nil {
		t.Fatal(err)
	}
	if row.Seq != 2 {
		t.Errorf("seq %d", row.Seq)
	}
	p.ids = append(p.ids, "three")
	once(t, p.dir, "three")
	whole(t, p.dir, p.ids)
	if got := allIDs(t, p.dir, archive.Scope{From: 1}); fmt.Sprint(got) != "[two three]" {
		t.Errorf("from the second on: %v", got)
	}
	if got := allIDs(t, p.dir, archive.Scope{Call: "two"}); fmt.Sprint(got) != "[two three]" { // hot ones are all looked at
		t.Errorf("by the index: %v", got)
	}
	// What is derived is made again out of the months as well.
	for _, name := range []string{"hashes", "ids", "ledger.cuts"} {
		if err := os.Remove(filepath.Join(p.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := archive.Open(p.dir, archive.Options{}); err == nil || !strings.Contains(err.Error(), "ledger.cuts is missing") {
		t.Errorf("opened without ledger.cuts: %v", err)
	}
	if err := archive.RepairDerived(p.dir, archive.Options{}); err != nil {
		t.Fatal(err)
	}
	whole(t, p.dir, p.ids)
	d = open(t, p.dir)
	for _, id := range []string{"one", "two", "three"} {
		if fresh, err := d.Ledger.Claim(id); fresh || err != nil {
			t.Errorf("id %s is free: %v", id, err)
		}
	}
	for _, id := range []string{"one", "three"} {
		r, err := d.Receipt(id)
		if err != nil || !strings.Contains(r.String(), `"tool_call_id":"`+id+`"`) {
			t.Errorf("receipt of %s: %v", id, err)
		}
	}
}

// The process that seals is killed in the middle of and after each step by which it writes. Whoever looks then finds every
// row once and nothing wrong, and the next sealing goes on.
func TestKilledAtAnyStepOfASealing(t *testing.T) {
	template := twoMonths(t)
	for _, how := range hows() {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			steps, finished, over := 0, 0, 0
			for n := 1; ; n++ {
				dir := template.copied(t)
				out, err := child(t, dir, "seal", fmt.Sprintf("%d %s", n, how)).Output()
				if err == nil {
					if strings.Contains(string(out), "failed") {
						t.Fatalf("%s", out)
					}
					break
				}
				if !killed(err) {
					t.Fatalf("%v\n%s", err, out)
				}
				steps++
				readable(t, dir, template.ids)
				next, err := child(t, dir, "seal", "").Output()
				if err != nil || strings.Contains(string(next), "failed") {
					t.Errorf("the next one: %v\n%s", err, next)
				}
				finished += strings.Count(string(next), "is finished")
				over += strings.Count(string(next), "starts over")
				seal(t, dir)
				once(t, dir, "hot_1", "hot_2")
				if whole(t, dir, template.ids); t.Failed() {
					t.Fatalf("killed at step %d", n)
				}
				os.RemoveAll(dir)
			}
			if steps < 20 || finished == 0 || over == 0 {
				t.Errorf("%d steps were seen, %d finished what was begun, %d started over", steps, finished, over)
			}
			t.Logf("%d steps", steps)
		})
	}
}

// The disk is full from each step on, for a while. Nothing is lost, and with space it goes on.
func TestDiskThatIsFullAtAnyStepOfASealing(t *testing.T) {
	template := twoMonths(t)
	steps := 0
	for n := 1; ; n++ {
		dir := template.copied(t)
		d := open(t, dir)
		undo := breakpoint.At(n, breakpoint.Short, true)
		_, err := d.Seal(t.Context(), archive.SealOptions{Keep: keep, Say: func(string, ...any) {}})
		undo()
		d.Close()
		if err == nil {
			break
		}
		steps++
		readable(t, dir, template.ids)
		seal(t, dir)
		once(t, dir, "hot_1", "hot_2")
		if whole(t, dir, template.ids); t.Failed() {
			t.Fatalf("full from step %d on: %v", n, err)
		}
		os.RemoveAll(dir)
	}
	if steps < 20 {
		t.Errorf("only %d steps were seen", steps)
	}
}

// Others write and read while months are sealed: no append is lost, no reading lacks a row or has one twice.
func TestSealingBesideWritersAndReaders(t *testing.T) {
	p := twoMonths(t)
	sealed := slices.Clone(p.ids)
	stop := make(chan struct{})
	var work sync.WaitGroup
	var mu sync.Mutex
	written := map[string]bool{}
	for range 3 {
		work.Go(func() {
			d, err := archive.Open(p.dir, archive.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			defer d.Close()
			run, err := d.Begin(header())
			if err != nil {
				t.Error(err)
				return
			}
			defer func() {
				if err := d.End(run, nil); err != nil {
					t.Error(err)
				}
			}()
			for i := range 500 {
				select {
				case <-stop:
					return
				default:
				}
				id := fmt.Sprintf("%s-%d", run.ID()[:8], i+1)
				c, err := newCall(d, run, id)
				if err == nil {
					err = c.all()
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				written[id] = true
				mu.Unlock()
			}
		})
	}
	for range 2 {
		work.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				mu.Lock()
				known := len(written)
				mu.Unlock()
				seen := map[string]int{}
				for _, id := range allIDs(t, p.dir, archive.Scope{}) {
					seen[id]++
				}
				for id, n := range seen {
					if n > 1 {
						t.Errorf("%s was read %d times", id, n)
					}
				}
				for _, id := range sealed {
					if seen[id] != 1 {
						t.Errorf("%s was read %d times", id, seen[id])
					}
				}
				if len(seen) < known+len(sealed) {
					t.Errorf("%d rows were read of %d", len(seen), known+len(sealed))
				}
			}
		})
	}
	d := open(t, p.dir)
	for _, m := range []string{"2024-12", "2025-01"} {
		if _, err := d.Seal(t.Context(), archive.SealOptions{Month: m, Keep: keep, Say: func(string, ...any) {}}); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	work.Wait()
	for _, id := range allIDs(t, p.dir, archive.Scope{}) {
		delete(written, id)
	}
	if len(written) > 0 {
		t.Errorf("lost: %v", written)
	}
	verify(t, p.dir)
}

func TestLedgerThatIsNotWhatWasSignedIsNotSealed(t *testing.T) {
	p := twoMonths(t)
	path := filepath.Join(p.dir, ledger.FileName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(text), `"exit_code":0`, `"exit_code":1`, 1)
	if err := os.WriteFile(path, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, p.dir)
	_, err = d.Seal(t.Context(), archive.SealOptions{Keep: keep, Say: func(string, ...any) {}})
	if !errors.Is(err, month.ErrUnsigned) || !strings.Contains(err.Error(), "ledger.jsonl:1") {
		t.Errorf("sealed: %v", err)
	}
	after, _ := os.ReadFile(path)
	if string(after) != edited {
		t.Error("the ledger was changed")
	}
	if parts, err := d.Months(); err != nil || len(parts) > 0 {
		t.Errorf("parts %v, %v", parts, err)
	}
}

func TestOneSealsAndTheOtherGoesOn(t *testing.T) {
	p := twoMonths(t)
	d, other := open(t, p.dir), open(t, p.dir)
	held := false
	_, err := d.Seal(t.Context(), archive.SealOptions{Keep: keep, Say: func(string, ...any) {}, Progress: func(string, int64, int64) {
		if held {
			return
		}
		held = true
		if _, err := other.Seal(t.Context(), archive.SealOptions{Keep: keep}); !errors.Is(err, archive.ErrSealing) {
			t.Errorf("both seal: %v", err)
		}
	}})
	if err != nil || !held {
		t.Error(held, err)
	}
	whole(t, p.dir, p.ids)
}

func TestPrunedMonthLeavesWhatIsHotItsObjects(t *testing.T) {
	p := twoMonths(t)
	seal(t, p.dir)
	d := open(t, p.dir)
	hash := sha256Hex("same")
	if err := os.Remove(d.Store.Path(hash)); err != nil { // as a call leaves it that stored it while it was taken away
		t.Fatal(err)
	}
	list, err := d.Prunable(time.Now())
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	if err := d.Prune(list); err != nil {
		t.Fatal(err)
	}
	r, err := d.Store.Open(hash)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if text, err := io.ReadAll(r); err != nil || string(text) != "same" {
		t.Errorf("%q, %v", text, err)
	}
	if report := whole(t, p.dir, []string{"hot_1", "hot_2"}); report.Pruned != 5 || report.Rows != 2 {
		t.Errorf("%+v", report)
	}
	if _, err := d.Receipt("hot_2"); err != nil {
		t.Errorf("receipt: %v", err)
	}
}
