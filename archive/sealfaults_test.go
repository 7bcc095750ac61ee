package archive_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"toolrun/archive"
	"toolrun/archive/audit"
	"toolrun/archive/internal/breakpoint"
	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
	"toolrun/archive/month"
	"toolrun/archive/redact"
	"toolrun/archive/trace"
)

func quiet(string, ...any) {}

// The power fails before and after every step of a sealing, and of what was not synced all, nothing or a part is on the
// disk. No row of before is missing or there twice, and the next sealing goes on.
func TestPowerFailsAtAnyStepOfASealing(t *testing.T) {
	seeds, stride := 2, 11 // and every step, of more seeds, in `make soak`
	if os.Getenv("TOOLRUN_SOAK") != "" {
		seeds, stride = 4, 1
	}
	template := twoMonths(t)
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			steps := 0
			for n := 1 + seed*3%stride; ; n += stride {
				dir, image := template.copied(t), filepath.Join(t.TempDir(), "image")
				cmd := child(t, dir, "seal", "")
				cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d %d %s", childPower, n, seed, image))
				out, err := cmd.Output()
				if err == nil {
					break
				}
				if !killed(err) {
					t.Fatalf("%v\n%s", err, out)
				}
				steps++
				readable(t, image, template.ids)
				seal(t, image)
				once(t, image, "hot_1", "hot_2")
				if whole(t, image, template.ids); t.Failed() {
					t.Fatalf("power failed at step %d", n)
				}
			}
			if steps < 150/stride {
				t.Errorf("only %d steps were seen", steps)
			}
		})
	}
}

// As before, and all the while another process writes and this one reads.
func TestKilledAtAnyStepOfASealingBesideAWriterAndAReader(t *testing.T) {
	stride := 13 // and every step in `make soak`
	if os.Getenv("TOOLRUN_SOAK") != "" {
		stride = 1
	}
	template := twoMonths(t)
	for _, how := range []string{breakpoint.Before, breakpoint.After} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			steps := 0
			for n := 1 + len(how)%stride; ; n += stride {
				dir := template.copied(t)
				writer := child(t, dir, "write", "")
				out, in, err := os.Pipe()
				if err == nil {
					// So that it writes no more than a few rows ahead of the reader.
					_, err = unix.FcntlInt(out.Fd(), unix.F_SETPIPE_SZ, 4096)
				}
				if err == nil {
					writer.Stdout = in
					err = writer.Start()
				}
				if err != nil {
					t.Fatal(err)
				}
				in.Close()
				lines, acknowledged := bufio.NewScanner(out), []string(nil)
				read := func(n int) {
					for ; n > 0 && lines.Scan(); n-- {
						acknowledged = append(acknowledged, lines.Text())
					}
				}
				read(1) // it writes
				stop := make(chan struct{})
				var work sync.WaitGroup
				work.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							read(20)
							demandOnce(t, dir, append(slices.Clone(template.ids), acknowledged...))
						}
					}
				})
				told, sealed := child(t, dir, "seal", fmt.Sprintf("%d %s", n, how)).Output()
				close(stop)
				work.Wait()
				writer.Process.Kill()
				read(1 << 30)
				writer.Wait()
				out.Close()
				if sealed != nil && !killed(sealed) {
					t.Fatalf("%v\n%s", sealed, told)
				}
				demandOnce(t, dir, append(slices.Clone(template.ids), acknowledged...))
				d := open(t, dir)
				if _, err := d.Recover("next"); err != nil {
					t.Fatal(err)
				}
				d.Close()
				seal(t, dir)
				verify(t, dir)
				if demandOnce(t, dir, append(slices.Clone(template.ids), acknowledged...)); t.Failed() {
					t.Fatalf("killed at step %d", n)
				}
				if sealed == nil {
					break
				}
				steps++
				os.RemoveAll(dir)
			}
			if steps < 60/stride {
				t.Errorf("only %d steps were seen", steps)
			}
		})
	}
}

