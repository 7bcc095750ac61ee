package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"toolrun/sandbox/internal/stage"
)

// planInit writes what the init does: it builds what is private to the call.
func (b *Box) planInit(l *lane) *stage.Program {
	p := &stage.Program{}
	p.Add("clear umask", unix.SYS_UMASK, 0)
	p.Add("name init", unix.SYS_PRCTL, unix.PR_SET_NAME, "toolrun-box")
	if b.ownNetwork() {
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
	for _, f := range b.procMasks {
		p.Add("mask "+f, unix.SYS_MOUNT, "/dev/null", f, nil, unix.MS_BIND, nil)
	}
	p.Add("set host name", unix.SYS_SETHOSTNAME, hostname, len(hostname))
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
	return p
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

// planProgram writes what the call's own process does between clone and execve. The order matters: what needs the host
// comes before the view is entered, and all that can be done while the init still builds comes before waiting for it;
// what needs capabilities comes before they are dropped.
func (b *Box) planProgram(l *lane) *stage.Program {
	p := &stage.Program{}
	adj := p.Try("open oom_score_adj", unix.SYS_OPENAT, unix.AT_FDCWD, "/proc/self/oom_score_adj", unix.O_WRONLY)
	p.Try("set oom_score_adj", unix.SYS_WRITE, stage.Result(adj), "500", 3)
	for i := range b.tasks {
		p.AtLeast(1, "enter cgroup", unix.SYS_WRITE, stage.At(&l.tasks[i]), "0", 1)
	}
	p.Add("new cgroup namespace", unix.SYS_UNSHARE, unix.CLONE_NEWCGROUP)
	p.Add("new session", unix.SYS_SETSID)
	p.Add("set stdin", unix.SYS_DUP3, stage.At(&l.stdin), 0, 0)
	p.Add("set stdout", unix.SYS_DUP3, stage.At(&l.stdout), 1, 0)
	p.Add("set stderr", unix.SYS_DUP3, stage.At(&l.stderr), 2, 0)
	if b.terminal() {
		p.Add("take terminal", unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 0)
	}
	p.Add("close descriptors", unix.SYS_CLOSE_RANGE, 3, int(^uint32(0)), closeRangeCloexec)
	p.Add("set umask", unix.SYS_UMASK, 0o022)
	for _, s := range ignoredSignals() {
		p.Add("reset signals", unix.SYS_RT_SIGACTION, s, stage.Bytes(&sigaction{}), nil, 8)
	}
	if b.host.outer < 0 { // an ordinary user cannot drop his groups; they grant nothing that he has not
		p.Add("drop groups", unix.SYS_SETGROUPS, 0, nil)
	}

	// The room is ready, or its init has ended; then there is nothing to read.
	p.Add("wait for init", unix.SYS_PPOLL, unsafe.Pointer(&l.poll[0]), 2, nil, nil, 8)
	p.AtLeast(1, "wait for init", unix.SYS_READ, l.ready[0], make([]byte, 1), 1)
	flags := programFlags
	if b.ownNetwork() {
		flags |= unix.CLONE_NEWNET
	}
	p.Add("enter room", unix.SYS_SETNS, stage.At(&l.poll[1]), flags)
	p.Add("enter user namespace", unix.SYS_SETNS, b.userNS, unix.CLONE_NEWUSER)
	for c := range unix.CAP_LAST_CAP + 1 {
		p.Try("drop bounding set", unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0, 0, 0)
	}
	p.Add("set gid", unix.SYS_SETRESGID, b.profile.GID, b.profile.GID, b.profile.GID)
	p.Add("set uid", unix.SYS_SETRESUID, b.profile.UID, b.profile.UID, b.profile.UID)
	p.Add("drop capabilities", unix.SYS_CAPSET, stage.Bytes(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}), make([]byte, 24))
	p.Add("set no_new_privs", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if b.has("landlock") {
		planLandlock(p, b.host.landlock, b.allowed)
	}
	// Not before here: the table of descriptors is a copy of this process's own, and may be fuller than the tool's may be.
	for _, r := range b.rlimits {
		p.Add("set "+r.name, unix.SYS_PRLIMIT64, 0, r.resource, stage.Bytes(&unix.Rlimit{Cur: r.value, Max: r.value}), nil)
	}
	if b.has("seccomp") {
		planSeccomp(p, b.seccomp)
	}
	p.Add(stepDirectory, unix.SYS_CHDIR, stage.At(&l.dir))
	p.Add("unblock signals", unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, make([]byte, 8), nil, 8)
	p.Add(stepExecute, unix.SYS_EXECVE, stage.At(&l.exe), stage.At(&l.argv), stage.At(&l.env))
	return p
}

// Steps of the program whose failure is the command's fault, not the box's.
const (
	stepDirectory = "enter directory"
	stepExecute   = "execute"
)

// sigaction is the kernel's struct sigaction: handler, flags, restorer, mask.
type sigaction [4]uint64

const (
	sigIgnore         = 1 // SIG_IGN
	closeRangeCloexec = 4 // CLOSE_RANGE_CLOEXEC, Linux 5.11
)

// ignoredSignals are those that this process ignores, because it was started so (nohup, a shell's background job) or by
// its own will: CLONE_CLEAR_SIGHAND leaves them ignored.
func ignoredSignals() (list []int) {
	ignored := ^uint64(0)
	if b, err := os.ReadFile("/proc/self/status"); err == nil {
		if _, rest, ok := strings.Cut(string(b), "\nSigIgn:\t"); ok && len(rest) >= 16 {
			if n, err := strconv.ParseUint(rest[:16], 16, 64); err == nil {
				ignored = n
			}
		}
	}
	for s := 1; s <= 64; s++ {
		if ignored&(1<<(s-1)) != 0 && s != int(unix.SIGKILL) && s != int(unix.SIGSTOP) {
			list = append(list, s)
		}
	}
	return list
}
