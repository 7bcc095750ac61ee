package archive_test

import (
	"bufio"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"toolrun/archive/ledger"
)

// Eight processes write at once, and each is killed again and again at a moment that nobody chose. No row that was
// acknowledged is missing, none is torn or glued to another, and verify has nothing to find.
func TestKilledWritersLoseNoRow(t *testing.T) {
	const writers = 8
	kills := 32 // and 300 in `make soak`
	if os.Getenv("TOOLRUN_SOAK") != "" {
		kills = 300
	}
	dir := filepath.Join(t.TempDir(), "data")
	open(t, dir).Close()
	var (
		mu           sync.Mutex
		acknowledged = map[string]bool{}
		wg           sync.WaitGroup
	)
	for w := range writers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 9))
			for n := w; n < kills; n += writers {
				cmd := child(t, dir, "write", "")
				out, err := cmd.StdoutPipe()
				if err == nil {
					err = cmd.Start()
				}
				if err != nil {
					t.Error(err)
					return
				}
				lines := bufio.NewScanner(out)
				for first := true; lines.Scan(); first = false {
					mu.Lock()
					acknowledged[lines.Text()] = true
					mu.Unlock()
					if first {
						time.AfterFunc(time.Duration(random.IntN(60_000))*time.Microsecond, func() { cmd.Process.Kill() })
					}
				}
				if err := cmd.Wait(); !killed(err) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()

	d := open(t, dir)
	closed, err := d.Recover("last")
	if err != nil {
		t.Fatal(err)
	}
	rows := rowsOf(t, dir) // which demands that every line is one, and no call has two
	for id := range acknowledged {
		if row := rows[id]; row == nil || row.Outcome != "ok" {
			t.Errorf("acknowledged row %s is %v", id, row)
		}
	}
	next := int64(0)
	for row := range ledger.Rows(dir) {
		if row.Seq != next {
			t.Errorf("seq %d where %d was due", row.Seq, next)
		}
		next = row.Seq + 1
	}
	noMarkers(t, dir)
	r := verify(t, dir)
	t.Logf("%d kills: %d rows acknowledged, %d on the record, %d calls closed, %d checkpoints", kills, len(acknowledged), r.Rows, closed, r.Checkpoints)
	if len(acknowledged) < kills || r.Uncovered > 0 {
		t.Errorf("%d rows acknowledged, %d not covered", len(acknowledged), r.Uncovered)
	}
}

func TestWhoIsKilledWithTheLockBlocksNobody(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	cmd := child(t, dir, "lock", "")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" || err != nil {
		t.Fatal(line, err)
	}
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		d := open(t, dir) // which waits for the lock
		run := begin(t, d)
		doCall(t, d, run, run.ID()[:8]+"-1")
		if err := d.End(run, nil); err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-opened:
		t.Error("the lock was not held")
	case <-time.After(50 * time.Millisecond):
	}
	cmd.Process.Kill()
	cmd.Wait()
	select {
	case <-opened:
	case <-time.After(20 * time.Second):
		t.Fatal("the lock of a dead process is still held")
	}
	verify(t, dir)
}
