package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strconv"
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
	cmd := exec.CommandContext(ctx, selfPath(), "archive", "--gently", "--data", d.Path(), "--json")
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	cmd.WaitDelay = sealPatience
	if err := cmd.Start(); err != nil {
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

// gently lowers the priority of all threads of this process but one, and returns what does something on that one: while
// a process holds a lock that others wait for, it may not be kept from letting it go. New threads have the priority of that
// which starts them, and the runtime lets none be started by a thread that is locked. Where it is refused all is done as
// by any other process.
func gently() (urgent func(do func() error) error) {
	jobs, own := make(chan func()), make(chan int)
	go func() {
		runtime.LockOSThread() // and never unlocked
		own <- unix.Gettid()
		for do := range jobs {
			do()
		}
	}()
	spared := <-own
	for range 2 { // a thread may have been started meanwhile by one that was not lowered yet
		tasks, _ := os.ReadDir("/proc/self/task")
		for _, task := range tasks {
			if tid, err := strconv.Atoi(task.Name()); err == nil && tid != spared {
				_ = unix.Setpriority(unix.PRIO_PROCESS, tid, sealNice)
				_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ioprioWho, uintptr(tid), ioprioIdle)
			}
		}
	}
	return func(do func() error) error {
		done := make(chan error)
		jobs <- func() { done <- do() }
		return <-done
	}
}
