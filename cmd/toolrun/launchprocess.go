package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// ended is how an agent ended.
type ended struct{ wait syscall.WaitStatus }

// status is the exit status that a shell would give.
func (e ended) status() int {
	if e.wait.Signaled() {
		return 128 + int(e.wait.Signal())
	}
	return e.wait.ExitStatus()
}

func (e ended) String() string {
	if e.wait.Signaled() {
		return "was ended by " + unix.SignalName(e.wait.Signal())
	}
	return fmt.Sprintf("ended with exit status %d", e.wait.ExitStatus())
}

// forwarded are the signals that somebody sends to launch and means for the agent. Those of the terminal reach the agent
// itself, in its foreground group.
var forwarded = []os.Signal{
	unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP, unix.SIGCONT, unix.SIGWINCH,
}

// foreground is the process of an agent in a group of its own, which gets each signal once, and the terminal where launch
// had it: as a shell runs a job.
type foreground struct {
	terminal int // of launch, -1 where it is not in its foreground

	mu    sync.Mutex
	group int // of the agent; 0 before it began and after it ended
}

// runForeground runs cmd to its end. An error means that it never began.
func runForeground(cmd *exec.Cmd) (ended, error) {
	f := &foreground{terminal: ownTerminal(cmd.Stdin, cmd.Stdout)}
	signals := make(chan os.Signal, 16)
	for _, s := range forwarded {
		if !signal.Ignored(s) { // nohup means the agent too
			signal.Notify(signals, s)
		}
	}
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case s := <-signals:
				f.deliver(s.(syscall.Signal))
			case <-done:
				return
			}
		}
	}()
	defer func() {
		signal.Stop(signals)
		close(done)
		<-gone
	}()

	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return ended{}, err
	}
	f.begin(cmd.Process.Pid)
	return f.wait(cmd.Process.Pid)
}

// ownTerminal is the descriptor of the terminal that launch holds the foreground of, where both streams are terminals: in
// a pipeline the terminal belongs to the others too.
func ownTerminal(stdin io.Reader, stdout io.Writer) int {
	in, ok := stdin.(*os.File)
	out, okOut := stdout.(*os.File)
	if !ok || !okOut {
		return -1
	}
	if _, err := unix.IoctlGetTermios(int(out.Fd()), unix.TCGETS); err != nil {
		return -1
	}
	group, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCGPGRP)
	if err != nil || group != unix.Getpgrp() {
		return -1
	}
	return int(in.Fd())
}

func (f *foreground) begin(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.group = pid
	f.give(pid)
}

// give hands the terminal to a group. Taking it back is done from the background, where SIGTTOU would stop us; it is not
// ignored for longer, since children inherit that.
func (f *foreground) give(group int) {
	if f.terminal < 0 {
		return
	}
	signal.Ignore(unix.SIGTTOU)
	defer signal.Reset(unix.SIGTTOU)
	unix.IoctlSetPointerInt(f.terminal, unix.TIOCSPGRP, group)
}

// deliver hands a signal on. SIGCONT is the shell's after a stop: the agent goes on, in the foreground if launch was put
// there.
func (f *foreground) deliver(s syscall.Signal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.group == 0 {
		return
	}
	if s == unix.SIGCONT && f.terminal >= 0 {
		if group, err := unix.IoctlGetInt(f.terminal, unix.TIOCGPGRP); err == nil && group == unix.Getpgrp() {
			f.give(f.group)
		}
	}
	unix.Kill(-f.group, s)
}

// wait waits for the end of the agent. When it is stopped launch stops too, so that the shell sees it.
func (f *foreground) wait(pid int) (ended, error) {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return ended{}, fmt.Errorf("wait for the agent: %w", err)
		}
		if !status.Stopped() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.group = 0
			f.give(unix.Getpgrp())
			return ended{status}, nil
		}
		f.stopped(status.StopSignal())
	}
}

// stopped follows the agent into a stop. One that reached for the terminal before it had it goes on at once, and so does
// one that nobody could continue.
func (f *foreground) stopped(by syscall.Signal) {
	early := f.terminal >= 0 && (by == unix.SIGTTIN || by == unix.SIGTTOU)
	f.mu.Lock()
	if early {
		f.give(f.group)
	}
	if early || orphaned() {
		unix.Kill(-f.group, unix.SIGCONT)
		f.mu.Unlock()
		return
	}
	f.give(unix.Getpgrp())
	f.mu.Unlock()
	unix.Kill(0, unix.SIGSTOP) // deliver goes on with SIGCONT
}

// orphaned says whether nobody of this session is there to continue us: the parent is in another one.
func orphaned() bool {
	parent, err := unix.Getsid(os.Getppid())
	own, errOwn := unix.Getsid(0)
	return err != nil || errOwn != nil || parent != own
}
