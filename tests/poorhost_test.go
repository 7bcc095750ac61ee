package tests

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poorHost is a host that lacks something which boxes are made of, imitated for one process: the test binary starts itself,
// takes away what that host lacks, and executes toolrun. It needs root.
type poorHost struct {
	user    bool                      // in a user namespace of its own, as its root
	mounts  func() error              // in a mount namespace of its own
	caps    []int                     // all that are left to root; nil: all
	refused map[uintptr]syscall.Errno // system calls and what they fail with
	flags   uint32                    // of clone(2) that are refused with EPERM
}

const (
	poorHostVariable = "TOOLRUN_TESTS_HOST"
	poorUserVariable = "TOOLRUN_TESTS_UID"
)

// mountCalls are how mounts are made and changed.
var mountCalls = []uintptr{unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR}

var poorHosts = map[string]poorHost{
	// docker run without --privileged: its default capabilities and seccomp profile.
	"docker": {
		caps: []int{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_SETPCAP,
			unix.CAP_NET_BIND_SERVICE, unix.CAP_NET_RAW, unix.CAP_SYS_CHROOT, unix.CAP_MKNOD, unix.CAP_AUDIT_WRITE, unix.CAP_SETFCAP},
		refused: refuse(unix.EPERM, map[uintptr]syscall.Errno{unix.SYS_CLONE3: unix.ENOSYS, unix.SYS_UNSHARE: unix.EPERM, unix.SYS_SETNS: unix.EPERM}, mountCalls...),
		flags:   unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
	},
	// Ubuntu since 23.10: AppArmor lets an ordinary user make a user namespace, and refuses what needs its capabilities.
	"apparmor": {
		mounts: func() error {
			if err := unix.Mount("sys", "/proc/sys/kernel", "tmpfs", 0, ""); err != nil {
				return err
			}
			return os.WriteFile("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", []byte("1\n"), 0o644)
		},
		refused: refuse(unix.EACCES, nil, mountCalls...),
	},
	// No user namespaces at all, as hardened hosts have it.
	"no user namespaces": {user: true, mounts: func() error { return os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0) }},
	// A kernel without Landlock, or before Linux 5.13.
	"no landlock": {refused: map[uintptr]syscall.Errno{unix.SYS_LANDLOCK_CREATE_RULESET: unix.ENOSYS}},
	// A container into which no cgroup file system is mounted.
	"no cgroups": {mounts: func() error { return unix.Mount("none", "/sys/fs/cgroup", "tmpfs", 0, "") }},
}

// refuse adds calls that fail with one error.
func refuse(with syscall.Errno, calls map[uintptr]syscall.Errno, more ...uintptr) map[uintptr]syscall.Errno {
	if calls == nil {
		calls = map[uintptr]syscall.Errno{}
	}
	for _, call := range more {
		calls[call] = with
	}
	return calls
}

// on makes a command start on the poor host.
func (h poorHost) on(cmd *exec.Cmd, name string, uid int) {
	cmd.Args = append([]string{cmd.Path}, cmd.Args...)
	cmd.Args[1] = cmd.Path
	cmd.Path = "/proc/self/exe" // of whoever starts it: the test binary
	cmd.Env = append(cmd.Env, poorHostVariable+"="+name, poorUserVariable+"="+strconv.Itoa(uid))
	if h.user {
		all := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 65536}}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, UidMappings: all, GidMappings: all, GidMappingsEnableSetgroups: true}
	}
}

// enter takes away what the host lacks and executes os.Args[1:].
func (h poorHost) enter() error {
	runtime.LockOSThread() // execve keeps what this thread lacks, and ends the others
	if h.mounts != nil {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("unshare: %w", err)
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("make mounts private: %w", err)
		}
		if err := h.mounts(); err != nil {
			return err
		}
	}
	for c := 0; h.caps != nil && c <= unix.CAP_LAST_CAP; c++ {
		if slices.Contains(h.caps, c) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil && err != unix.EINVAL { // a capability that the kernel does not have
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if uid, err := strconv.Atoi(os.Getenv(poorUserVariable)); err != nil {
		return err
	} else if uid != 0 {
		for _, err := range []error{syscall.Setgroups(nil), syscall.Setgid(uid), syscall.Setuid(uid), unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)} {
			if err != nil {
				return err
			}
		}
	}
	if err := h.filter(); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	os.Unsetenv(poorHostVariable)
	os.Unsetenv(poorUserVariable)
	return unix.Exec(os.Args[1], os.Args[1:], os.Environ())
}

// filter refuses the system calls (Documentation/userspace-api/seccomp_filter.rst).
func (h poorHost) filter() error {
	if len(h.refused) == 0 && h.flags == 0 {
		return nil
	}
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	fail := func(e syscall.Errno) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(e)}
	}
	program := []unix.SockFilter{load(0)} // seccomp_data.nr
	for call, e := range h.refused {
		program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: uint32(call)}, fail(e))
	}
	program = append(program,
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 3, K: unix.SYS_CLONE},
		load(16), // seccomp_data.args[0], its lower half
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jf: 1, K: h.flags},
		fail(unix.EPERM),
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	p := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&p))); e != 0 {
		return e
	}
	return nil
}
