package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"toolrun/sandbox/internal/stage"
)

// A process with CAP_SYS_ADMIN makes its boxes in the host's own user namespace. Any other makes them in one more, the
// outer one, in which it has all capabilities over what is made there, and its own uid and gid are all that is mapped
// (user_namespaces(7)). Either way a tool runs in a user namespace below that, where it has none.

// errUserNS is a user namespace that this host does not allow, or that it allows and then refuses what is done in it.
type errUserNS struct{ err error }

func (e errUserNS) Error() string { return e.why() + "; " + userNSRemedy(readSwitch) }

func (e errUserNS) why() string {
	return "this host does not allow the user namespaces that a box needs: " + e.err.Error()
}

// userNSRemedy is what to do about it, by the first of the kernel's switches that is off. read gives the content of a file,
// "" where there is none.
func userNSRemedy(read func(path string) string) string {
	const orRoot = "; or start toolrun as root"
	switch {
	case strings.HasPrefix(read("/proc/sys/user/max_user_namespaces"), "0"):
		return "sysctl user.max_user_namespaces=15000"
	case strings.HasPrefix(read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"), "1"):
		return `AppArmor restricts them: give the toolrun binary an AppArmor profile with "userns,", or sysctl kernel.apparmor_restrict_unprivileged_userns=0` + orRoot
	case strings.HasPrefix(read("/proc/sys/kernel/unprivileged_userns_clone"), "0"):
		return "sysctl kernel.unprivileged_userns_clone=1" + orRoot
	}
	return "in a container: run it with --privileged, or with seccomp and AppArmor profiles that allow user namespaces and mounts in them; else start toolrun as root"
}

func readSwitch(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}

// refusedUserNS tells whether an error is of a host that refuses user namespaces or what is done in them, and so of
// one that has a switch for it.
func refusedUserNS(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EUSERS)
}

func (e errUserNS) Unwrap() error { return e.err }

// outerUserNS returns -1 for a privileged process, else a new user namespace for its boxes.
func outerUserNS() (int, error) {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return -1, fmt.Errorf("read own capabilities: %w", err)
	}
	all := true
	for _, c := range []uint{unix.CAP_SYS_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SYS_CHROOT, unix.CAP_SETPCAP, unix.CAP_CHOWN, unix.CAP_KILL, unix.CAP_SYS_PTRACE} {
		all = all && data[c/32].Effective&(1<<(c%32)) != 0
	}
	if all {
		return -1, nil
	}
	fd, err := newUserNS(&stage.Program{}, ids{os.Geteuid(), os.Getegid()}, true)
	if err != nil {
		return -1, errUserNS{err}
	}
	return fd, nil
}

// privilege adds the step by which a child of an unprivileged process gets its capabilities.
func (h *Host) privilege(p *stage.Program) {
	if h.outer >= 0 {
		p.Add("enter outer user namespace", unix.SYS_SETNS, h.outer, unix.CLONE_NEWUSER)
	}
}

// userNS returns a user namespace in which only the uid and gid exist, each mapped to itself. It is made once: a process
// in it has no capability, so the calls that share it share nothing writable.
func (h *Host) userNS(id ids) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if fd, ok := h.users[id]; ok {
		return fd, nil
	}
	if own := (ids{os.Geteuid(), os.Getegid()}); h.outer >= 0 && id != own {
		return -1, fmt.Errorf("run as %d:%d: an ordinary user can run tools as %d:%d only", id.uid, id.gid, own.uid, own.gid)
	}
	fd, err := newUserNS(h.child(), id, h.outer >= 0)
	if err != nil {
		return -1, errUserNS{fmt.Errorf("make user namespace for %d:%d: %w", id.uid, id.gid, err)}
	}
	h.users[id] = fd
	return fd, nil
}

// newUserNS makes a namespace below the one that child begins in. A privileged process writes its maps from outside, while
// a grandchild waits in it; an ordinary user's grandchild writes them itself (self), which is allowed for the ids that it
// has, once it has given up setgroups(2).
func newUserNS(child *stage.Program, id ids, self bool) (fd int, err error) {
	var gate [2]int
	if err := unix.Pipe2(gate[:], unix.O_CLOEXEC); err != nil {
		return -1, err
	}
	inner, caller := &stage.Program{}, &stage.Program{}
	maps := [][2]string{{"setgroups", "deny"}, {"uid_map", fmt.Sprintf("%d %d 1\n", id.uid, id.uid)}, {"gid_map", fmt.Sprintf("%d %d 1\n", id.gid, id.gid)}}
	if self {
		for _, m := range maps {
			f := inner.Add("open "+m[0], unix.SYS_OPENAT, unix.AT_FDCWD, "/proc/self/"+m[0], unix.O_WRONLY|unix.O_CLOEXEC)
			inner.AtLeast(int64(len(m[1])), "write "+m[0], unix.SYS_WRITE, stage.Result(f), m[1], len(m[1]))
			inner.Add("close "+m[0], unix.SYS_CLOSE, stage.Result(f))
		}
	}
	open := inner.Add("open user namespace", unix.SYS_OPENAT, unix.AT_FDCWD, "/proc/self/ns/user", unix.O_RDONLY|unix.O_CLOEXEC)
	inner.Try("wait", unix.SYS_READ, gate[0], make([]byte, 1), 1)
	// CLONE_FILES: it must not hold a copy of the gate's other end, or it would wait for itself. CLONE_PARENT: it is ours
	// to reap.
	i := child.Clone("clone", &stage.CloneArgs{Flags: unix.CLONE_VM | unix.CLONE_FILES | unix.CLONE_CLEAR_SIGHAND | unix.CLONE_NEWUSER | unix.CLONE_PARENT}, inner)
	c := caller.Clone("clone", &stage.CloneArgs{Flags: unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_FILES | unix.CLONE_CLEAR_SIGHAND, ExitSignal: uint64(unix.SIGCHLD)}, child)
	err = stage.Run(caller, nil)
	if err == nil {
		wait(caller.Got(c))
		if f := child.Failure(); f != nil {
			err = f
		}
	}
	if pid := child.Got(i); err == nil && !self {
		for _, m := range maps[1:] {
			if e := os.WriteFile(fmt.Sprintf("/proc/%d/%s", pid, m[0]), []byte(m[1]), 0); e != nil {
				err = e
			}
		}
	}
	unix.Close(gate[1])
	if pid := child.Got(i); pid > 0 {
		wait(pid)
	}
	unix.Close(gate[0])
	if f := inner.Failure(); err == nil && f != nil {
		err = f
	}
	if fd = inner.Got(open); err != nil {
		closeFD(&fd)
		return -1, err
	}
	return fd, nil
}
