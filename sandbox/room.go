package sandbox

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"toolrun/sandbox/internal/stage"
)

// A room is the place of one call: a child of ours with pid, mount, ipc and uts namespaces of its own, that has built what
// is private to the call and then waits, as the namespace's init, for this process to end. The call's program is a second
// child, which enters the room by the init's pidfd; so this process is its parent and sees its true end.
//
// The init shares our memory (CLONE_VM: a copy would cost more than the rest of the call). It therefore stays out of the
// call's memory cgroup, where an OOM kill would end everything that shares the memory; it walks stage ops only, ends with
// no capability, all signals blocked and only the lifeline open; and the tool may neither see nor trace it (hidepid, a
// user namespace below its own).

// lane holds what one call at a time needs besides its Box: the programs, and the words that they refer to. It is used
// again by later calls of the same Box.
type lane struct {
	room, program, caller, after *stage.Program
	spawner                      *stage.Program // the one of them that clones room and program: caller, or its helper's

	// Words that the programs read.
	net                         uintptr
	tasks                       [maxTasks]uintptr
	ready                       [2]int // the init writes one byte when the room is built
	programFD                   uintptr
	stdin, stdout               uintptr
	stderr                      uintptr
	exe, argv, env              uintptr
	dir                         uintptr
	initClone, prgClone         *stage.CloneArgs
	initOp, programOp, helperOp int
	// poll is two struct pollfd: of ready[0], and of the init's pidfd, which clone3 writes into it. A word of it serves as
	// an int argument too: the kernel takes the low half.
	poll [2]uintptr
}

// maxTasks is how many v1 hierarchies a call enters: memory, pids, cpu, cpuacct.
const maxTasks = 4

// pollIn is struct pollfd with events POLLIN and descriptor 0.
const pollIn = unix.POLLIN << 32

// initFD is the init's pidfd.
func (l *lane) initFD() int { return int(int32(l.poll[1])) }

// initPID and programPID are 0 or less where the clone failed or was not reached.
func (l *lane) initPID() int    { return l.spawner.Got(l.initOp) }
func (l *lane) programPID() int { return l.spawner.Got(l.programOp) }

// roomFlags are the namespaces of the init, programFlags those that the program enters by the init's pidfd.
const (
	roomFlags    = unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	programFlags = unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
)

