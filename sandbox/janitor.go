package sandbox

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// janitor does what calls leave to be done, clearing rooms away and making new ones ahead, one thing after the other, and
// while no call runs: on a busy machine the same work beside a call would slow it by more than it takes. It does not wait
// for ever: not longer than janitorDelay, and not with more than janitorBacklog things to do. Where calls end faster than it
// clears away, the next ones do their part of it: what waits holds descriptors, processes and memory.
//
// It looks at a fixed interval while there has been something to do lately, and sleeps else: so the end of a call, which
// somebody waits for, wakes nobody.
type janitor struct {
	running atomic.Int64 // calls
	ended   atomic.Int64 // when the last one did, in nanoseconds since start
	start   time.Time

	mu      sync.Mutex
	jobs    []func()
	since   time.Time // when the first of jobs came
	helping int       // calls that do a job just now
	helped  sync.Cond // there is one less
	asleep  bool
	closed  bool
	wake    chan struct{}
	done    chan struct{}
}

const (
	janitorTick    = time.Millisecond
	janitorDelay   = 100 * time.Millisecond
	janitorBacklog = 8
	janitorBound   = 16 // more than that a call does itself before it begins
	// janitorPause leaves the end of a call to those who wait for its answer.
	janitorPause = time.Millisecond
	// janitorIdle is how long it looks in vain before it sleeps.
	janitorIdle = 200 * time.Millisecond
)

func newJanitor() *janitor {
	j := &janitor{start: time.Now(), asleep: true, wake: make(chan struct{}, 1), done: make(chan struct{})}
	j.helped.L = &j.mu
	go j.work()
	return j
}

// begin says that a call begins, when it has done what there is to do over janitorBound. One that is to end already does
// nothing more of it.
func (j *janitor) begin(ctx context.Context) {
	j.running.Add(1)
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.jobs) > janitorBound && ctx.Err() == nil {
		job := j.take()
		j.helping++
		j.mu.Unlock()
		job()
		j.mu.Lock()
		j.helping--
		j.helped.Broadcast()
	}
}

func (j *janitor) end() {
	j.ended.Store(int64(time.Since(j.start)))
	j.running.Add(-1)
}

// later adds a job.
func (j *janitor) later(job func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.jobs) == 0 {
		j.since = time.Now()
	}
	j.jobs = append(j.jobs, job)
	j.rouse()
}

// rouse wakes a sleeping janitor. j.mu is held.
func (j *janitor) rouse() {
	if j.asleep {
		j.asleep = false
		j.wake <- struct{}{}
	}
}

// settle waits until what there is to do now is done.
func (j *janitor) settle() {
	done := make(chan struct{})
	j.later(func() { close(done) })
	<-done
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.helping > 0 {
		j.helped.Wait()
	}
}

// close does what is left to do and returns when it is done.
func (j *janitor) close() {
	j.mu.Lock()
	j.closed = true
	j.rouse()
	j.mu.Unlock()
	<-j.done
}

func (j *janitor) work() {
	defer close(j.done)
	var idle time.Duration
	for {
		job, asleep, over := j.next(idle >= janitorIdle)
		switch {
		case over:
			return
		case job != nil:
			idle = 0
			job()
		case asleep:
			<-j.wake
			idle = 0
		default:
			time.Sleep(janitorTick)
			idle += janitorTick
		}
	}
}

// next is the job that is due, if one is; over says that there will be none. With sleep, the janitor goes to sleep if there
// is no job at all.
func (j *janitor) next(sleep bool) (job func(), asleep, over bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.jobs) == 0 {
		j.asleep = sleep && !j.closed
		return nil, j.asleep, j.closed
	}
	quiet := j.running.Load() == 0 && time.Since(j.start)-time.Duration(j.ended.Load()) >= janitorPause
	if !quiet && !j.closed && len(j.jobs) <= janitorBacklog && time.Since(j.since) < janitorDelay {
		return nil, false, false
	}
	return j.take(), false, false
}

// take takes the first job. j.mu is held.
func (j *janitor) take() (job func()) {
	job = j.jobs[0]
	j.jobs[0] = nil // it holds what it has cleared away
	j.jobs = j.jobs[1:]
	j.since = time.Now()
	return job
}
