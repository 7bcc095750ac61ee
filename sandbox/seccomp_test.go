package sandbox

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// decide runs the filter on one system call, as the kernel would.
func decide(t *testing.T, filter []unix.SockFilter, arch, nr uint32, args ...uint64) uint32 {
	t.Helper()
	var prog []bpf.Instruction
	for _, f := range filter {
		prog = append(prog, bpf.RawInstruction{Op: f.Code, Jt: f.Jt, Jf: f.Jf, K: f.K}.Disassemble())
	}
	vm, err := bpf.NewVM(prog)
	if err != nil {
		t.Fatal(err)
	}
	// The VM loads big-endian, the kernel's seccomp_data has native order: each word is written the way the VM reads it.
	data := make([]byte, 64)
	put := func(off int, v uint32) { binary.BigEndian.PutUint32(data[off:], v) }
	put(dataNR, nr)
	put(dataArch, arch)
	for i, arg := range args {
		put(dataArg0+8*i, uint32(arg))
		put(dataArg0+8*i+4, uint32(arg>>32))
	}
	ret, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(ret)
}

func TestTheSeccompFilterRefusesItsListAndNothingElse(t *testing.T) {
	for _, ptrace := range []bool{false, true} {
		filter, err := seccompFilter(ptrace)
		if err != nil {
			t.Fatal(err)
		}
		want := map[int]uint32{unix.SYS_CLONE3: retNoSys, unix.SYS_OPENAT2: retNoSys}
		for _, nr := range deniedSyscalls {
			want[nr] = retPerm
		}
		for _, nr := range tracingSyscalls {
			want[nr] = retPerm
			if ptrace {
				want[nr] = retAllow
			}
		}
		for nr := range 600 {
			w, ok := want[nr]
			if !ok {
				w = retAllow
			}
			if got := decide(t, filter, auditArchX86_64, uint32(nr)); got != w {
				t.Errorf("ptrace %v: system call %d gives %#x, want %#x", ptrace, nr, got, w)
			}
		}
		for _, c := range []struct {
			name       string
			arch, nr   uint32
			arg0, arg1 uint64
			want       uint32
			arg2       uint64
		}{
			{"a 32-bit program", 0x40000003, unix.SYS_READ, 0, 0, retNoSys, 0},
			{"x32", auditArchX86_64, x32Bit | unix.SYS_READ, 0, 0, retNoSys, 0},
			{"a thread", auditArchX86_64, unix.SYS_CLONE, unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND, 0, retAllow, 0},
			{"a user namespace", auditArchX86_64, unix.SYS_CLONE, unix.CLONE_NEWUSER, 0, retPerm, 0},
			{"unshare files", auditArchX86_64, unix.SYS_UNSHARE, unix.CLONE_FILES, 0, retAllow, 0},
			{"unshare mounts", auditArchX86_64, unix.SYS_UNSHARE, unix.CLONE_NEWNS, 0, retPerm, 0},
			{"TIOCGWINSZ", auditArchX86_64, unix.SYS_IOCTL, 0, unix.TIOCGWINSZ, retAllow, 0},
			{"TIOCSTI", auditArchX86_64, unix.SYS_IOCTL, 0, tiocsti, retPerm, 0},
			{"TIOCSTI with high bits", auditArchX86_64, unix.SYS_IOCTL, 0, 1<<32 | tiocsti, retPerm, 0},
			{"TIOCLINUX", auditArchX86_64, unix.SYS_IOCTL, 0, tioclinux, retPerm, 0},
			{"AF_UNIX", auditArchX86_64, unix.SYS_SOCKET, unix.AF_UNIX, 0, retAllow, 0},
			{"chmod", auditArchX86_64, unix.SYS_CHMOD, 0, 0o755, retAllow, 0},
			{"chmod setuid", auditArchX86_64, unix.SYS_CHMOD, 0, 0o4755, retPerm, 0},
			{"AF_VSOCK", auditArchX86_64, unix.SYS_SOCKET, unix.AF_VSOCK, 0, retAF, 0},
			{"a core of any size by setrlimit", auditArchX86_64, unix.SYS_SETRLIMIT, unix.RLIMIT_CORE, 0, retDone, 0},
			{"another limit", auditArchX86_64, unix.SYS_SETRLIMIT, unix.RLIMIT_NOFILE, 0, retAllow, 0},
			{"a core of any size", auditArchX86_64, unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, retDone, 0x7ffc0010},
			{"a core of any size, at a round address", auditArchX86_64, unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, retDone, 1 << 32},
			{"what a core may be", auditArchX86_64, unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, retAllow, 0},
			{"another limit, new", auditArchX86_64, unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, retAllow, 0x7ffc0010},
		} {
			if got := decide(t, filter, c.arch, c.nr, c.arg0, c.arg1, c.arg2); got != c.want {
				t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
			}
		}
	}
}
