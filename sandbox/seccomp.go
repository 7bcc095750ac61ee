package sandbox

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"toolrun/sandbox/internal/stage"
)

// The seccomp filter is a second wall behind namespaces and capabilities: it takes away what a tool could use to build
// walls of its own, to reach across them, or to reach seldom used kernel code. Refused calls fail, they do not kill: many
// programs try and go on. Sources: seccomp(2); the lists that Docker and Flatpak refuse by default.

// deniedSyscalls fail with EPERM.
var deniedSyscalls = []int{
	// mounts and roots
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_OPEN_TREE, sysOpenTreeAttr, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	// namespaces; clone and unshare are looked at closer
	unix.SYS_SETNS, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	// keys, kernel, devices, time
	unix.SYS_ADD_KEY, unix.SYS_KEYCTL, unix.SYS_REQUEST_KEY, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER,
	unix.SYS_IO_URING_REGISTER, unix.SYS_FANOTIFY_INIT, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_SYSLOG, unix.SYS_ACCT, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
	unix.SYS_CLOCK_ADJTIME, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS_VHANGUP, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL, unix.SYS_CREATE_MODULE,
	unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE, unix.SYS__SYSCTL,
}

// sysOpenTreeAttr is open_tree_attr(2), Linux 6.15.
const sysOpenTreeAttr = 467

// tracingSyscalls fail with EPERM unless the profile allows Ptrace.
var tracingSyscalls = []int{unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD}

// newNamespaces are the flags of clone(2) and unshare(2) that make one.
const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

// Offsets in struct seccomp_data; an argument's low word comes first on little-endian machines.
const (
	dataNR   = 0
	dataArch = 4
	dataArg0 = 16
	dataArg1 = 24
	dataArg2 = 32
	dataArg3 = 40
)

const (
	auditArchX86_64 = 0xC000003E
	x32Bit          = 0x40000000
	tiocsti         = 0x5412
	tioclinux       = 0x541C
	tiocsetd        = 0x5423
)

// Returned by the filter.
var (
	retAllow = uint32(unix.SECCOMP_RET_ALLOW)
	retPerm  = refuse(unix.EPERM)
	retNoSys = refuse(unix.ENOSYS)
	retAF    = refuse(unix.EAFNOSUPPORT)
	retDone  = refuse(0) // says that it was done, and does nothing
)

func refuse(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

// rule is what the filter does at one system call number: return a value, or look at an argument's low word first.
type rule struct {
	nr    int
	ret   uint32
	arg   uint32   // offset of the argument, 0: none
	bits  uint32   // refuse where one of them is set
	also  uint32   // with bits: offset of a second argument, 0: none
	mask  uint32   // of which one bit must be set as well
	equal []uint32 // refuse where it is one of these
	given uint32   // with equal, of one value: offset of a pointer that must not be null as well, 0: none
}

func seccompRules(ptrace bool) []rule {
	var rules []rule
	for _, nr := range deniedSyscalls {
		rules = append(rules, rule{nr: nr, ret: retPerm})
	}
	if !ptrace {
		for _, nr := range tracingSyscalls {
			rules = append(rules, rule{nr: nr, ret: retPerm})
		}
	}
	rules = append(rules,
		// clone3 hides its flags behind a pointer. ENOSYS makes C libraries fall back to clone, EPERM breaks threads.
		rule{nr: unix.SYS_CLONE3, ret: retNoSys},
		// CLONE_PARENT would make a sibling of the program, a child of toolrun that nobody reaps: its box would never end.
		rule{nr: unix.SYS_CLONE, ret: retPerm, arg: dataArg0, bits: newNamespaces | unix.CLONE_PARENT},
		rule{nr: unix.SYS_UNSHARE, ret: retPerm, arg: dataArg0, bits: newNamespaces},
		// The kernel reads 32 bits of an ioctl's command; a compare of 64 could be evaded.
		rule{nr: unix.SYS_IOCTL, ret: retPerm, arg: dataArg1, equal: []uint32{tiocsti, tioclinux, tiocsetd}}, // the last loads other line disciplines
		rule{nr: unix.SYS_SOCKET, ret: retAF, arg: dataArg0, equal: []uint32{unix.AF_VSOCK}},                 // reaches the hypervisor, past every network namespace
	)
	rules = append(rules, setuidRules...)
	rules = append(rules, coreRules...)
	slices.SortFunc(rules, func(a, b rule) int { return a.nr - b.nr })
	return rules
}

// setuidBits make a program run as its owner: what a tool leaves in the workspace stays there, on a file system of the
// host, where other users may execute it.
const setuidBits = unix.S_ISUID | unix.S_ISGID

var setuidRules = []rule{
	{nr: unix.SYS_CHMOD, ret: retPerm, arg: dataArg1, bits: setuidBits},
	{nr: unix.SYS_FCHMOD, ret: retPerm, arg: dataArg1, bits: setuidBits},
	{nr: unix.SYS_FCHMODAT, ret: retPerm, arg: dataArg2, bits: setuidBits},
	{nr: sysFchmodat2, ret: retPerm, arg: dataArg2, bits: setuidBits},
	{nr: unix.SYS_CREAT, ret: retPerm, arg: dataArg1, bits: setuidBits},
	{nr: unix.SYS_MKNOD, ret: retPerm, arg: dataArg1, bits: setuidBits},
	{nr: unix.SYS_MKNODAT, ret: retPerm, arg: dataArg2, bits: setuidBits},
	// The mode counts only where a file may be made; else its register holds anything.
	{nr: unix.SYS_OPEN, ret: retPerm, arg: dataArg2, bits: setuidBits, also: dataArg1, mask: opensNew},
	{nr: unix.SYS_OPENAT, ret: retPerm, arg: dataArg3, bits: setuidBits, also: dataArg2, mask: opensNew},
	{nr: unix.SYS_OPENAT2, ret: retNoSys}, // hides its mode behind a pointer; programs fall back to openat
}

// coreRules leave the limit of a core at 1: at 0, which many programs set who mean to leave no core, the kernel starts the
// program that core_pattern names all the same. They would take an error for the failure of that.
var coreRules = []rule{
	{nr: unix.SYS_SETRLIMIT, ret: retDone, arg: dataArg0, equal: []uint32{unix.RLIMIT_CORE}},
	{nr: unix.SYS_PRLIMIT64, ret: retDone, arg: dataArg1, equal: []uint32{unix.RLIMIT_CORE}, given: dataArg2}, // else it only reads
}

const (
	sysFchmodat2 = 452 // Linux 6.6
	opensNew     = unix.O_CREAT | (unix.O_TMPFILE &^ unix.O_DIRECTORY)
)

// seccompFilter compiles the rules to a classic BPF program. The kernel runs a filter once for each system call number when
// it is installed, to know which numbers it always allows; so the rules are found by binary search.
func seccompFilter(ptrace bool) ([]unix.SockFilter, error) {
	prog := []bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArchX86_64, SkipTrue: 1},
		bpf.RetConstant{Val: retNoSys}, // a 32-bit program
		bpf.LoadAbsolute{Off: dataNR, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32Bit, SkipTrue: 1},
		bpf.RetConstant{Val: retNoSys},
	}
	raw, err := bpf.Assemble(append(prog, search(spans(seccompRules(ptrace)))...))
	if err != nil {
		return nil, fmt.Errorf("assemble the seccomp filter: %w", err)
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return filter, nil
}

