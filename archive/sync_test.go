package archive_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"toolrun/archive"
	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
)

// watch notes every write and sync below dir, by the kind of its file.
func watch(t *testing.T, dir string) (seen func() []string) {
	t.Helper()
	saved := jsonl.Calls
	t.Cleanup(func() { jsonl.Calls = saved })
	var mu sync.Mutex
	var list []string
	note := func(what string, fd int) {
		path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if err != nil {
			t.Error(err)
		}
		rel, _ := filepath.Rel(dir, path)
		switch info, err := os.Stat(path); {
		case err != nil:
			rel = "gone"
		case strings.HasPrefix(rel, "store") && info.IsDir():
			rel = "store folder"
		case strings.HasPrefix(rel, "store"):
			rel = "object"
		case strings.HasPrefix(rel, "runs/"):
			rel = "trace"
		}
		mu.Lock()
		defer mu.Unlock()
		list = append(list, what+" "+rel)
	}
	jsonl.Calls.Write = func(fd int, p []byte) (int, error) { note("write", fd); return saved.Write(fd, p) }
	jsonl.Calls.Fsync = func(fd int) error { note("sync", fd); return saved.Fsync(fd) }
	jsonl.Calls.Fdatasync = func(fd int) error { note("sync", fd); return saved.Fdatasync(fd) }
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		defer func() { list = nil }()
		return list
	}
}

func TestPerRowSyncsObjectsAndTraceThenTheRow(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	durability(t, dir, "row")
	d := open(t, dir)
	run := begin(t, d)
	seen := watch(t, dir)
	c, err := newCall(d, run, run.ID()[:8]+"-1")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{c.start, c.capture, c.commit} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	steps := seen()
	row := slices.Index(steps, "write ledger.jsonl")
	count := func(list []string, what string) (n int) {
		for _, s := range list {
			if s == what {
				n++
			}
		}
		return n
	}
	line := slices.Index(steps, "write trace")
	if line < 0 || row < line || count(steps[:line], "sync object") != 1 || count(steps[:line], "sync store folder") < 2 || count(steps[line:row], "sync trace") != 1 {
		t.Fatalf("before the tool_call: %q", steps)
	}
	if count(steps[line:row], "sync object") != 1 {
		t.Errorf("before the row: %q", steps)
	}
	if !slices.Equal(steps[row:], []string{"write ledger.jsonl", "sync ledger.jsonl"}) {
		t.Errorf("after: %q", steps)
	}
	if err := c.result(); err != nil {
		t.Fatal(err)
	}
	d.End(run, nil)
}

