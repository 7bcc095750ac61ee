package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"toolrun/sandbox/cgroup"
	"toolrun/sandbox/internal/stage"
)

// A room is the place of one call: a child of ours with pid, mount, ipc and uts namespaces of its own, that builds what is
// private to the call and then waits, as the namespace's init, for this process to end. The call's program is a second
// child, which enters the room by the init's pidfd; so this process is its parent and sees its true end. A room serves one
// call and is gone after it.
//
// The init shares our memory (CLONE_VM: a copy would cost more than the rest of the call). It therefore stays out of the
// call's memory cgroup, where an OOM kill would end everything that shares the memory; it walks stage ops only, ends with
// no capability, all signals blocked and only the lifeline open; and the tool may neither see nor trace it (hidepid, a
// user namespace below its own).
type room struct {
	box   *Box
	lane  *lane
	group *cgroup.Group
	net   *network // nil: the host's
}

// lane is the memory that a room's children walk: the programs, and the words that they refer to. It is used again by
// later rooms of the same Box.
type lane struct {
	init, program *spawner

	// Words that the programs read.
	net                   uintptr
	tasks                 [maxTasks]uintptr
	ready                 [2]int // the init writes one byte when the room is built
	stdin, stdout, stderr uintptr
	exe, argv, env, dir   uintptr

	// poll is two struct pollfd: of ready[0], and of the init's pidfd, which clone3 writes into it. A word of it serves as
	// an int argument too: the kernel takes the low half.
	poll      [2]uintptr
	programFD uintptr
}

// maxTasks is how many v1 hierarchies a call enters: memory, pids, cpu, cpuacct.
const maxTasks = 4

// pollIn is struct pollfd with events POLLIN and descriptor 0.
const pollIn = unix.POLLIN << 32

// roomFlags are the namespaces of the init, programFlags those that the program enters by the init's pidfd.
const (
	roomFlags    = unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	programFlags = unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
)

// initFD is the init's pidfd.
func (l *lane) initFD() int { return int(int32(l.poll[1])) }

func (b *Box) newLane() (*lane, error) {
	l := &lane{}
	if err := unix.Pipe2(l.ready[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	address := func(w *uintptr) uint64 { return uint64(uintptr(unsafe.Pointer(w))) }
	l.init = b.host.newSpawner(b.planInit(l), roomFlags, address(&l.poll[1]), nil)
	l.program = b.host.newSpawner(b.planProgram(l), unix.CLONE_VFORK, address(&l.programFD), &l.poll[1])
	return l, nil
}

func (l *lane) close() {
	unix.Close(l.ready[0])
	unix.Close(l.ready[1])
}

// spawner clones a child that walks a program. A privileged process clones it itself. An unprivileged one needs a helper,
// a child that enters the outer user namespace first; CLONE_PARENT makes the helper's child this process's all the same,
// and the shared descriptor table brings its pidfd here.
type spawner struct {
	child         *stage.Program
	caller, after *stage.Program
	helper        *stage.Program // nil: none
	helperOp, op  int
	clone         *stage.CloneArgs
}

// newSpawner plans a clone with these flags whose pidfd goes to the address. With pidNS, the init's pidfd, the child is
// born in the init's pid namespace; the caller must leave that again, since threads can only be made in one's own.
func (h *Host) newSpawner(child *stage.Program, flags, pidfd uint64, pidNS *uintptr) *spawner {
	s := &spawner{child: child, caller: &stage.Program{}, after: &stage.Program{}}
	s.clone = &stage.CloneArgs{Flags: unix.CLONE_VM | unix.CLONE_CLEAR_SIGHAND | unix.CLONE_PIDFD | flags, Pidfd: pidfd, ExitSignal: uint64(unix.SIGCHLD)}
	from := s.caller
	if h.outer >= 0 {
		s.helper = h.child()
		from = s.helper
		s.clone.Flags |= unix.CLONE_PARENT
		s.clone.ExitSignal = 0 // the helper's own
	}
	if pidNS != nil {
		from.Add("enter pid namespace", unix.SYS_SETNS, stage.At(pidNS), unix.CLONE_NEWPID)
	}
	s.op = from.Clone("clone", s.clone, child)
	if s.helper != nil {
		s.helperOp = s.caller.Clone("clone helper", &stage.CloneArgs{Flags: unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_FILES | unix.CLONE_CLEAR_SIGHAND, ExitSignal: uint64(unix.SIGCHLD)}, s.helper)
	} else if pidNS != nil {
		s.after.Try("leave pid namespace", unix.SYS_SETNS, h.ownPidNS, unix.CLONE_NEWPID)
	}
	return s
}

// pid of the child; 0 or less where the clone failed or was not reached.
func (s *spawner) pid() int {
	if s.helper != nil {
		return s.helper.Got(s.op)
	}
	return s.caller.Got(s.op)
}

// run clones the child. Its own failure is in s.child, once it has ended.
func (s *spawner) run() error {
	s.child.Reset()
	s.caller.Reset()
	s.after.Reset()
	if s.helper != nil {
		s.helper.Reset()
	}
	if err := stage.Run(s.caller, s.after); err != nil {
		return err
	}
	if s.helper != nil {
		wait(s.caller.Got(s.helperOp))
		if f := s.helper.Failure(); f != nil {
			return f
		}
	}
	return nil
}

// newRoom makes a room. Its init may still be building it when newRoom returns: the program waits for that.
func (b *Box) newRoom() (_ *room, err error) {
	if err := b.build(); err != nil {
		return nil, err
	}
	r := &room{box: b}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if r.group, err = b.newGroup(); err != nil {
		return nil, err
	}
	if b.ownNetwork() {
		if r.net, err = b.host.takeNetwork(); err != nil {
			return nil, fmt.Errorf("make network namespace: %w", err)
		}
	}
	if r.lane, err = b.takeLane(); err != nil {
		return nil, err
	}
	l := r.lane
	if r.net != nil {
		l.net = uintptr(r.net.ns)
	}
	for i, fd := range r.group.Tasks() {
		l.tasks[i] = uintptr(fd)
	}
	if dir := r.group.Dir(); dir >= 0 {
		l.program.clone.Flags |= unix.CLONE_INTO_CGROUP
		l.program.clone.Cgroup = uint64(dir)
	}
	l.poll = [2]uintptr{pollIn | uintptr(l.ready[0]), pollIn}
	l.program.child.Reset()
	if err := l.init.run(); err != nil {
		return nil, fmt.Errorf("build the box: %w", err)
	}
	return r, nil
}

// start starts the command in the room. The error is an *os.PathError of the command's program or directory, or else says
// which step of building the box failed; then nothing of the command has run, and the room is of no more use.
func (r *room) start(c *Command, p *pipes) error {
	l := r.lane
	argv, k1 := cstrings(c.Argv)
	env, k2 := cstrings(c.Env)
	exe, dir := append([]byte(c.Exe), 0), append([]byte(c.Dir), 0)
	l.argv, l.env = uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0]))
	l.exe, l.dir = uintptr(unsafe.Pointer(&exe[0])), uintptr(unsafe.Pointer(&dir[0]))
	l.stdin, l.stdout, l.stderr = uintptr(p.child[0]), uintptr(p.child[1]), uintptr(p.child[2])
	l.programFD = 0
	err := l.program.run()
	runtime.KeepAlive([]any{argv, env, exe, dir, k1, k2})
	f := l.program.child.Failure()
	if err == nil && f == nil {
		return nil
	}
	if l.program.pid() > 0 {
		wait(l.program.pid())
		unix.Close(int(l.programFD))
	}
	if err == nil {
		err = f
	}
	return &startError{c, err}
}

