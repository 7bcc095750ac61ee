package stage

import (
	"errors"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestTheAssemblyKnowsTheLayoutOfOp(t *testing.T) {
	var o Op
	for _, f := range []struct {
		name      string
		got, want uintptr
	}{
		{"nr", unsafe.Offsetof(o.nr), 0},
		{"args", unsafe.Offsetof(o.args), 8},
		{"refs", unsafe.Offsetof(o.refs), 56},
		{"ret", unsafe.Offsetof(o.ret), 64},
		{"want", unsafe.Offsetof(o.want), 72},
		{"child", unsafe.Offsetof(o.child), 80},
		{"len", unsafe.Offsetof(o.len), 88},
		{"out", unsafe.Offsetof(o.out), 96},
		{"size", unsafe.Sizeof(o), 104},
	} {
		if f.got != f.want {
			t.Errorf("%s is at %d, the assembly has %d", f.name, f.got, f.want)
		}
	}
}

func TestAVforkChildWalksItsOwnOpsAndItsEndIsSeen(t *testing.T) {
	for _, c := range []struct {
		name string
		fill func(*Program)
		exit int
		step string
	}{
		{"all steps pass", func(p *Program) { p.Add("getpid", unix.SYS_GETPID) }, 0, ""},
		{"a step fails", func(p *Program) {
			p.Try("may fail", unix.SYS_CLOSE, -1)
			p.Add("close", unix.SYS_CLOSE, -1)
			p.Add("never", unix.SYS_GETPID)
		}, 127, "close"},
		{"too little", func(p *Program) { p.AtLeast(1, "empty write", unix.SYS_WRITE, 2, nil, 0) }, 127, "empty write"},
		{"a result as an argument", func(p *Program) {
			i := p.Add("open", unix.SYS_OPENAT, unix.AT_FDCWD, "/dev/null", unix.O_RDONLY)
			w := new(uintptr)
			p.Into(i, w)
			p.Add("close", unix.SYS_CLOSE, Result(i))
			p.Add("open again", unix.SYS_OPENAT, unix.AT_FDCWD, "/dev/null", unix.O_RDONLY)
			p.Add("close by word", unix.SYS_CLOSE, At(w))
		}, 0, ""},
		{"an argument by reference", func(p *Program) {
			w := new(uintptr)
			*w = 42
			p.Add("exit", unix.SYS_EXIT_GROUP, At(w))
		}, 42, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			child, parent, after := &Program{}, &Program{}, &Program{}
			c.fill(child)
			i := parent.Clone("clone", &CloneArgs{Flags: unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_CLEAR_SIGHAND, ExitSignal: uint64(unix.SIGCHLD)}, child)
			a := after.Try("getpid", unix.SYS_GETPID)
			if err := Run(parent, after); err != nil {
				t.Fatal(err)
			}
			if after.Got(a) != os.Getpid() {
				t.Error("the after-part was not walked by the caller")
			}
			var ws unix.WaitStatus
			if _, err := unix.Wait4(parent.Got(i), &ws, 0, nil); err != nil {
				t.Fatal(err)
			}
			if ws.ExitStatus() != c.exit {
				t.Errorf("exit status %d, want %d", ws.ExitStatus(), c.exit)
			}
			f := child.Failure()
			if c.step == "" && f != nil || c.step != "" && (f == nil || f.Step != c.step) {
				t.Errorf("failure %v, want step %q", f, c.step)
			}
		})
	}
}

func TestTheCallerGivesUpAtTheFirstFailureButWalksTheAfterPart(t *testing.T) {
	p, after := &Program{}, &Program{}
	p.Add("bad", unix.SYS_CLOSE, -1)
	never := p.Add("never", unix.SYS_GETPID)
	after.Try("fails too", unix.SYS_CLOSE, -1)
	last := after.Try("getpid", unix.SYS_GETPID)
	err := Run(p, after)
	var se *StepError
	if !errors.As(err, &se) || se.Step != "bad" || !errors.Is(err, unix.EBADF) {
		t.Fatalf("error %v", err)
	}
	if p.Got(never) != notReached {
		t.Error("a step after the failed one was walked")
	}
	if after.Got(last) != os.Getpid() {
		t.Error("the after-part stopped at a failure")
	}
}
