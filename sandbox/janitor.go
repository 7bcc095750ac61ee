package sandbox

import (
	"sync"
	"time"
)

// janitor does what calls leave to be done, clearing rooms away and making new ones ahead, one thing after the other, and
// while no call runs: on a busy machine the same work beside a call would slow it by more than it takes. It does not wait
// for ever: not longer than janitorDelay, and not with more than janitorBacklog things to do.
type janitor struct {
	mu      sync.Mutex
	jobs    []func()
	since   time.Time // when the first of jobs came
	running int       // calls
	closed  bool
	wake    chan struct{} // one place: something changed
	done    chan struct{}
}

const (
	janitorDelay   = 100 * time.Millisecond
	janitorBacklog = 8
	// janitorPause leaves the end of a call to those who wait for its answer.
	janitorPause = time.Millisecond
)

func newJanitor() *janitor {
	j := &janitor{wake: make(chan struct{}, 1), done: make(chan struct{})}
	go j.work()
	return j
}

func (j *janitor) begin() {
	j.mu.Lock()
	j.running++
	j.mu.Unlock()
}

func (j *janitor) end() {
	j.mu.Lock()
	j.running--
	j.mu.Unlock()
	j.signal()
}

// later adds a job.
func (j *janitor) later(job func()) {
	j.mu.Lock()
	if len(j.jobs) == 0 {
		j.since = time.Now()
	}
	j.jobs = append(j.jobs, job)
	j.mu.Unlock()
	j.signal()
}

// settle waits until what there is to do now is done.
func (j *janitor) settle() {
	done := make(chan struct{})
	j.later(func() { close(done) })
	<-done
}

func (j *janitor) signal() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// close does what is left to do and returns when it is done.
func (j *janitor) close() {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.signal()
	<-j.done
}

func (j *janitor) work() {
	defer close(j.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		job, pause, over := j.next()
		switch {
		case over:
			return
		case job != nil:
			job()
		case pause > 0:
			timer.Reset(pause)
			select {
			case <-timer.C:
			case <-j.wake:
			}
		default:
			<-j.wake
		}
	}
}

// next is the job that is due, or how long to wait for one (0: until woken), or that there will be none.
func (j *janitor) next() (job func(), pause time.Duration, over bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.jobs) == 0 {
		return nil, 0, j.closed
	}
	age := time.Since(j.since)
	due := j.closed || len(j.jobs) > janitorBacklog || age >= janitorDelay || j.running == 0 && age >= janitorPause
	if !due {
		if j.running == 0 {
			return nil, janitorPause - age, false
		}
		return nil, janitorDelay - age, false
	}
	job = j.jobs[0]
	j.jobs = j.jobs[1:]
	j.since = time.Now().Add(-janitorPause) // the next one is due at once, if no call begins
	return job, 0, false
}
