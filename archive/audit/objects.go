package audit

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"toolrun/archive/store"
)

// objectCheck reads objects on all processors, beside the reading of the lines that name them: an object is in the store
// before any line names it.
type objectCheck struct {
	store   *store.Store
	ctx     context.Context
	workers sync.WaitGroup

	mu    sync.Mutex // guards what follows
	more  *sync.Cond
	queue []string
	ended bool // nothing more will be queued
	done  map[string]checkedObject
}

type checkedObject struct {
	size int64
	err  error
}

func newObjectCheck(ctx context.Context, s *store.Store) *objectCheck {
	c := &objectCheck{store: s, ctx: ctx, done: map[string]checkedObject{}}
	c.more = sync.NewCond(&c.mu)
	for range runtime.GOMAXPROCS(0) {
		c.workers.Go(c.work)
	}
	return c
}

func (c *objectCheck) add(hash string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, hash)
	c.more.Signal()
}

// end says that nothing more comes.
func (c *objectCheck) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.more.Broadcast()
}

// progress returns how many objects are done.
func (c *objectCheck) progress() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.done)
}

func (c *objectCheck) work() {
	for {
		hash, ok := c.take()
		if !ok {
			return
		}
		size, err := c.store.Check(hash)
		c.mu.Lock()
		c.done[hash] = checkedObject{size, err}
		c.mu.Unlock()
	}
}

func (c *objectCheck) take() (hash string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) == 0 && !c.ended {
		c.more.Wait()
	}
	if len(c.queue) == 0 || c.ctx.Err() != nil {
		return "", false
	}
	last := len(c.queue) - 1
	hash, c.queue = c.queue[last], c.queue[:last]
	return hash, true
}

// checkObjects waits for every object that something names, and counts those that nothing does.
func (v *verifier) checkObjects() error {
	v.check.end()
	hashes := sortedKeys(v.objects)
	for hash := range v.sealed {
		if v.objects[hash] == nil {
			v.report.Objects++
		}
	}
	v.report.Objects += len(hashes)
	v.Progress("objects", v.check.progress(), len(hashes))
	v.check.workers.Wait()
	if err := v.ctx.Err(); err != nil {
		return err
	}
	v.Progress("objects", len(hashes), len(hashes))
	for _, hash := range hashes {
		c := v.check.done[hash]
		v.report.ObjectBytes += c.size
		if c.err != nil {
			v.find(v.objectFinding(hash, c))
		}
	}
	v.report.Bytes += v.report.ObjectBytes
	for hash := range v.d.Store.All() {
		if _, named := v.objects[hash]; !named && !v.sealed[hash] {
			v.report.Unreferenced++
		}
	}
	return nil
}

func (v *verifier) objectFinding(hash string, c checkedObject) Finding {
	calls := slices.Compact(slices.Sorted(slices.Values(v.objects[hash])))
	f := Finding{File: v.d.Store.Path(hash), Hash: hash, CallIDs: calls, Text: c.err.Error()}
	switch {
	case errors.Is(c.err, store.ErrMissing):
		f.Kind = ObjectMissing
	case errors.Is(c.err, store.ErrCorrupt) && c.size == 0:
		f.Kind, f.Text = ObjectEmpty, "the object has 0 bytes: lost in a power failure?"
	default:
		f.Kind = ObjectCorrupt
	}
	return f
}
