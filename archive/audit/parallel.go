package audit

import (
	"context"
	"iter"
	"runtime"
	"sync"
)

// inOrder calls do for each of list on all processors and yields the results in the order of list, until ctx ends.
func inOrder[T, R any](ctx context.Context, list []T, do func(T) R) iter.Seq2[int, R] {
	return func(yield func(int, R) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		type job struct {
			i    int
			done chan R
		}
		workers := runtime.GOMAXPROCS(0)
		ahead, work := make(chan job, 4*workers), make(chan job)
		wg.Go(func() {
			defer close(ahead)
			defer close(work)
			for i := range list {
				j := job{i, make(chan R, 1)}
				for _, to := range []chan job{ahead, work} {
					select {
					case to <- j:
					case <-ctx.Done():
						return
					}
				}
			}
		})
		for range workers {
			wg.Go(func() {
				for j := range work {
					j.done <- do(list[j.i])
				}
			})
		}
		for j := range ahead {
			select {
			case r := <-j.done:
				if !yield(j.i, r) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}
