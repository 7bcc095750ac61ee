package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"toolrun/sandbox/cgroup"
	"toolrun/sandbox/internal/stage"
)

// helperGrace is how long output is still read after the program's end while helpers of it hold the pipes open.
const helperGrace = 200 * time.Millisecond

// killGrace is how long the kernel may take to end what was killed before it is called left over.
const killGrace = 2 * time.Second

// call is one Run: who does what is in the order of Run itself.
type call struct {
	box    *Box
	cmd    *Command
	lane   *lane
	group  *cgroup.Group
	net    *network
	pipes  pipes
	r      Result
	killed bool // the room was killed, for the reason that r.Outcome has
}

// Run runs one command in a room of its own and waits for its end: the end of its main process, then of its output, or of
// helperGrace. When it returns, every process of the call is dead, and what they left is being cleared away.
func (b *Box) Run(ctx context.Context, cmd Command) Result {
	c := &call{box: b, cmd: &cmd, pipes: noPipes, r: Result{CPU: -1, MemoryPeakBytes: -1, OOMKills: -1}}
	if ctx.Err() != nil {
		c.r.Outcome = Cancelled
		return c.r
	}
	if err := c.prepare(); err != nil {
		c.r.Outcome, c.r.Err = Unavailable, err
		c.clear(false)
		return c.r
	}
	if err := c.spawn(); err != nil {
		c.clear(false)
		return c.r
	}
	c.r.Enforced = b.enforced
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { c.pipes.wake(); close(woken) })
	c.watch(ctx)
	if !stop() {
		<-woken // it must not write when the descriptor is closed, perhaps somebody else's by then
	}
	c.end()
	return c.r
}

// prepare makes what the call needs besides its box.
func (c *call) prepare() (err error) {
	if c.group, err = c.box.newGroup(); err != nil {
		return err
	}
	if !c.box.profile.HostNetwork && c.box.has("ns.net") {
		if c.net, err = c.box.host.takeNetwork(); err != nil {
			return fmt.Errorf("make network namespace: %w", err)
		}
	}
	if c.lane, err = c.box.takeLane(); err != nil {
		return err
	}
	return c.pipes.open(c.cmd, c.box.host.null)
}

// spawn starts the program. A freshly written executable may be held open for writing for a moment by a fork of somebody
// else; that passes.
func (c *call) spawn() error {
	l := c.lane
	if c.net != nil {
		l.net = uintptr(c.net.ns)
	}
	for i, fd := range c.group.Tasks() {
		l.tasks[i] = uintptr(fd)
	}
	if dir := c.group.Dir(); dir >= 0 {
		l.prgClone.Flags |= unix.CLONE_INTO_CGROUP
		l.prgClone.Cgroup = uint64(dir)
	}
	l.stdin, l.stdout, l.stderr = uintptr(c.pipes.child[0]), uintptr(c.pipes.child[1]), uintptr(c.pipes.child[2])
	for wait := time.Millisecond; ; wait *= 2 {
		c.r.Started = time.Now()
		err := l.start(c.cmd)
		if err == nil {
			if f := l.program.Failure(); f != nil {
				err = f
			}
		}
		if err == nil {
			c.pipes.started()
			return nil
		}
		busy := errors.Is(err, unix.ETXTBSY) && wait < 300*time.Millisecond
		c.failed(err)
		if !busy {
			return err
		}
		time.Sleep(wait)
	}
}

// failed clears a room whose program was not started away, and says why.
func (c *call) failed(err error) {
	l := c.lane
	step, ours := "", true
	if f := l.program.Failure(); f != nil && l.programPID() > 0 {
		step, ours = f.Step, f.Step != "enter directory" && f.Step != "execute"
	}
	if l.programPID() > 0 {
		wait(l.programPID())
		unix.Close(int(l.programFD))
	}
	c.killRoom()
	c.reapInit()
	if f := l.room.Failure(); f != nil {
		err = f
	}
	// A byte of an init that got ready may be left in the pipe: the lane cannot be used again as it is.
	var b [1]byte
	unix.Read(l.ready[0], b[:])
	c.r.Duration = time.Since(c.r.Started)
	var errno error = err
	if s := (*stage.StepError)(nil); errors.As(err, &s) && s.Errno != 0 {
		errno = s.Errno
	}
	switch {
	case ours:
		c.r.Outcome, c.r.Err = Unavailable, fmt.Errorf("build the box: %w", err)
	case step == "enter directory":
		c.r.Outcome, c.r.Err = SpawnFailed, &os.PathError{Op: "enter directory", Path: c.cmd.Dir, Err: errno}
	default:
		c.r.Outcome, c.r.Err = SpawnFailed, &os.PathError{Op: "execute", Path: c.cmd.Exe, Err: errno}
	}
}

