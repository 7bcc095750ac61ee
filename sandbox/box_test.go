package sandbox

import (
	"os"
	"sync"
	"testing"
	"time"
)

// What each of many boxes would keep by itself took thousands of descriptors, more than a server may have on some hosts.
func TestManyBoxesKeepNoMoreTogetherThanFew(t *testing.T) {
	h := testHost(t)
	var boxes []*Box
	for range 6 {
		b, err := h.Box(Profile{Name: "test", Limits: testLimits, UID: os.Getuid(), GID: os.Getgid(), BestEffort: os.Getenv("TOOLRUN_REQUIRE_SANDBOX") != "1"})
		if err != nil {
			t.Fatal(err)
		}
		boxes = append(boxes, b)
	}
	keeps := func() (n int) {
		for _, b := range boxes {
			b.mu.Lock()
			n += len(b.groups) + max(len(b.lanes)-1, 0)
			if b.ready != nil {
				n++
			}
			b.mu.Unlock()
		}
		return n
	}
	var wg sync.WaitGroup
	for _, b := range boxes {
		for range kept {
			wg.Go(func() {
				if r, _, errs := sh(t, b, "/", "sleep 0.3"); r.Outcome != Exited || r.ExitCode != 0 {
					t.Errorf("%+v %s", r, errs)
				}
			})
		}
	}
	wg.Wait()
	h.janitor.settle()
	if n := keeps(); n == 0 || n > keptInAll {
		t.Errorf("%d boxes keep %d rooms, groups and lanes; at most %d", len(boxes), n, keptInAll)
	}
	for end := time.Now().Add(10 * readyFor); keeps() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d rooms, groups and lanes are kept for calls that do not come", keeps())
		}
	}
	if n := h.kept.Load(); n != 0 {
		t.Errorf("nothing is kept, and counted as %d", n)
	}
}
