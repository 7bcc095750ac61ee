package main

import (
	"context"
	"os/exec"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"toolrun/archive"
)

// Of the sealing beside serve: a nice value of 19 and the idle class of ioprio_set(2), so that it takes what the calls leave.
const (
	sealNice     = 19
	ioprioWho    = 1       // IOPRIO_WHO_PROCESS
	ioprioIdle   = 3 << 13 // IOPRIO_CLASS_IDLE
	sealPatience = 2 * time.Second
)

// sealBeside seals what is due in a process of its own, the same as toolrun archive: its memory, its processor time and its
// locks are not those of the calls. It returns when that has ended; when ctx ends it is told to stop, and what it had begun
// is finished by the next one. Who is second finds that another one seals, and ends.
func (a *app) sealBeside(ctx context.Context, d *archive.Dir) {
	if !d.Due() {
		return
	}
	cmd := exec.CommandContext(ctx, selfPath(), "archive", "--data", d.Path(), "--json")
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	cmd.WaitDelay = sealPatience
	if err := startLow(cmd); err != nil {
		a.logger().Warn("months that are due cannot be sealed; 'toolrun archive' says why", "err", err)
		return
	}
	err := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		a.logger().Info("sealing was stopped, and goes on with the next serve")
	case err != nil:
		a.logger().Warn("months that are due were not sealed; 'toolrun archive' says why", "err", err)
	default:
		a.logger().Info("months that were due are sealed")
	}
}

// startLow starts a program with low priority in all its threads: it inherits that of the thread that starts it, which is
// given up afterwards, for only root could raise it again. Where it is refused the program runs as any other.
func startLow(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, sealNice)
		_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ioprioWho, 0, ioprioIdle)
		started <- cmd.Start()
	}()
	return <-started
}
