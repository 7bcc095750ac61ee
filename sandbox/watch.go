package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"toolrun/sandbox/cgroup"
)

// readBuffer is as large as a pipe, so that one read takes what a full pipe holds.
const readBuffer = 64 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, readBuffer); return &b }}

// Slots of the watch's poll set.
const (
	slotProgram = iota
	slotEvent
	slotStdout
	slotStderr
	slotStdin
	slots
)

// watch is the life of a started call, all of it in one loop of one goroutine: output in, input out, the clock, the CPU
// clock, cancellation, the program's end. It returns when the program has ended and its output is at its end, or has had
// helperGrace to get there.
func (c *call) watch(ctx context.Context) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	p := &c.pipes
	var deadline, cpuCheck, giveUp time.Time
	if c.cmd.Timeout > 0 {
		deadline = c.r.Started.Add(c.cmd.Timeout)
	}
	cpuLimit := c.box.profile.Limits.CPUTime
	if cpuLimit > 0 && c.box.has(cgroup.CPUTime) {
		cpuCheck = c.r.Started.Add(c.cpuWait(cpuLimit))
	}
	var total int64
	ended := false
	for !(ended && p.out[0] < 0 && p.out[1] < 0) {
		now := time.Now()
		switch {
		case ended && now.After(giveUp):
			return
		case c.killed && now.After(giveUp):
			return // the kernel cannot kill it: end finds that out again, and reports it
		}
		if !c.killed && !ended {
			if !deadline.IsZero() && !now.Before(deadline) {
				c.kill(TimedOut, nil, &giveUp)
			} else if !cpuCheck.IsZero() && !now.Before(cpuCheck) {
				used, err := c.room.group.CPU()
				if err == nil && used >= cpuLimit {
					c.kill(CPULimit, nil, &giveUp)
				} else {
					cpuCheck = now.Add(c.cpuWait(cpuLimit - used))
				}
			}
		}
		if !c.killed && !p.again.IsZero() && !now.Before(p.again) {
			p.typeAgain()
		}
		wake := earliest(earliest(deadline, cpuCheck), p.again)
		if ended || c.killed {
			wake = giveUp
		}
		fds := [slots]unix.PollFd{}
		for i, fd := range [slots]int{int(c.room.lane.programFD), p.event, p.out[0], p.out[1], p.in} {
			fds[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
		}
		fds[slotStdin].Events = 0 // only POLLERR: nobody reads it any more
		if p.wantsRoom() {
			fds[slotStdin].Events = unix.POLLOUT
		}
		if ended {
			fds[slotProgram].Fd = -1
		}
		if c.box.profile.Ptrace && !ended {
			wake = earliest(wake, now.Add(tracedCheck))
		}
		poll(fds[:], wake)
		if c.box.profile.Ptrace && !ended {
			c.reapTraced()
		}

		if fds[slotEvent].Revents != 0 {
			unix.Read(p.event, make([]byte, 8))
			if ctx.Err() != nil && !c.killed && !ended {
				c.kill(Cancelled, nil, &giveUp)
			}
			p.feed()
		}
		switch got := fds[slotStdin].Revents; {
		case got&unix.POLLERR != 0 && p.live != nil:
			p.inputEnded()
		case got != 0:
			p.feed()
		}
		for i, w := range [2]io.Writer{c.cmd.Stdout, c.cmd.Stderr} {
			if p.out[i] < 0 || fds[slotStdout+i].Revents == 0 {
				continue
			}
			n, err := c.read(&p.out[i], *buf, w)
			total += int64(n)
			switch {
			case err != nil && !c.killed:
				c.kill(CaptureFailed, err, &giveUp)
			case total > c.box.profile.Limits.OutputTotalBytes && !c.killed:
				c.kill(OutputLimit, nil, &giveUp)
			}
			if c.r.Outcome == CaptureFailed || c.r.Outcome == OutputLimit {
				closeFD(&p.out[i])
			}
		}
		if fds[slotProgram].Revents != 0 && !ended {
			ended = true
			c.reap()
			p.ended()
			if !c.killed {
				giveUp = time.Now().Add(helperGrace)
			}
		}
	}
}

// read takes what is there, once.
func (c *call) read(fd *int, buf []byte, w io.Writer) (int, error) {
	n, err := unix.Read(*fd, buf)
	for c.pipes.tty && n > 0 && n < len(buf) { // a terminal gives at most a page at a time
		var k int
		if k, err = unix.Read(*fd, buf[n:]); k <= 0 {
			break
		}
		n += k
	}
	if n <= 0 {
		if err != unix.EAGAIN && err != unix.EINTR {
			closeFD(fd)
		}
		return 0, nil
	}
	if w == nil {
		return n, errors.New("no writer")
	}
	_, err = w.Write(buf[:n])
	return n, err
}

// tracedCheck is how often the threads of a program that may use ptrace(2) are looked at.
const tracedCheck = 50 * time.Millisecond

// reapTraced reaps threads of the program that have ended while this process traced them, as PTRACE_TRACEME makes its
// parent do. Nobody else can, and until then the program has not ended either: it could not even be killed.
func (c *call) reapTraced() {
	pid := c.room.lane.program.pid()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return
	}
	for _, t := range threads {
		if tid, err := strconv.Atoi(t.Name()); err == nil && tid != pid {
			unix.Wait4(tid, nil, unix.WALL|unix.WNOHANG, nil)
		}
	}
}

// reap takes the program's true end: this process is its parent.
func (c *call) reap() {
	c.r.Duration = time.Since(c.r.Started)
	ws, err := wait(c.room.lane.program.pid())
	unix.Close(int(c.room.lane.programFD))
	c.reaped = true
	switch {
	case err != nil:
		if !c.killed {
			c.r.Outcome, c.r.Err = CaptureFailed, err
		}
	case ws.Exited():
		c.r.HasExit, c.r.ExitCode = true, ws.ExitStatus()
		// It ended by itself before the kill for time or cancellation reached it.
		if !c.killed || c.r.Outcome == TimedOut || c.r.Outcome == Cancelled {
			c.r.Outcome = Exited
		}
	default:
		c.r.Signal = ws.Signal()
		if !c.killed {
			c.r.Outcome = Signaled
		}
	}
}

// kill ends every process of the call, for one reason.
func (c *call) kill(why Outcome, err error, giveUp *time.Time) {
	c.r.Outcome, c.r.Err, c.killed = why, err, true
	c.room.kill()
	*giveUp = time.Now().Add(killGrace)
}

// cpuWait is the least time in which the call can use up what is left of its CPU time.
func (c *call) cpuWait(left time.Duration) time.Duration {
	return max(time.Duration(float64(left)/c.box.profile.Limits.CPUs), 10*time.Millisecond)
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// poll waits for one of the descriptors, or until wake (zero: for ever).
func poll(fds []unix.PollFd, wake time.Time) {
	var ts *unix.Timespec
	if !wake.IsZero() {
		t := unix.NsecToTimespec(max(time.Until(wake).Nanoseconds(), 0))
		ts = &t
	}
	unix.Syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), uintptr(unsafe.Pointer(ts)), 0, 0, 0)
}