// killRoom kills the init, and by that every process of its pid namespace.
func (c *call) killRoom() {
	if c.lane.initPID() > 0 {
		unix.PidfdSendSignal(c.lane.initFD(), unix.SIGKILL, nil, 0)
	}
}

// reapInit waits until the killed init, and with it the room, has ended; the kernel lets it end last.
func (c *call) reapInit() bool {
	if c.lane.initPID() <= 0 {
		return true
	}
	fds := []unix.PollFd{{Fd: int32(c.lane.initFD()), Events: unix.POLLIN}}
	for end := time.Now().Add(killGrace); ; {
		left := time.Until(end)
		if left <= 0 {
			return false
		}
		if n, err := unix.Poll(fds, int(left.Milliseconds())+1); n > 0 && err == nil {
			break
		}
	}
	wait(c.lane.initPID())
	unix.Close(c.lane.initFD())
	return true
}

// end takes the call's figures and clears it away: before it returns where a process of the call is left, else behind.
func (c *call) end() {
	n, counted := c.group.Processes()
	alone := counted && n == 0 && !c.killed
	if !alone {
		c.killRoom()
		if !c.reapInit() {
			c.leftover()
			return
		}
	}
	if u, err := c.group.Usage(); err == nil {
		if c.box.has(cgroup.CPUTime) {
			c.r.CPU = u.CPU
		}
		if c.box.has(cgroup.Memory) {
			c.r.MemoryPeakBytes, c.r.OOMKills = u.MemoryPeakBytes, u.OOMKills
		}
		if c.box.has(cgroup.Pids) {
			c.r.PidsLimitHit, c.r.PidsMeasured = u.PidsLimitHit, true
		}
	} else {
		c.box.host.cfg.Logger.Warn("read the counters of a call", "error", err)
	}
	if c.r.Outcome == Signaled && c.r.Signal == unix.SIGKILL && c.r.OOMKills > 0 {
		c.r.Outcome = OutOfMemory
	}
	c.clear(alone)
}

// clear gives back what the call held. With room, its init still waits and is ended first; that happens in the background.
func (c *call) clear(room bool) {
	c.pipes.close()
	b, l, group, n := c.box, c.lane, c.group, c.net
	rest := func() {
		if room {
			c.killRoom()
			if !c.reapInit() {
				b.host.cfg.Logger.Error("the init of a call does not end", "pid", l.initPID())
				return
			}
		}
		if n != nil {
			b.host.giveNetwork(n)
		}
		if group != nil {
			removeGroup(group, b)
		}
		if l != nil {
			b.giveLane(l)
		}
	}
	if room {
		b.host.background(rest)
	} else {
		rest()
	}
}

// removeGroup removes a group whose processes have been reaped; the kernel may need a moment more to know it.
func removeGroup(g *cgroup.Group, b *Box) {
	err := g.Remove()
	for end := time.Now().Add(killGrace); err != nil && time.Now().Before(end); err = g.Remove() {
		g.Kill()
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		b.host.cfg.Logger.Error("remove the cgroup of a call", "error", err)
	}
}

// leftover reports processes that the kernel could not kill, and keeps everything that they may still use.
func (c *call) leftover() {
	c.group.Kill()
	c.r.Leftover = []int{c.lane.initPID(), c.lane.programPID()}
	c.box.host.cfg.Logger.Error("processes of a call cannot be killed", "pids", c.r.Leftover)
	c.pipes.close()
	init := c.lane.initPID()
	go wait(init)
}
