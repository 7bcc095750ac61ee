package archive

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestCallsThatCommitAtOnceShareASync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun, n atomic.Int64
		failed := errors.New("failed")
		g := group{do: func() error {
			begun.Store(time.Now().UnixNano())
			time.Sleep(10 * time.Millisecond)
			if n.Add(1) == 2 {
				return failed
			}
			return nil
		}}
		var wg sync.WaitGroup
		var errs atomic.Int64
		for i := range 100 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Microsecond) // all within the first sync
				called := time.Now().UnixNano()
				if err := g.wait(); err != nil {
					errs.Add(1)
				}
				if begun.Load() < called && n.Load() < 2 {
					t.Error("returned after a sync that began before the call")
				}
			})
		}
		wg.Wait()
		if n.Load() > 3 {
			t.Errorf("%d syncs for 100 calls", n.Load())
		}
		if errs.Load() < 90 {
			t.Errorf("%d of those who shared the failed sync were told", errs.Load())
		}
		if g.wait() != nil || n.Load() < 3 {
			t.Error("a group that failed works no more")
		}
	})
}
