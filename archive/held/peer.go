package held

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"toolrun/archive/ledger"
)

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