// seccompAvailable asks the kernel whether it knows the action that the filter uses.
func seccompAvailable() error {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action))); errno != 0 {
		return fmt.Errorf("the kernel has no seccomp filters: %w", errno)
	}
	return nil
}

// planSeccomp adds the step that installs the filter. Only what the filter allows may follow it.
func planSeccomp(p *stage.Program, filter []unix.SockFilter) {
	// struct sock_fprog holds a pointer, at its own alignment.
	prog := &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	p.Keep(filter)
	p.Add("install seccomp filter", unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, stage.Bytes(prog))
}

// span is what the filter does from one system call number on, until the next span begins: look at the rule, or allow.
type span struct {
	from uint32
	rule *rule
}

// spans turns sorted rules into spans that cover all numbers; neighbours that are refused alike share one.
func spans(rules []rule) []span {
	list := []span{{0, nil}}
	for i := range rules {
		r := &rules[i]
		last := &list[len(list)-1]
		if last.rule == nil && last.from == uint32(r.nr) {
			list = list[:len(list)-1]
			if last = &list[len(list)-1]; last.rule.arg != 0 || r.arg != 0 || last.rule.ret != r.ret {
				list = append(list, span{uint32(r.nr), r})
			}
		} else {
			list = append(list, span{uint32(r.nr), r})
		}
		list = append(list, span{uint32(r.nr) + 1, nil})
	}
	return list
}

// search is a binary search over spans, with the system call's number loaded.
func search(list []span) []bpf.Instruction {
	if len(list) == 1 {
		return list[0].rule.decide()
	}
	half := len(list) / 2
	low, high := search(list[:half]), search(list[half:])
	if len(low) < 256 {
		return slices.Concat([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: list[half].from, SkipTrue: uint8(len(low))}}, low, high)
	}
	// A conditional jump skips at most 255 instructions, a plain one any number.
	return slices.Concat([]bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: list[half].from, SkipTrue: 1},
		bpf.Jump{Skip: uint32(len(low))},
	}, low, high)
}

// decide is what a rule does; nil allows.
func (r *rule) decide() []bpf.Instruction {
	allow := bpf.RetConstant{Val: retAllow}
	if r == nil {
		return []bpf.Instruction{allow}
	}
	refuse := bpf.RetConstant{Val: r.ret}
	switch {
	case r.arg == 0:
		return []bpf.Instruction{refuse}
	case r.also != 0:
		return []bpf.Instruction{
			bpf.LoadAbsolute{Off: r.arg, Size: 4}, bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: r.bits, SkipFalse: 3},
			bpf.LoadAbsolute{Off: r.also, Size: 4}, bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: r.mask, SkipFalse: 1}, refuse, allow,
		}
	case r.bits != 0:
		return []bpf.Instruction{bpf.LoadAbsolute{Off: r.arg, Size: 4}, bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: r.bits, SkipFalse: 1}, refuse, allow}
	case r.given != 0:
		return []bpf.Instruction{
			bpf.LoadAbsolute{Off: r.arg, Size: 4}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: r.equal[0], SkipFalse: 5},
			bpf.LoadAbsolute{Off: r.given, Size: 4}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 2},
			bpf.LoadAbsolute{Off: r.given + 4, Size: 4}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, refuse, allow,
		}
	}
	prog := []bpf.Instruction{bpf.LoadAbsolute{Off: r.arg, Size: 4}}
	for _, v := range r.equal {
		prog = append(prog, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipFalse: 1}, refuse)
	}
	return append(prog, allow)
}
