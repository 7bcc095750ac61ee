package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"toolrun/sandbox/cgroup"
)

// attacks are what a hostile tool does inside the box: this test binary, run there with one of these names. Each says what
// it got; nil means that it succeeded.
var attacks = map[string]func() error{
	"mount tmpfs":   func() error { return unix.Mount("x", "/tmp", "tmpfs", 0, "") },
	"remount":       func() error { return unix.Mount("", "/usr", "", unix.MS_REMOUNT|unix.MS_BIND, "") },
	"unmount":       func() error { return unix.Unmount("/proc", unix.MNT_DETACH) },
	"mount cgroup":  func() error { return unix.Mount("x", "/tmp", "cgroup2", 0, "") },
	"fsopen":        func() error { _, err := unix.Fsopen("tmpfs", 0); return err },
	"open_tree":     func() error { _, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE); return err },
	"pivot_root":    func() error { return unix.PivotRoot("/", "/tmp") },
	"chroot":        func() error { return unix.Chroot("/tmp") },
	"mknod":         func() error { return unix.Mknod("/tmp/disk", unix.S_IFBLK|0o666, int(unix.Mkdev(254, 0))) },
	"unshare user":  func() error { return unix.Unshare(unix.CLONE_NEWUSER) },
	"unshare mount": func() error { return unix.Unshare(unix.CLONE_NEWNS) },
	"setns":         func() error { return viaFile("/proc/self/ns/mnt", func(fd int) error { return unix.Setns(fd, 0) }) },
	"clone3":        func() error { return errnoOf(unix.Syscall(unix.SYS_CLONE3, 0, 0, 0)) },
	"clone parent": func() error { // a child of toolrun, which knows nothing of it
		pid, _, e := unix.RawSyscall(unix.SYS_CLONE, unix.CLONE_PARENT|uintptr(unix.SIGCHLD), 0, 0)
		if pid == 0 && e == 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		return errnoOf(pid, 0, e)
	},
	"keyctl":      func() error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true); return err },
	"add_key":     func() error { _, err := unix.AddKey("user", "x", []byte("y"), unix.KEY_SPEC_USER_KEYRING); return err },
	"bpf":         func() error { return errnoOf(unix.Syscall(unix.SYS_BPF, 0, 0, 0)) },
	"userfaultfd": func() error { return errnoOf(unix.Syscall(unix.SYS_USERFAULTFD, 0, 0, 0)) },
	"io_uring":    func() error { return errnoOf(unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0)) },
	"perf":        func() error { return errnoOf(unix.Syscall(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0)) },
	"open_by_handle_at": func() error {
		_, err := unix.OpenByHandleAt(unix.AT_FDCWD, unix.NewFileHandle(1, make([]byte, 8)), unix.O_RDONLY)
		return err
	},
	"ptrace others": func() error {
		for pid := 1; pid < 64; pid++ { // more than these boxes have
			err := errnoOf(unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0, 0, 0))
			if own, _ := os.Stat(fmt.Sprintf("/proc/self/task/%d", pid)); err == nil && own == nil {
				return nil
			}
		}
		return errors.New("nobody to trace")
	},
	"ptrace": func() error { // toolrun becomes the tracer of threads, one of which is not the main one
		got := make(chan error)
		for range 2 {
			go func() {
				runtime.LockOSThread()
				got <- errnoOf(unix.Syscall(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0))
				select {}
			}()
		}
		return errors.Join(<-got, <-got)
	},
	"process_vm_readv": func() error { return errnoOf(unix.Syscall6(unix.SYS_PROCESS_VM_READV, 1, 0, 0, 0, 0, 0)) },
	"reboot":           func() error { return unix.Reboot(unix.LINUX_REBOOT_CMD_CAD_OFF) },
	"sethostname":      func() error { return unix.Sethostname([]byte("x")) },
	"settime":          func() error { return unix.Settimeofday(&unix.Timeval{Sec: 1}) },
	"raise nofile":     func() error { return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}) },
	"raise fsize": func() error {
		return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	},
	"lower oom_score": func() error { return os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0) },
	"kill init":       func() error { return killAndLook(1) },
	"signal server": func() error {
		pid, err := strconv.Atoi(os.Getenv("SERVER_PID"))
		if err != nil {
			return nil // it must be told
		}
		return unix.Kill(pid, 0)
	},
	"open tty": func() error { return viaFile("/dev/tty", func(int) error { return nil }) },
	"tiocsti": func() error {
		b := byte('x')
		return errnoOf(unix.Syscall(unix.SYS_IOCTL, 0, tiocsti, uintptr(unsafe.Pointer(&b))))
	},
	"tiocsti high bits": func() error {
		b := byte('x')
		return errnoOf(unix.Syscall(unix.SYS_IOCTL, 0, 1<<32|tiocsti, uintptr(unsafe.Pointer(&b))))
	},
	"chmod device": func() error { return unix.Chmod("/dev/null", 0o600) },
	"touch device": func() error { return unix.Utimes("/dev/zero", make([]unix.Timeval, 2)) },
	"chmod mask":   func() error { return unix.Chmod("/proc/keys", 0o666) },
	"setuid file":  func() error { return setuidFile(func(p string) error { return unix.Chmod(p, 0o4755) }) },
	"setgid file": func() error {
		return setuidFile(func(p string) error { return unix.Fchmodat(unix.AT_FDCWD, p, 0o2755, 0) })
	},
	"setuid born": func() error {
		fd, err := unix.Open("born", unix.O_CREAT|unix.O_WRONLY, 0o4755)
		unix.Close(fd)
		return err
	},
	"setuid node":    func() error { return unix.Mknod("node", unix.S_IFREG|0o4755, 0) },
	"core_pattern":   func() error { return os.WriteFile("/proc/sys/kernel/core_pattern", []byte("|/tmp/x"), 0) },
	"sysrq":          func() error { return os.WriteFile("/proc/sysrq-trigger", []byte("h"), 0) },
	"proc of init":   func() error { _, err := os.ReadFile("/proc/1/environ"); return err },
	"root of init":   func() error { _, err := os.ReadDir("/proc/1/root"); return err },
	"proc of parent": func() error { _, err := os.ReadDir("/proc/" + strconv.Itoa(os.Getppid()) + "/fd"); return err },
	"write /usr":     func() error { return os.WriteFile("/usr/x", nil, 0o644) },
	"write /":        func() error { return os.WriteFile("/x", nil, 0o644) },
	"write /etc":     func() error { return os.WriteFile("/etc/passwd", nil, 0o644) },
	"read shadow":    func() error { _, err := os.ReadFile("/etc/shadow"); return err },
	"read home": func() error {
		es, err := os.ReadDir(os.Getenv("HOST_HOME") + "/.")
		if err == nil && len(es) == 0 {
			err = errors.New("empty")
		}
		return err
	},
	"cgroupfs": func() error { _, err := os.ReadDir("/sys/fs/cgroup"); return err },
	"gain by setuid": func() error {
		if err := unix.Setuid(0); err != nil {
			return err
		}
		if os.Geteuid() == 0 && os.Getenv("WAS_UID") != "0" {
			return nil
		}
		return errors.New("still nobody special")
	},
	"host loopback":   func() error { return dialed(net.DialTimeout("tcp", os.Getenv("HOST_TCP"), time.Second)) },
	"abstract socket": func() error { return dialed(net.Dial("unix", "@"+os.Getenv("HOST_ABSTRACT"))) },
	"socket file":     func() error { return dialed(net.Dial("unix", os.Getenv("HOST_SOCKET"))) },
	"host's shared memory": func() error {
		key, err := strconv.Atoi(os.Getenv("HOST_SHM"))
		if err != nil {
			return nil // it must be told
		}
		_, err = unix.SysvShmGet(key, 0, 0)
		return err
	},
	"vsock":         func() error { _, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0); return err },
	"packet socket": func() error { _, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0); return err },
	"left on stdin": leftOnStdin,
	"inherited descriptor": func() error {
		es, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return err
		}
		for _, e := range es {
			fd, _ := strconv.Atoi(e.Name())
			target, _ := os.Readlink("/proc/self/fd/" + e.Name())
			if fd > 2 && target != "" && !strings.HasPrefix(target, "anon_inode:") && !strings.HasPrefix(target, "/proc/") {
				return nil // one that this program did not open itself
			}
		}
		return errors.New("only its own")
	},
}

