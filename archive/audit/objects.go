package audit

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"sync"

	"toolrun/archive/store"
)

// checkObjects reads every object that something names, and counts those that nothing does.
func (v *verifier) checkObjects() error {
	hashes := sortedKeys(v.objects)
	v.report.Objects = len(hashes)
	found := make([]*Finding, len(hashes))
	sizes := make([]int64, len(hashes))
	ctx, cancel := context.WithCancel(v.ctx)
	defer cancel()
	var (
		wg   sync.WaitGroup
		work = make(chan int)
		done = make(chan struct{})
	)
	for range max(2, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := range work {
				sizes[i], found[i] = v.checkObject(hashes[i])
				select {
				case done <- struct{}{}:
				case <-ctx.Done():
				}
			}
		})
	}
	go func() {
		defer close(work)
		for i := range hashes {
			select {
			case work <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	for n := range hashes {
		select {
		case <-done:
			if n%100 == 0 || n == len(hashes)-1 {
				v.progress("objects", n+1, len(hashes))
			}
		case <-ctx.Done():
		}
	}
	cancel()
	wg.Wait()
	if err := v.ctx.Err(); err != nil {
		return err
	}
	for i := range hashes {
		v.report.ObjectBytes += sizes[i]
		if found[i] != nil {
			v.find(*found[i])
		}
	}
	for hash := range v.d.Store.All() {
		if _, named := v.objects[hash]; !named {
			v.report.Unreferenced++
		}
	}
	return nil
}

func (v *verifier) checkObject(hash string) (size int64, f *Finding) {
	path := v.d.Store.Path(hash)
	info, statErr := os.Stat(path)
	if statErr == nil {
		size = info.Size()
	}
	err := v.d.Store.Verify(hash)
	if err == nil {
		return size, nil
	}
	calls := slices.Compact(slices.Sorted(slices.Values(v.objects[hash])))
	f = &Finding{File: path, Hash: hash, CallIDs: calls, Text: err.Error()}
	switch {
	case errors.Is(err, store.ErrMissing):
		f.Kind = ObjectMissing
	case statErr == nil && size == 0:
		f.Kind, f.Text = ObjectEmpty, "the object has 0 bytes: lost in a power failure?"
	default:
		f.Kind = ObjectCorrupt
	}
	return size, f
}