// demandOnce demands that a reading has these rows, and none twice.
func demandOnce(t testing.TB, dir string, ids []string) {
	t.Helper()
	seen := map[string]int{}
	for _, id := range allIDs(t, dir, archive.Scope{}) {
		seen[id]++
		if seen[id] == 2 {
			t.Errorf("%s was read twice", id)
		}
	}
	for _, id := range ids {
		if seen[id] == 0 {
			t.Errorf("%s was not read", id)
		}
	}
}

func claim(t testing.TB, d *archive.Dir, id string) {
	t.Helper()
	if fresh, err := d.Ledger.Claim(id); err != nil || !fresh {
		t.Fatal(id, fresh, err)
	}
}

// Between the steps of a sealing a process that had the ledger open before appends, and one that opens it only now.
func TestProcessesThatStartInTheMiddleOfASealingLoseNothing(t *testing.T) {
	p := twoMonths(t)
	before := open(t, p.dir)
	run := begin(t, before)
	n := 0
	call := func(d *archive.Dir, run *trace.Run) {
		n++
		id := fmt.Sprintf("between_%d", n)
		claim(t, d, id)
		doCall(t, d, run, id)
		p.ids = append(p.ids, id)
	}
	steps := map[string]bool{}
	sealer := open(t, p.dir)
	_, err := sealer.Seal(t.Context(), archive.SealOptions{Keep: keep, Say: quiet, Progress: func(step string, _, _ int64) {
		steps[step] = true
		call(before, run)
		now := open(t, p.dir)
		defer now.Close()
		other := begin(t, now)
		call(now, other)
		if err := now.End(other, nil); err != nil {
			t.Error(err)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	call(before, run)
	if err := before.End(run, nil); err != nil {
		t.Fatal(err)
	}
	if len(steps) < 4 {
		t.Errorf("steps: %v", steps)
	}
	whole(t, p.dir, p.ids)
	once(t, p.dir, slices.DeleteFunc(slices.Clone(p.ids), func(id string) bool { return strings.HasPrefix(id, "december") || strings.HasPrefix(id, "january") })...)
}

// A run that goes on keeps its trace hot, and with it the objects of its open calls, also where its rows are sealed: a call
// that waits for a person, a program that stays.
func TestRunThatGoesOnKeepsItsTraceAndTheObjectsOfItsOpenCalls(t *testing.T) {
	p := &past{t: t, dir: filepath.Join(t.TempDir(), "data")}
	p.clock = p.time("2024-12-20T10:00:00Z")
	d, err := archive.Open(p.dir, archive.Options{Now: func() time.Time { return p.clock }})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	h := header()
	h.StartedAt = p.clock
	run, err := d.Begin(h)
	if err != nil {
		t.Fatal(err)
	}
	p.call(d, run, said{"2024-12-20T10:00:00Z", "done", "said"})
	claim(t, d, "waits")
	waits, err := newCall(d, run, "waits")
	if err != nil {
		t.Fatal(err)
	}
	waits.held = true
	if err := waits.start(); err != nil {
		t.Fatal(err)
	}
	// A sealed row has the same arguments as the call that waits.
	p.call(d, run, said{"2024-12-20T10:00:01Z", "again", "said"})
	made := seal(t, p.dir)
	if len(made) != 1 || made[0].Rows != 2 || made[0].Runs != 0 {
		t.Fatalf("%+v", made)
	}
	if _, err := os.Lstat(d.RunPath(run.ID())); err != nil {
		t.Error("its trace is not hot:", err)
	}
	if _, err := os.Lstat(d.Store.Path(waits.row.InputHash)); err != nil {
		t.Error("the input of a call that waits is not hot:", err)
	}
	if _, err := os.Lstat(d.Store.Path(sha256Hex("said"))); err == nil {
		t.Error("an output that only sealed rows name is hot")
	}
	// It ends as any other.
	for _, step := range []func() error{waits.allow, waits.capture, waits.commit, waits.result, func() error { return d.End(run, nil) }} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	whole(t, p.dir, []string{"done", "again", "waits"})
	// The row that came now is hot, and the trace, whose latest line is as old as the clock of its process.
	made = seal(t, p.dir)
	if len(made) != 1 || made[0].Part != 2 || made[0].Runs != 1 {
		t.Errorf("%+v", made)
	}
	whole(t, p.dir, []string{"done", "again", "waits"})
}

// An older copy of the ledger that somebody puts back over the cut one is read as what it is, and sealed again.
func TestOlderLedgerThatIsPutBackIsReadAndCutAgain(t *testing.T) {
	p := twoMonths(t)
	older := p.copied(t)
	seal(t, p.dir)
	for name, put := range map[string]string{"the ledger alone": "cp ledger.jsonl", "the whole backup over it": "cp -r ."} {
		t.Run(name, func(t *testing.T) {
			dir := p.copied(t)
			cmd := exec.Command("sh", "-c", put+" "+dir)
			if cmd.Dir = older; cmd.Run() != nil {
				t.Fatal(put)
			}
			readable(t, dir, p.ids)
			once(t, dir, p.ids...)
			seal(t, dir)
			once(t, dir, "hot_1", "hot_2")
			whole(t, dir, p.ids)
		})
	}
}

// One that lacks rows which were sealed of it takes nothing away from the archive: a person has to say which is right.
func TestOlderLedgerThatLacksWhatWasSealedIsNotSealedOver(t *testing.T) {
	p := &past{t: t, dir: filepath.Join(t.TempDir(), "data")}
	p.run(said{"2025-01-01T00:00:00Z", "one", "x"})
	before := p.copied(t)
	p.run(said{"2025-01-02T00:00:00Z", "two", "y"})
	seal(t, p.dir)
	// The backup with the newer archives, whose seals it does not know.
	if err := os.CopyFS(filepath.Join(before, "archive"), os.DirFS(filepath.Join(p.dir, "archive"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(before, "ledger.cuts"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, before)
	_, err := d.Seal(t.Context(), archive.SealOptions{Keep: keep, Say: quiet})
	manifest := filepath.Join(before, "archive", "2025-01", "manifest.json")
	if !errors.Is(err, month.ErrDiffers) || !strings.Contains(err.Error(), manifest) {
		t.Errorf("sealed: %v", err)
	}
	if _, err := os.Lstat(manifest); err != nil {
		t.Error(err)
	}
	if got := allIDs(t, before, archive.Scope{}); !slices.Equal(got, []string{"one"}) {
		t.Errorf("rows %v", got)
	}
	// Who does what the message says gets on.
	if err := os.Rename(manifest, manifest+".aside"); err != nil {
		t.Fatal(err)
	}
	d.Close()
	seal(t, before)
	whole(t, before, []string{"one"})
}

func TestNumberOfAPartThatIsGoneIsNotGivenAgain(t *testing.T) {
	p := twoMonths(t)
	seal(t, p.dir)
	if err := os.RemoveAll(filepath.Join(p.dir, "archive", "2025-01")); err != nil {
		t.Fatal(err)
	}
	p.run(said{"2025-01-20T10:00:00Z", "january_late", "e"})
	made := seal(t, p.dir)
	if len(made) != 1 || made[0].Part != 2 || made[0].Rows != 1 {
		t.Fatalf("%+v", made)
	}
	for _, f := range find(t, p.dir, "").Findings {
		if f.Kind != audit.MonthMissing || !strings.Contains(f.File, "archive/2025-01/manifest.json") {
			t.Errorf("%+v", f)
		}
	}
	d, err := archive.Open(p.dir, archive.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var got []string
	told := 0
	for row, err := range d.RowsIn(archive.Scope{}) {
		if err != nil {
			told++
			continue
		}
		got = append(got, row.ToolCallID.String())
	}
	if want := []string{"december_1", "december_2", "hot_1", "december_late", "hot_2", "january_late"}; told != 1 || !slices.Equal(got, want) {
		t.Errorf("%d damages, rows %v", told, got)
	}
}

func TestRowsOfAClockThatWentWrongKeepNothingFromBeingSealed(t *testing.T) {
	p := &past{t: t, dir: filepath.Join(t.TempDir(), "data")}
	p.run(said{"2099-06-01T00:00:00Z", "future", "f"})
	p.run(said{"0001-01-01T00:00:00Z", "first", "f"})
	p.run(said{"1969-12-31T23:59:59Z", "before", "f"})
	p.run(said{"2024-12-01T00:00:00Z", "december", "d"})
	d := open(t, p.dir)
	if !d.Due() {
		t.Error("nothing is due behind a row of the future")
	}
	seal(t, p.dir)
	if d.Due() {
		t.Error("something is due that was sealed")
	}
	once(t, p.dir, "future")
	p.run(said{"2024-12-02T00:00:00Z", "set_back", "s"}) // the clock is set back behind what is sealed
	if made := seal(t, p.dir); len(made) != 1 || made[0].Part != 2 {
		t.Errorf("%+v", made)
	}
	once(t, p.dir, "future")
	whole(t, p.dir, []string{"future", "first", "before", "december", "set_back"})
}

// Lines that are no rows go with the rows around them, one over the bound stays, and of lines without any row nothing is
// sealed.
func TestDamagedAndLongLinesAreSealedOrStayAndAreReadInTheirPlace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	path := filepath.Join(dir, ledger.FileName)
	open(t, dir).Close()
	add := func(lines ...string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, line := range lines {
			if _, err := f.WriteString(line + "\n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	add("garbage", "", "{}")
	if made := seal(t, dir); len(made) != 0 {
		t.Errorf("of lines without a row: %+v", made)
	}
	p := &past{t: t, dir: dir}
	p.run(said{"2024-12-01T00:00:00Z", "one", "1"})
	add("torn", strings.Repeat("x", jsonl.MaxLineBytes+10), "behind the long one")
	p.run(said{"2024-12-02T00:00:00Z", "two", "2"}, said{"now", "hot", "3"})
	add("behind a hot one")
	read := func() (lines []string) {
		d, err := archive.Open(dir, archive.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		for line, err := range d.Lines(archive.Scope{}) {
			if err != nil {
				t.Error(err)
				continue
			}
			text := string(line.Text[:min(len(line.Text), 40)])
			if row, err := line.Row(); err == nil {
				text = row.ToolCallID.String()
			}
			lines = append(lines, fmt.Sprint(line.Place, " ", text))
		}
		return lines
	}
	damaged := func() (n int) {
		for _, f := range find(t, dir, "").Findings {
			if f.Kind == audit.DamagedLine {
				n++
			}
		}
		return n
	}
	before, bad := read(), damaged()
	made := seal(t, dir)
	if len(made) != 1 || made[0].Rows != 2 || made[0].Lines != 7 || len(made[0].Lost) != 0 {
		t.Fatalf("%+v", made)
	}
	if after := read(); !slices.Equal(after, before) || len(after) != 10 {
		t.Errorf("%q\nnot\n%q", after, before)
	}
	if after := damaged(); after != bad || bad != 7 {
		t.Errorf("%d damaged lines, before it was sealed %d", after, bad)
	}
	if hot, err := os.ReadFile(path); err != nil || bytes.Count(hot, []byte("\n")) != 3 {
		t.Errorf("%d hot lines, %v", bytes.Count(hot, []byte("\n")), err)
	}
}

// Who takes the ledger away takes what was hot: what is sealed is still read, and the loss is named.
func TestLedgerThatIsGoneTakesOnlyWhatWasHot(t *testing.T) {
	p := twoMonths(t)
	seal(t, p.dir)
	if err := os.Remove(filepath.Join(p.dir, ledger.FileName)); err != nil {
		t.Fatal(err)
	}
	if got := allIDs(t, p.dir, archive.Scope{}); len(got) != 5 {
		t.Errorf("rows %v", got)
	}
	kinds := map[string]bool{}
	for _, f := range find(t, p.dir, "").Findings {
		kinds[f.Kind] = true
	}
	if !kinds[audit.LedgerCut] {
		t.Errorf("findings: %v", kinds)
	}
}

// What leads a question to a row or past it, the manifest and the index, may not be changed unseen.
func TestChangedManifestOrIndexIsDamageAndNeverAWrongAnswer(t *testing.T) {
	p := twoMonths(t)
	seal(t, p.dir)
	ask := func() (ids []string, damaged bool) {
		d, err := archive.Open(p.dir, archive.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		for line, err := range d.Lines(archive.Scope{Call: "january_2", Since: p.time("2025-01-01T00:00:00Z"), Until: p.time("2025-02-01T00:00:00Z")}) {
			var damage *ledger.Damage
			if errors.As(err, &damage) {
				damaged = true
			} else if row, err := line.Row(); err == nil && strings.HasPrefix(row.StartedAt, "2025-01-15") {
				ids = append(ids, row.ToolCallID.String())
			}
		}
		return ids, damaged
	}
	good := map[string][]byte{}
	for _, name := range []string{"manifest.json", "index"} {
		text, err := os.ReadFile(filepath.Join(p.dir, "archive", "2025-01", name))
		if err != nil {
			t.Fatal(err)
		}
		good[name] = text
	}
	for name, text := range good {
		path := filepath.Join(p.dir, "archive", "2025-01", name)
		for i := 0; i < len(text); i += 3 {
			bad := bytes.Clone(text)
			bad[i] ^= 1
			if content := len(bad) - 4; name == "index" && len(bad) <= 4096 && i%2 == 0 && i < content { // one page: its checksum is easily made
				binary.BigEndian.PutUint32(bad[content:], crc32.Checksum(bad[:content], crc32.MakeTable(crc32.Castagnoli)))
			}
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if ids, damaged := ask(); !damaged && !slices.Equal(ids, []string{"january_2"}) {
				t.Errorf("%s, byte %d: rows %v, and nothing is said", name, i, ids)
			}
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The index is derived.
	bad := bytes.Clone(good["index"])
	bad[len(bad)/2] ^= 1
	if err := os.WriteFile(filepath.Join(p.dir, "archive", "2025-01", "index"), bad, 0o600); err != nil {
		t.Fatal(err)
	}
	found := find(t, p.dir, "").Findings
	if !slices.ContainsFunc(found, func(f audit.Finding) bool { return f.Kind == audit.IndexWrong }) || slices.ContainsFunc(found, func(f audit.Finding) bool { return !f.Derived() }) {
		t.Errorf("%+v", found)
	}
	if err := os.Remove(filepath.Join(p.dir, "archive", "2025-01", "index")); err != nil {
		t.Fatal(err)
	}
	if _, damaged := ask(); !damaged {
		t.Error("a missing index was not said")
	}
	if err := archive.RepairDerived(p.dir, archive.Options{}); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(filepath.Join(p.dir, "archive", "2025-01", "index")); err != nil || !bytes.Equal(again, good["index"]) {
		t.Errorf("the index is another: %v", err)
	}
	whole(t, p.dir, p.ids)
}

// A forger who writes a month anew, with one row less or changed, its manifest and the note beside it, is found by the seal
// in the chain.
func TestMonthThatWasWrittenAnewIsNotTheOneThatWasSealed(t *testing.T) {
	p := twoMonths(t)
	forged := p.copied(t)
	seal(t, p.dir)
	path := filepath.Join(forged, ledger.FileName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The other directory has a key of its own: who can write a month can do that.
	for _, name := range []string{"checkpoints", "checkpoint.key", "checkpoint.pub", "hashes"} {
		if err := os.Remove(filepath.Join(forged, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, bytes.Replace(text, []byte(`"exit_code":0`), []byte(`"exit_code":9`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	seal(t, forged)
	for _, name := range []string{"ledger.jsonl.zst", "index", "manifest.json", "seal", "runs.tar.zst", "store.tar.zst"} {
		content, err := os.ReadFile(filepath.Join(forged, "archive", "2024-12", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(p.dir, "archive", "2024-12", name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var month, row bool
	for _, f := range find(t, p.dir, "").Findings {
		month = month || f.Kind == audit.MonthBad && strings.Contains(f.File, "2024-12/manifest.json")
		row = row || f.Kind == audit.RowEdited && f.Seq != nil && *f.Seq == 0 && strings.Contains(f.File, "2024-12/ledger.jsonl.zst")
	}
	if !month || !row {
		t.Errorf("%+v", find(t, p.dir, "").Findings)
	}
}

// Rows of a run that kept no content name no objects, and nothing is noted as lost.
func TestMonthOfHashesOnlyLosesNothing(t *testing.T) {
	p := &past{t: t, dir: filepath.Join(t.TempDir(), "data")}
	p.clock = p.time("2024-12-20T10:00:00Z")
	d, err := archive.Open(p.dir, archive.Options{Now: func() time.Time { return p.clock }})
	if err != nil {
		t.Fatal(err)
	}
	h := header()
	h.StartedAt = p.clock
	run, err := d.Begin(h)
	if err != nil {
		t.Fatal(err)
	}
	claim(t, d, "hashes")
	c, err := newCall(d, run, "hashes")
	if err != nil {
		t.Fatal(err)
	}
	c.row.StartedAt, c.row.EndedAt = ledger.FormatTime(p.clock), ledger.FormatTime(p.clock)
	c.row.Payloads, c.row.InputSummary, c.row.InputHash = "hash", redact.Text{}, sha256Hex("not kept")
	code := 0
	c.row.Status, c.row.Outcome, c.row.ExitCode, c.row.OutputHash = ledger.StatusSuccess, "ok", &code, ledger.OrNull(sha256Hex("neither"))
	for _, step := range []func() error{func() error { return d.Announce(run, trace.Call{Row: c.row}) }, c.commit, c.result, func() error { return d.End(run, nil) }, d.Close} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	made := seal(t, p.dir)
	if len(made) != 1 || len(made[0].Lost) != 0 || made[0].Objects != 0 || made[0].Rows != 1 {
		t.Errorf("%+v", made)
	}
	whole(t, p.dir, []string{"hashes"})
}

// A process that read a month before it was pruned says afterwards that it is pruned, and not that it is damaged.
func TestProcessThatHadAMonthOpenSeesThatItWasPruned(t *testing.T) {
	p := twoMonths(t)
	seal(t, p.dir)
	reader, err := archive.Open(p.dir, archive.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, err := reader.Part(month.Ref{Month: "2024-12", Part: 1}); err != nil {
		t.Fatal(err)
	}
	d := open(t, p.dir)
	list, err := d.Prunable(p.time("2025-01-01T00:00:00Z"))
	if err == nil {
		err = d.Prune(list)
	}
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	n := 0
	for _, err := range reader.RowsIn(archive.Scope{}) {
		if err != nil {
			t.Error(err)
		}
		n++
	}
	if n != 4 {
		t.Errorf("%d rows", n)
	}
}

// A full disk that stops a sealing gets its space back at once.
func TestSealingThatFailsLeavesNothingBeside(t *testing.T) {
	p := twoMonths(t)
	d := open(t, p.dir)
	full := errors.New("none left")
	saved := jsonl.Calls.Fsync
	defer func() { jsonl.Calls.Fsync = saved }()
	jsonl.Calls.Fsync = func(fd int) error {
		if name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && strings.HasSuffix(name, "store.tar.zst") {
			return full
		}
		return saved(fd)
	}
	if _, err := d.Seal(t.Context(), archive.SealOptions{Keep: keep, Say: quiet}); !errors.Is(err, full) {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(p.dir, "archive", ".new", "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	jsonl.Calls.Fsync = saved
	seal(t, p.dir)
	whole(t, p.dir, p.ids)
}