// leftOnStdin succeeds if an earlier call left something on the open file that is its stdin, or else leaves it.
func leftOnStdin() error {
	flags, err := unix.FcntlInt(0, unix.F_GETFL, 0)
	if err != nil || flags&unix.O_APPEND != 0 {
		return nil
	}
	if _, err := unix.FcntlInt(0, unix.F_SETFL, flags|unix.O_APPEND); err != nil {
		return nil // it must be possible
	}
	return errors.New("as new")
}

// setuidFile makes a file in the workspace, and lets change give it a mode.
func setuidFile(change func(path string) error) error {
	if err := os.WriteFile("shell", []byte("#!/bin/sh"), 0o755); err != nil {
		return nil // it must be possible
	}
	return change("shell")
}

func errnoOf(_, _ uintptr, e unix.Errno) error {
	if e != 0 {
		return e
	}
	return nil
}

func viaFile(path string, f func(int) error) error {
	fd, err := unix.Open(path, unix.O_RDWR, 0)
	if err == unix.EACCES || err == unix.EISDIR || err == unix.EROFS {
		fd, err = unix.Open(path, unix.O_RDONLY, 0)
	}
	if err != nil {
		return err
	}
	return f(fd)
}

// killAndLook succeeds if the process is gone after the signal.
func killAndLook(pid int) error {
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		return err
	}
	time.Sleep(50 * time.Millisecond)
	return fmt.Errorf("the signal was ignored: this process still runs")
}