// startError is the failure to start a command.
type startError struct {
	cmd *Command
	err error
}

func (e *startError) Unwrap() error { return e.err }

func (e *startError) Error() string {
	s := (*stage.StepError)(nil)
	switch {
	case !errors.As(e.err, &s):
	case s.Step == stepDirectory:
		return fmt.Sprintf("enter directory %s: %v", e.cmd.Dir, s.Errno)
	case s.Step == stepExecute:
		return fmt.Sprintf("execute %s: %v", e.cmd.Exe, s.Errno)
	}
	return "build the box: " + e.err.Error()
}

// commandsFault tells whether the command, not the box, is why it could not be started.
func (e *startError) commandsFault() bool {
	s := (*stage.StepError)(nil)
	return errors.As(e.err, &s) && (s.Step == stepDirectory || s.Step == stepExecute)
}

// kill kills the init, and by that every process of its pid namespace.
func (r *room) kill() {
	if r.lane != nil && r.lane.init.pid() > 0 {
		unix.PidfdSendSignal(r.lane.initFD(), unix.SIGKILL, nil, 0)
	}
}

// reap waits until the killed init, and with it the room, has ended; the kernel lets it end last. It is false where that
// takes longer than killGrace.
func (r *room) reap() bool {
	if r.lane == nil || r.lane.init.pid() <= 0 {
		return true
	}
	fds := []unix.PollFd{{Fd: int32(r.lane.initFD()), Events: unix.POLLIN}}
	for end := time.Now().Add(killGrace); ; {
		left := time.Until(end)
		if left <= 0 {
			return false
		}
		if n, err := unix.Poll(fds, int(left.Milliseconds())+1); n > 0 && err == nil {
			break
		}
	}
	wait(r.lane.init.pid())
	unix.Close(r.lane.initFD())
	return true
}

// close gives back what a room held whose init has been reaped, or was never there.
func (r *room) close() {
	if r.net != nil {
		r.box.host.giveNetwork(r.net)
	}
	if r.group != nil {
		r.box.giveGroup(r.group)
	}
	if r.lane != nil {
		unix.Read(r.lane.ready[0], make([]byte, 1)) // of an init that no program waited for
		r.box.giveLane(r.lane)
	}
}

// remove ends a room: in one go where nobody waits for it. An init that does not end within killGrace, as on a machine that
// is busy beyond measure, is waited for beside everything else.
func (r *room) remove() {
	r.kill()
	if r.reap() {
		r.close()
		return
	}
	h := r.box.host
	h.cfg.Logger.Warn("the init of a box takes long to end", "pid", r.lane.init.pid())
	h.lingering.Go(func() {
		for !r.reap() {
		}
		r.close()
	})
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

// cstrings is a NULL-terminated array of C strings.
func cstrings(ss []string) (array []uintptr, keep [][]byte) {
	array, keep = make([]uintptr, 0, len(ss)+1), make([][]byte, 0, len(ss))
	for _, s := range ss {
		b := append([]byte(s), 0)
		keep = append(keep, b)
		array = append(array, uintptr(unsafe.Pointer(&b[0])))
	}
	return append(array, 0), keep
}
