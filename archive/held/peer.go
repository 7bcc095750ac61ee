package held

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"toolrun/archive/ledger"
)

// peerOf says who is at the other end, as the kernel knows it: SO_PEERCRED (unix(7)) and /proc. Another user than ours and
// root is refused.
func peerOf(conn *net.UnixConn) (by ledger.Answerer, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return by, err
	}
	var cred *unix.Ucred
	if ctl := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); ctl != nil {
		return by, ctl
	}
	if err != nil {
		return by, fmt.Errorf("who asks is not known: %w", err)
	}
	if int(cred.Uid) != os.Geteuid() && cred.Uid != 0 {
		return by, errors.New("another user than the one who runs this server cannot answer")
	}
	return Process(int(cred.Uid), int(cred.Pid)), nil
}

// Process tells of a process what stands on a row. What cannot be looked at (a process in another pid namespace has no
// number here) stays nil.
func Process(uid, pid int) ledger.Answerer {
	by := ledger.Answerer{Via: ledger.ViaTerminal, UID: &uid}
	if pid <= 0 {
		return by
	}
	by.PID = &pid
	if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil {
		by.Exe = &exe
	}
	stdin := fmt.Sprintf("/proc/%d/fd/0", pid)
	fd, err := unix.Open(stdin, unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return by
	}
	defer unix.Close(fd)
	if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err != nil {
		return by
	}
	if name, err := os.Readlink(stdin); err == nil && strings.HasPrefix(name, "/dev/") {
		by.TTY = &name
	}
	return by
}