func dialed(c net.Conn, err error) error {
	if err == nil {
		c.Close()
	}
	return err
}

// hostile runs one attack and prints what came of it, or with everyAttack all of them but the inherited descriptor, which
// only a program can judge that has opened nothing.
func hostile(name string) {
	names := []string{name}
	if name == everyAttack {
		names = slices.DeleteFunc(slices.Sorted(maps.Keys(attacks)), func(n string) bool { return n == "inherited descriptor" })
	}
	for _, n := range names {
		if name == everyAttack {
			fmt.Print(n, ": ")
		}
		if err := attacks[n](); err != nil {
			fmt.Println("refused:", err)
		} else {
			fmt.Println("DONE")
		}
	}
}

const everyAttack = "all"

func TestACallFindsNothingThatAnEarlierOneLeft(t *testing.T) {
	needsBash(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, work := testBox(t, func(p *Profile) { p.Mounts = append(p.Mounts, Mount{filepath.Dir(self), filepath.Dir(self), false}) })
	for range 8 { // more than rooms are made ahead
		var out bytes.Buffer
		b.Run(t.Context(), Command{Argv: []string{self}, Exe: self, Dir: work, Stdout: &out, Timeout: 60 * time.Second, Env: []string{"SANDBOX_TEST_ATTACK=left on stdin"}})
		if got := out.String(); got != "left on stdin: refused: as new\n" && got != "refused: as new\n" {
			t.Errorf("flags of the open file: %q", got)
		}
		_, counters := run(t, b, 20*time.Second, "bash", "-c", "grep lo: /proc/net/dev; grep -h ^Udp: /proc/net/snmp | tail -1; echo x >/dev/udp/127.0.0.1/9; true")
		if strings.ContainsAny(strings.ReplaceAll(counters, "lo:", ""), "123456789") {
			t.Errorf("counters of the network: %s", counters)
		}
	}
	_, limits := run(t, b, 20*time.Second, "bash", "-c", "ulimit -c 0; prlimit --core=0:0 true; prlimit --core --raw --noheadings -o SOFT,HARD")
	if limits != "1 1\n" { // what no crash reporter is started for
		t.Errorf("size of a core: %q", limits)
	}
}

func TestANetworkThatACallLeavesAsItWasIsUsedAgain(t *testing.T) {
	b, work := testBox(t, nil)
	if !b.ownNetwork() {
		lacks(t, "no network namespaces here")
	}
	first, err := b.host.takeNetwork()
	if err != nil {
		t.Fatal(err)
	}
	b.host.giveNetwork(first)
	for range 5 {
		sh(t, b, work, "true")
	}
	b.Close()
	b.host.janitor.settle()
	if !slices.Contains(b.host.nets, first) {
		t.Error("the network of a call that did nothing was dropped")
	}
}

func TestEveryAttackIsRefused(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	abstract := fmt.Sprintf("toolrun-test-%d", os.Getpid())
	a, err := net.Listen("unix", "@"+abstract)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	sock := filepath.Join(t.TempDir(), "s")
	s, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	shm, err := unix.SysvShmGet(os.Getpid(), 4096, unix.IPC_CREAT|0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.SysvShmCtl(shm, unix.IPC_RMID, nil)
	home, _ := os.UserHomeDir()
	type who struct {
		name     string
		uid, gid int
		network  bool
	}
	cases := []who{{"self", os.Geteuid(), os.Getegid(), false}, {"self, host network", os.Geteuid(), os.Getegid(), true}}
	if os.Geteuid() == 0 {
		cases = append(cases, who{"uid 1000", 1000, 1000, false})
	}
	for _, w := range cases {
		b, work := testBox(t, func(p *Profile) {
			p.UID, p.GID, p.HostNetwork = w.uid, w.gid, w.network
			p.Mounts = append(p.Mounts, Mount{filepath.Dir(self), filepath.Dir(self), false})
		})
		if err := os.Chmod(work, 0o777); err != nil {
			t.Fatal(err)
		}
		try := func(attack string) string {
			var out bytes.Buffer
			r := b.Run(t.Context(), Command{Argv: []string{self}, Exe: self, Dir: work, Stdout: &out, Timeout: 60 * time.Second, Env: []string{
				"SANDBOX_TEST_ATTACK=" + attack, "HOST_HOME=" + home, "HOST_TCP=" + l.Addr().String(), "HOST_ABSTRACT=" + abstract, "HOST_SOCKET=" + sock, fmt.Sprintf("WAS_UID=%d", w.uid), fmt.Sprintf("SERVER_PID=%d", os.Getpid()), fmt.Sprintf("HOST_SHM=%d", os.Getpid())}})
			if r.Outcome != Exited || r.ExitCode != 0 {
				t.Errorf("%s: %s: outcome %d, exit %d, %v, %q", w.name, attack, r.Outcome, r.ExitCode, r.Err, out.String())
			}
			return out.String()
		}
		results := map[string]string{"inherited descriptor": try("inherited descriptor")}
		for line := range strings.Lines(try(everyAttack)) {
			name, result, _ := strings.Cut(line, ": ")
			results[name] = result
		}
		for name := range attacks {
			if w.network && name == "host loopback" {
				continue // that is what the host's network is for
			}
			if w.network && name == "abstract socket" && b.host.landlock.Scoped == 0 {
				continue // Landlock before Linux 6.12 does not know them, see THREATS.md
			}
			if !strings.HasPrefix(results[name], "refused: ") {
				t.Errorf("%s: %q: %q", w.name, name, results[name])
			}
			want := map[string]string{"clone3": unix.ENOSYS.Error(), "vsock": unix.EAFNOSUPPORT.Error()}[name]
			if want != "" && b.has("seccomp") && !strings.Contains(results[name], want) {
				t.Errorf("%s: %q: %q, want %q", w.name, name, results[name], want)
			}
		}
	}
}

func TestPtraceIsAllowedWhereItIsDeclaredAndReachesNoOtherCall(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, work := testBox(t, func(p *Profile) {
		p.Ptrace = true
		p.Mounts = append(p.Mounts, Mount{filepath.Dir(self), filepath.Dir(self), false})
	})
	ctx, cancel := context.WithCancel(t.Context())
	var sibling sync.WaitGroup
	started := make(holding)
	sibling.Go(func() {
		b.Run(ctx, Command{Argv: []string{"sh", "-c", "echo holding; exec sleep 67.2"}, Exe: "/bin/sh", Env: []string{"PATH=/bin:/usr/bin"}, Dir: work, Stdout: started, Timeout: time.Minute})
	})
	<-started
	for attack, want := range map[string]string{"ptrace": "DONE\n", "ptrace others": "refused: nobody to trace\n"} {
		var out bytes.Buffer
		// A traced program stops at its next signal, until its timeout: nobody tells it to go on.
		r := b.Run(t.Context(), Command{Argv: []string{self}, Exe: self, Dir: work, Stdout: &out, Timeout: 5 * time.Second, Env: []string{"SANDBOX_TEST_ATTACK=" + attack}})
		if out.String() != want || r.Leftover != nil || r.Duration > 8*time.Second {
			t.Errorf("%s: outcome %d, %v, %q, after %v %v is left", attack, r.Outcome, r.Err, out.String(), r.Duration, r.Leftover)
		}
	}
	cancel()
	sibling.Wait()
}

func TestPrivateFilesHaveASizeTogether(t *testing.T) {
	const limit = 32 << 20
	b, work := testBox(t, func(p *Profile) { p.Limits.MemoryBytes = limit })
	for _, dir := range []string{"/tmp", "/dev/shm", HomeDir} {
		r, out, errs := sh(t, b, work, "head -c 50000000 /dev/zero >"+dir+"/big && exit 0; stat -c %s "+dir+"/big; head -c 1000000 /dev/zero >/tmp/more && exit 0; exit 9")
		if r.Outcome != OutOfMemory && (r.Outcome != Exited || r.ExitCode == 0) {
			t.Errorf("%s: outcome %d, exit %d, %q, %q", dir, r.Outcome, r.ExitCode, out, errs)
		}
		if b.has(cgroup.Memory) && r.MemoryPeakBytes > limit+1<<20 {
			t.Errorf("%s: %d bytes of memory", dir, r.MemoryPeakBytes)
		}
		if n, err := strconv.Atoi(strings.TrimSpace(out)); !b.has(cgroup.Memory) && (err != nil || n > limit) {
			t.Errorf("%s: a file of %q bytes", dir, out)
		}
	}
}

func TestTwoCallsDoNotSeeEachOther(t *testing.T) {
	b, work := testBox(t, nil)
	var wg sync.WaitGroup
	started := make(holding)
	wg.Go(func() {
		b.Run(t.Context(), Command{Argv: []string{"sh", "-c", "echo holding; exec sleep 1.73"}, Exe: "/bin/sh", Env: []string{"PATH=/bin:/usr/bin"}, Dir: work, Stdout: started, Timeout: 10 * time.Second})
	})
	<-started
	_, out, errs := sh(t, b, work, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; ls /tmp /box/home | grep -v : | grep -v '"+strings.Split(work, "/")[2]+"'; ls /dev/shm")
	if strings.Contains(out, "sleep 1.73") {
		t.Errorf("a call sees another: %q %q", out, errs)
	}
	wg.Wait()
}

func TestSelfReportOfABox(t *testing.T) {
	b, work := testBox(t, nil)
	_, out, _ := sh(t, b, work, "grep -E '^(Cap|NoNewPrivs|Seccomp:|Groups|SigIgn|SigBlk)' /proc/self/status | tr -d '\\t '; cut -d' ' -f2 /proc/self/mounts | grep -v "+work+"; ls / /dev; ulimit -n; cat /proc/self/oom_score_adj; hostname; cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' '")
	for _, want := range []string{
		"CapInh:0000000000000000\nCapPrm:0000000000000000\nCapEff:0000000000000000\nCapBnd:0000000000000000\nCapAmb:0000000000000000\nNoNewPrivs:1\nSeccomp:2\n",
		"SigBlk:0000000000000000\nSigIgn:0000000000000000\n", "\n1024\n500\nbox\nlo\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in the report:\n%s", want, out)
		}
	}
	allowed := map[string]bool{"/": true, "/usr": true, "/bin": true, "/sbin": true, "/lib": true, "/lib64": true, "/box": true, "/tmp": true, "/proc": true}
	mounts, _, _ := strings.Cut(out[strings.Index(out, "Seccomp:2")+10:], "/:\n")
	for m := range strings.FieldsSeq(mounts) {
		if strings.HasPrefix(m, "/") && !allowed[m] && !strings.HasPrefix(m, "/etc/") && !strings.HasPrefix(m, "/dev/") && !strings.HasPrefix(m, "/proc/") && m != hostProc {
			t.Errorf("mount %s in the box", m)
		}
	}
}