// A sync that fails leaves no doubt about the row: before it is appended there is none, after it it stands.
func TestASyncThatFailsSaysByTheSeqWhetherTheRowStands(t *testing.T) {
	for failing, stands := range map[string]bool{"object": false, "ledger.jsonl": true} {
		dir := filepath.Join(t.TempDir(), "data")
		durability(t, dir, "row")
		d := open(t, dir)
		run := begin(t, d)
		c, err := newCall(d, run, run.ID()[:8]+"-1")
		if err := errors.Join(err, c.start(), c.capture()); err != nil {
			t.Fatal(err)
		}
		saved := jsonl.Calls.Fdatasync
		jsonl.Calls.Fdatasync = func(fd int) error {
			path, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
			if filepath.Base(path) == failing || failing == "object" && path == d.Store.Path(string(c.row.OutputHash)) {
				return unix.EIO
			}
			return saved(fd)
		}
		err = c.commit()
		jsonl.Calls.Fdatasync = saved
		if !errors.Is(err, archive.ErrUnavailable) || (c.row.Seq >= 0) != stands || (len(rowsOf(t, dir)) == 1) != stands {
			t.Errorf("%s fails: %v, seq %d, %d rows", failing, err, c.row.Seq, len(rowsOf(t, dir)))
		}
		if !stands {
			if err := c.commit(); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(c.result(), d.End(run, nil)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCheckpointSyncsEverythingWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "data")
		d := open(t, dir)
		run := begin(t, d)
		time.Sleep(time.Second)
		synctest.Wait()
		seen := watch(t, dir)
		doCall(t, d, run, run.ID()[:8]+"-1")
		for _, s := range seen() {
			if strings.HasPrefix(s, "sync") {
				t.Errorf("the call waited for: %s", s)
			}
		}
		time.Sleep(time.Second - time.Millisecond)
		synctest.Wait()
		steps := seen()
		for _, want := range []string{"sync object", "sync store folder", "sync trace", "sync ledger.jsonl"} {
			if !slices.Contains(steps, want) {
				t.Errorf("%q lacks %s", steps, want)
			}
		}
		if steps[len(steps)-1] != "sync ledger.jsonl" {
			t.Errorf("rows are synced last: %q", steps)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if steps := seen(); !slices.Contains(steps, "sync checkpoints") {
			t.Errorf("a minute after the call nothing is signed: %q", steps)
		}
		time.Sleep(time.Hour)
		if steps := seen(); len(steps) > 0 {
			t.Errorf("nothing was written, and synced was %q", steps)
		}
		if err := d.End(run, nil); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseSyncsWhatIsNotYet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	d := open(t, dir)
	run := begin(t, d)
	doCall(t, d, run, run.ID()[:8]+"-1")
	seen := watch(t, dir)
	if err := d.End(run, nil); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	steps := seen()
	for _, want := range []string{"sync object", "sync trace", "sync runs", "sync live", "sync ledger.jsonl"} {
		if !slices.Contains(steps, want) {
			t.Errorf("%q lacks %s", steps, want)
		}
	}
}

func TestManyObjectsAreSyncedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no timer fires before End
		dir := filepath.Join(t.TempDir(), "data")
		d := open(t, dir)
		run := begin(t, d)
		for i := range 100 {
			doCall(t, d, run, fmt.Sprintf("%s-%d", run.ID()[:8], i+1))
		}
		if _, err := d.Checkpoint(); err != nil { // which makes the key
			t.Fatal(err)
		}
		for i := range 100 {
			doCall(t, d, run, fmt.Sprintf("%s-%d", run.ID()[:8], 101+i))
		}
		seen := watch(t, dir)
		if err := d.End(run, nil); err != nil {
			t.Fatal(err)
		}
		if steps := seen(); len(steps) > 5 {
			t.Errorf("%d steps: %q", len(steps), steps)
		}
		verify(t, dir)
	})
}

func benchmarkCommit(b *testing.B, mode string, parallel int) {
	dir := filepath.Join(b.TempDir(), "data")
	durability(b, dir, mode)
	d := open(b, dir)
	run := begin(b, d)
	defer d.End(run, nil)
	var mu sync.Mutex
	n := 0
	b.SetParallelism(parallel)
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			mu.Lock()
			n++
			id := fmt.Sprintf("%s-%d", run.ID()[:8], n)
			mu.Unlock()
			doCall(b, d, run, id)
		}
	})
}

func BenchmarkCallCheckpoint(b *testing.B) { benchmarkCommit(b, "checkpoint", 1) }
func BenchmarkCallRow(b *testing.B)        { benchmarkCommit(b, "row", 1) }
func BenchmarkCallRow16(b *testing.B)      { benchmarkCommit(b, "row", 8) } // times GOMAXPROCS

// The yardstick of durability = "row": a bare write and fdatasync.
func BenchmarkBareDatasync(b *testing.B) {
	f, err := jsonl.OpenAppend(filepath.Join(b.TempDir(), "f"), 0)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	line := append((&ledger.Row{}).Append(nil), '\n')
	for b.Loop() {
		if _, err := f.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := jsonl.Datasync(f); err != nil {
			b.Fatal(err)
		}
	}
}