func (b *Box) newLane() (*lane, error) {
	l := &lane{room: &stage.Program{}, program: &stage.Program{}, caller: &stage.Program{}, after: &stage.Program{}}
	if err := unix.Pipe2(l.ready[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	b.planRoom(l)
	b.planProgram(l)
	b.planSpawn(l)
	return l, nil
}

// planSpawn writes what clones the init and the program. A privileged process does it itself, and must leave the pid
// namespace afterwards. An unprivileged one needs a child that enters the outer user namespace first; CLONE_PARENT makes
// the two children of this process all the same, and the shared descriptor table brings their pidfds here.
func (b *Box) planSpawn(l *lane) {
	l.spawner = l.caller
	signal, parent := uint64(unix.SIGCHLD), uint64(0)
	if b.host.outer >= 0 {
		l.spawner = b.host.child()
		signal, parent = 0, unix.CLONE_PARENT
	}
	l.initClone = &stage.CloneArgs{Flags: unix.CLONE_VM | unix.CLONE_CLEAR_SIGHAND | unix.CLONE_PIDFD | roomFlags | parent, Pidfd: address(&l.poll[1]), ExitSignal: signal}
	l.prgClone = &stage.CloneArgs{Flags: unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_CLEAR_SIGHAND | unix.CLONE_PIDFD | parent, Pidfd: address(&l.programFD), ExitSignal: signal}
	l.initOp = l.spawner.Clone("clone init", l.initClone, l.room)
	l.spawner.Add("enter pid namespace", unix.SYS_SETNS, stage.At(&l.poll[1]), unix.CLONE_NEWPID)
	l.programOp = l.spawner.Clone("clone program", l.prgClone, l.program)
	if b.host.outer >= 0 {
		l.helperOp = l.caller.Clone("clone helper", &stage.CloneArgs{Flags: unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_FILES | unix.CLONE_CLEAR_SIGHAND, ExitSignal: uint64(unix.SIGCHLD)}, l.spawner)
	} else {
		l.after.Try("leave pid namespace", unix.SYS_SETNS, b.host.ownPidNS, unix.CLONE_NEWPID)
	}
}

func address(w *uintptr) uint64 { return uint64(uintptr(unsafe.Pointer(w))) }

func (l *lane) close() {
	unix.Close(l.ready[0])
	unix.Close(l.ready[1])
}

// planRoom writes the init's program.
func (b *Box) planRoom(l *lane) {
	p := l.room
	p.Add("clear umask", unix.SYS_UMASK, 0)
	p.Add("name init", unix.SYS_PRCTL, unix.PR_SET_NAME, "toolrun-box")
	if !b.profile.HostNetwork && b.has("ns.net") {
		p.Add("enter network namespace", unix.SYS_SETNS, stage.At(&l.net), unix.CLONE_NEWNET)
	}
	p.Add("enter view", unix.SYS_SETNS, b.template, unix.CLONE_NEWNS)
	p.Add("copy view", unix.SYS_UNSHARE, unix.CLONE_NEWNS)
	p.Add("mount private files", unix.SYS_MOUNT, "box", "/box", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("mode=0755,size=%d", b.profile.Limits.MemoryBytes))
	p.Add("make /tmp", unix.SYS_MKDIRAT, unix.AT_FDCWD, "/box/tmp", 0o1777)
	p.Add("mount /tmp", unix.SYS_MOUNT, "/box/tmp", TempDir, nil, unix.MS_BIND, nil)
	for _, bind := range b.late {
		bind.arrive(p)
	}
	p.Add("make /dev/shm", unix.SYS_MKDIRAT, unix.AT_FDCWD, "/box/shm", 0o1777)
	p.Add("make home", unix.SYS_MKDIRAT, unix.AT_FDCWD, HomeDir, 0o700)
	p.Add("own home", unix.SYS_FCHOWNAT, unix.AT_FDCWD, HomeDir, b.profile.UID, b.profile.GID, 0)
	// Read-only as a whole: a tool that is uid 0 could else write /proc/sys and sysrq-trigger, whose modes know only uids.
	p.Add("mount /proc", unix.SYS_MOUNT, "proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "hidepid=4")
	if b.host.outer >= 0 {
		p.Add("drop the host's /proc", unix.SYS_UMOUNT2, hostProc, unix.MNT_DETACH)
	}
	for _, f := range b.host.procMasks {
		p.Add("mask "+f, unix.SYS_MOUNT, "/dev/null", f, nil, unix.MS_BIND, nil)
	}
	p.Add("set host name", unix.SYS_SETHOSTNAME, Hostname, len(Hostname))
	// Orphans of the call are reparented to the init; with SIGCHLD ignored the kernel reaps them.
	p.Add("ignore children", unix.SYS_RT_SIGACTION, int(unix.SIGCHLD), stage.Bytes(&sigaction{sigIgnore}), nil, 8)
	p.Add("drop capabilities", unix.SYS_CAPSET, stage.Bytes(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}), make([]byte, 24))
	p.Add("set no_new_privs", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	p.Add("keep lifeline", unix.SYS_DUP3, b.host.lifeline[0], 0, 0)
	p.Add("keep ready", unix.SYS_DUP3, l.ready[1], 1, 0)
	p.Add("close descriptors", unix.SYS_CLOSE_RANGE, 2, int(^uint32(0)), 0)
	p.AtLeast(1, "say ready", unix.SYS_WRITE, 1, "r", 1)
	p.Add("close ready", unix.SYS_CLOSE, 1)
	p.Try("wait for the end", unix.SYS_READ, 0, make([]byte, 1), 1)
}

// arrive moves a tree that waited in the template to its place in the call's own /tmp.
func (b *bind) arrive(p *stage.Program) {
	rel, _ := below(b.target, TempDir)
	dir := TempDir
	parts := strings.Split(rel, "/")
	for i, part := range parts {
		dir += "/" + part
		if i < len(parts)-1 || b.dir {
			p.Try("make "+dir, unix.SYS_MKDIRAT, unix.AT_FDCWD, dir, 0o755) // two trees may share a parent
		} else {
			p.Add("make "+dir, unix.SYS_MKNODAT, unix.AT_FDCWD, dir, unix.S_IFREG|0o644, 0)
		}
	}
	p.Add("show "+b.target, unix.SYS_MOUNT, b.place, b.target, nil, unix.MS_MOVE, nil)
}

// planProgram writes what the call's own process does between clone and execve. The order matters: descriptors of the
// host are used before the view is entered, capabilities before they are dropped.
func (b *Box) planProgram(l *lane) {
	p := l.program
	// The room is ready, or its init has ended; then there is nothing to read.
	p.Add("wait for init", unix.SYS_PPOLL, unsafe.Pointer(&l.poll[0]), 2, nil, nil, 8)
	p.AtLeast(1, "wait for init", unix.SYS_READ, l.ready[0], make([]byte, 1), 1)
	adj := p.Try("open oom_score_adj", unix.SYS_OPENAT, unix.AT_FDCWD, "/proc/self/oom_score_adj", unix.O_WRONLY)
	p.Try("set oom_score_adj", unix.SYS_WRITE, stage.Result(adj), "500", 3)
	for i := range b.tasks {
		p.AtLeast(1, "enter cgroup", unix.SYS_WRITE, stage.At(&l.tasks[i]), "0", 1)
	}
	flags := programFlags
	if !b.profile.HostNetwork && b.has("ns.net") {
		flags |= unix.CLONE_NEWNET
	}
	p.Add("enter room", unix.SYS_SETNS, stage.At(&l.poll[1]), flags)
	p.Add("new cgroup namespace", unix.SYS_UNSHARE, unix.CLONE_NEWCGROUP)
	p.Add("new session", unix.SYS_SETSID)
	for _, r := range b.rlimits {
		p.Add("set "+r.name, unix.SYS_PRLIMIT64, 0, r.resource, stage.Bytes(&unix.Rlimit{Cur: r.value, Max: r.value}), nil)
	}
	p.Add("set stdin", unix.SYS_DUP3, stage.At(&l.stdin), 0, 0)
	p.Add("set stdout", unix.SYS_DUP3, stage.At(&l.stdout), 1, 0)
	p.Add("set stderr", unix.SYS_DUP3, stage.At(&l.stderr), 2, 0)
	p.Add("close descriptors", unix.SYS_CLOSE_RANGE, 3, int(^uint32(0)), closeRangeCloexec)
	if b.host.outer < 0 { // an ordinary user cannot drop his groups; they grant nothing that he has not
		p.Add("drop groups", unix.SYS_SETGROUPS, 0, nil)
	}
	p.Add("enter user namespace", unix.SYS_SETNS, b.userNS, unix.CLONE_NEWUSER)
	for c := range unix.CAP_LAST_CAP + 1 {
		p.Try("drop bounding set", unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0, 0, 0)
	}
	p.Add("set gid", unix.SYS_SETRESGID, b.profile.GID, b.profile.GID, b.profile.GID)
	p.Add("set uid", unix.SYS_SETRESUID, b.profile.UID, b.profile.UID, b.profile.UID)
	p.Add("drop capabilities", unix.SYS_CAPSET, stage.Bytes(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}), make([]byte, 24))
	p.Add("set no_new_privs", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	p.Add("set umask", unix.SYS_UMASK, 0o022)
	for _, s := range inheritedSignals {
		p.Add("reset signals", unix.SYS_RT_SIGACTION, int(s), stage.Bytes(&sigaction{}), nil, 8)
	}
	if b.has("landlock") {
		planLandlock(p, b.host.landlock, b.allowed)
	}
	if b.has("seccomp") {
		planSeccomp(p, b.seccomp)
	}
	p.Add("enter directory", unix.SYS_CHDIR, stage.At(&l.dir))
	p.Add("unblock signals", unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, make([]byte, 8), nil, 8)
	p.Add("execute", unix.SYS_EXECVE, stage.At(&l.exe), stage.At(&l.argv), stage.At(&l.env))
}

// sigaction is the kernel's struct sigaction: handler, flags, restorer, mask.
type sigaction [4]uint64

const (
	sigIgnore         = 1 // SIG_IGN
	closeRangeCloexec = 4 // CLOSE_RANGE_CLOEXEC, Linux 5.11
)

// inheritedSignals may be ignored in this process (nohup, a shell's background job, our own SIGPIPE): CLONE_CLEAR_SIGHAND
// leaves ignored signals ignored.
var inheritedSignals = []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGPIPE, unix.SIGTERM, unix.SIGCHLD, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGUSR1, unix.SIGUSR2}

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

// start builds a room and starts the command in it. On success the init's and the program's pids and pidfds are l's to
// wait for; on failure the init may run (initPID is positive) and the program does not.
func (l *lane) start(c *Command) error {
	argv, k1 := cstrings(c.Argv)
	env, k2 := cstrings(c.Env)
	exe, dir := append([]byte(c.Exe), 0), append([]byte(c.Dir), 0)
	l.argv, l.env = uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0]))
	l.exe, l.dir = uintptr(unsafe.Pointer(&exe[0])), uintptr(unsafe.Pointer(&dir[0]))
	l.poll = [2]uintptr{pollIn | uintptr(l.ready[0]), pollIn}
	l.programFD = 0
	for _, p := range []*stage.Program{l.room, l.program, l.spawner, l.caller, l.after} {
		p.Reset()
	}
	err := stage.Run(l.caller, l.after)
	runtime.KeepAlive([]any{argv, env, exe, dir, k1, k2})
	if err == nil && l.spawner != l.caller {
		wait(l.caller.Got(l.helperOp))
		if f := l.spawner.Failure(); f != nil {
			err = f
		}
	}
	return err
}
