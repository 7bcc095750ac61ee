package sandbox

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"toolrun/sandbox/cgroup"
	"toolrun/sandbox/internal/proxy"
)

// helperGrace is how long output is still read after the program's end while helpers of it hold the pipes open.
const helperGrace = 500 * time.Millisecond

// killGrace is how long the kernel may take to end what was killed before it is called left over.
const killGrace = 2 * time.Second

// call is one Run: who does what is in the order of Run itself.
type call struct {
	box    *Box
	cmd    *Command
	room   *room
	pipes  pipes
	proxy  *proxy.Server // nil: the call has none
	r      Result
	killed bool // the room was killed, for the reason that r.Outcome has
	reaped bool // the program was
}

// Run runs one command in a room of its own and waits for its end: the end of its main process, then of its output, or of
// helperGrace. When it returns, every process of the call is dead, and what they left is being cleared away.
func (b *Box) Run(ctx context.Context, cmd Command) Result {
	c := &call{box: b, cmd: &cmd, pipes: noPipes, r: Result{Usage: Unmeasured}}
	b.host.janitor.begin(ctx)
	defer b.host.janitor.end()
	if ctx.Err() != nil {
		c.r.Outcome = Cancelled
		return c.r
	}
	if err := c.pipes.open(c.cmd, b.profile.Terminal); err != nil {
		c.r.Outcome, c.r.Err = Unavailable, err
		return c.r
	}
	defer c.pipes.close()
	if !c.start(ctx) {
		return c.r
	}
	c.pipes.started()
	c.r.Enforced = b.enforced
	if cmd.Started != nil {
		cmd.Started()
	}
	if c.pipes.live != nil {
		c.pipes.live.attach(c.pipes.wake)
	}
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { c.pipes.wake(); close(woken) })
	c.watch(ctx)
	if !stop() {
		<-woken // it must not write when the descriptor is closed, perhaps somebody else's by then
	}
	c.end()
	return c.r
}

// start starts the program in a room. A room that was made ahead may have lost its init since: then a new one is made. A
// freshly written executable may be held open for writing for a moment by a fork of somebody else; that passes.
func (c *call) start(ctx context.Context) bool {
	for wait := time.Millisecond; ; {
		r, ahead, err := c.box.takeRoom()
		c.r.Started = time.Now()
		if err == nil {
			if err = c.startProxy(ctx, r.net); err == nil {
				err = r.start(c.cmd, &c.pipes)
			}
			if err == nil {
				c.room = r
				return true
			}
			c.killed = true // nothing of it has anything more to send
			c.endProxy()
			c.killed = false
			r.remove()
		}
		c.r.Duration, c.r.Err, c.r.Outcome = time.Since(c.r.Started), err, Unavailable
		e := (*startError)(nil)
		fault := errors.As(err, &e) && e.commandsFault()
		switch {
		case fault && errors.Is(err, unix.ETXTBSY) && wait < 300*time.Millisecond:
			time.Sleep(wait)
			wait *= 2
		case !fault && ahead:
		default:
			if fault {
				c.r.Outcome = SpawnFailed
			}
			return false
		}
	}
}

// end takes the call's figures and ends its room: before it returns where a process of the call is left, else behind.
func (c *call) end() {
	r := c.room
	n, counted := r.group.Processes()
	alone := counted && n == 0 && !c.killed
	if !alone {
		r.kill()
	}
	c.endProxy()
	if !alone && !r.reap() {
		c.leftover()
		return
	}
	c.measure()
	if alone {
		c.box.host.janitor.later(r.remove)
	} else {
		c.box.host.janitor.later(r.close)
	}
	c.box.host.janitor.later(c.box.refill)
}

// measure reads what the call used.
func (c *call) measure() {
	u, err := c.room.group.Usage()
	if err != nil {
		c.box.host.cfg.Logger.Warn("read the counters of a call", "error", err)
		return
	}
	if c.box.has(cgroup.CPUTime) {
		c.r.CPU = u.CPU
	}
	if c.box.has(cgroup.CPU) {
		c.r.Throttled = u.Throttled
	}
	if c.box.has(cgroup.Memory) {
		c.r.MemoryPeakBytes, c.r.OOMKills = u.MemoryPeakBytes, u.OOMKills
	}
	if c.box.has(cgroup.Pids) {
		c.r.PidsPeak, c.r.PidsRefused = u.PidsPeak, u.PidsRefused
	}
	if c.r.Outcome == Signaled && c.r.Signal == unix.SIGKILL && c.r.OOMKills > 0 {
		c.r.Outcome = OutOfMemory
	}
}

// leftover reports processes that the kernel could not kill, and keeps everything that they may still use until they have
// ended. The init ends last, and only after the program, which is ours, has been reaped.
func (c *call) leftover() {
	r, h := c.room, c.box.host
	r.group.Kill()
	if c.r.Leftover = r.group.Pids(); len(c.r.Leftover) == 0 {
		c.r.Leftover = []int{r.lane.init.pid()}
	}
	h.cfg.Logger.Error("processes of a call cannot be killed", "pids", c.r.Leftover)
	h.lingering.Go(func() {
		if !c.reaped {
			wait(r.lane.program.pid())
			unix.Close(int(r.lane.programFD))
		}
		for !r.reap() {
		}
		r.close()
	})
}
