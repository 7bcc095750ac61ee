// Package stage is the child side of a box: what happens between clone and execve.
//
// A child that shares its parent's memory (CLONE_VM, which makes it ten times cheaper than a fork or a re-exec of a Go
// program) must not run Go code: it has no goroutine, no stack of its own, and must not allocate. So the whole child side
// is data: a Program is a table of raw system calls, prepared by the parent, and one assembly function walks it. The
// function uses registers only. Each op stores its result where the parent finds it afterwards, so that the step which
// failed and its errno need no channel of their own.
//
// The calling thread walks a Program too: it blocks its signals, enters namespaces, clones, and must come back as it was;
// that is the after-part of Run, which is walked whatever happened before.
package stage

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Op is one system call. Its layout is known to walk_amd64.s.
type Op struct {
	nr    uintptr
	args  [6]uintptr
	refs  uintptr // bit i: args[i] is the address of the word to pass
	ret   int64   // the kernel's raw result: -errno on failure
	want  int64   // a result below it is a failure
	child *Op     // of a clone op: what the child walks
	len   uintptr
	out   *uintptr // nil, or where the result is stored too
}

// any result is accepted.
const anyResult = -1 << 62

// notReached is the result of an op that was not walked.
const notReached = -1 << 61

// Ref is an argument that is read when the op is walked: the address of a word that an earlier op, or the parent, fills.
type Ref struct{ p *uintptr }

// Result is an argument too: the result of the op with that index in the same program.
type Result int

// At refers to the word w. The owner of w must keep it alive and must not let it live on a stack.
func At(w *uintptr) Ref { return Ref{w} }

// Program is a table of ops and what they point to.
type Program struct {
	ops   []Op
	names []string
	keep  []any // everything whose address an op holds
	links []link
}

// link is an argument that refers to another op's result; its address is known when the table has stopped growing.
type link struct{ op, arg, result int }

// Add appends a system call that must not fail and returns its index. Arguments are int, uintptr, Ref, Result, string (its
// bytes, NUL-terminated), []byte, unsafe.Pointer or nil.
func (p *Program) Add(name string, nr int, args ...any) int {
	return p.add(name, nr, 0, args)
}

// Try appends a system call that may fail.
func (p *Program) Try(name string, nr int, args ...any) int {
	return p.add(name, nr, anyResult, args)
}

// Into makes op i store its result in w too, e.g. a descriptor in a structure that a later op passes. The owner of w must
// keep it alive and must not let it live on a stack.
func (p *Program) Into(i int, w *uintptr) {
	p.ops[i].out = w
	p.keep = append(p.keep, w)
}

// Keep keeps v alive as long as the program: something that a structure of an op points to.
func (p *Program) Keep(v any) { p.keep = append(p.keep, v) }

// AtLeast appends a system call whose result must not be below want.
func (p *Program) AtLeast(want int64, name string, nr int, args ...any) int {
	return p.add(name, nr, want, args)
}

// Bytes is the memory of a C structure, to be passed by its address. v must not be changed by anybody but its owner.
func Bytes[T any](v *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}

// CloneArgs is struct clone_args of clone3(2), up to the cgroup field (Linux 5.7).
type CloneArgs struct {
	Flags, Pidfd, ChildTid, ParentTid, ExitSignal, Stack, StackSize, TLS, SetTid, SetTidSize, Cgroup uint64
}

// Clone appends a clone3 whose child walks the given program and then exits.
func (p *Program) Clone(name string, args *CloneArgs, child *Program) int {
	i := p.add(name, unix.SYS_CLONE3, 1, []any{unsafe.Pointer(args), int(unsafe.Sizeof(*args))})
	p.keep = append(p.keep, args, child)
	if len(child.ops) == 0 {
		panic("stage: a child without ops")
	}
	child.link()
	p.ops[i].child, p.ops[i].len = &child.ops[0], uintptr(len(child.ops))
	return i
}

// link fills in the addresses of results. Nothing may be added to a program after that.
func (p *Program) link() {
	for _, l := range p.links {
		p.ops[l.op].args[l.arg] = uintptr(unsafe.Pointer(&p.ops[l.result].ret))
	}
}

func (p *Program) add(name string, nr int, want int64, args []any) int {
	op := Op{nr: uintptr(nr), ret: notReached, want: want}
	for i, a := range args {
		switch a := a.(type) {
		case nil:
		case int:
			op.args[i] = uintptr(a)
		case uintptr:
			op.args[i] = a
		case Ref:
			op.args[i] = uintptr(unsafe.Pointer(a.p))
			op.refs |= 1 << i
			p.keep = append(p.keep, a.p)
		case Result:
			op.refs |= 1 << i
			p.links = append(p.links, link{len(p.ops), i, int(a)})
		case string:
			b := append([]byte(a), 0)
			op.args[i] = uintptr(unsafe.Pointer(&b[0]))
			p.keep = append(p.keep, b)
		case []byte:
			op.args[i] = uintptr(unsafe.Pointer(unsafe.SliceData(a)))
			p.keep = append(p.keep, a)
		case unsafe.Pointer:
			op.args[i] = uintptr(a)
			p.keep = append(p.keep, a)
		default:
			panic(fmt.Sprintf("stage: %s: argument %d is a %T", name, i, a))
		}
	}
	p.ops = append(p.ops, op)
	p.names = append(p.names, name)
	return len(p.ops) - 1
}

// Got is the raw result of op i in the last Run.
func (p *Program) Got(i int) int { return int(p.ops[i].ret) }

// Reached tells whether op i was walked in the last Run.
func (p *Program) Reached(i int) bool { return p.ops[i].ret != notReached }

// Reset forgets the results of a Run, so that the program may be walked again.
func (p *Program) Reset() {
	for i := range p.ops {
		p.ops[i].ret = notReached
	}
}

// Failure names the first step that failed in the last Run, nil if none did. Steps that were not reached are no failure.
func (p *Program) Failure() *StepError {
	for i := range p.ops {
		op := &p.ops[i]
		if op.ret == notReached || op.ret >= op.want {
			continue
		}
		e := &StepError{Step: p.names[i]}
		if op.ret < 0 {
			e.Errno = unix.Errno(-op.ret)
		}
		return e
	}
	return nil
}

// StepError is the failure of one step.
type StepError struct {
	Step  string
	Errno unix.Errno // 0: the call did not fail but gave too little, e.g. the end of a pipe
}

func (e *StepError) Error() string {
	if e.Errno == 0 {
		return e.Step + ": peer ended"
	}
	return e.Step + ": " + e.Errno.Error()
}

func (e *StepError) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// Run walks p on the calling thread with all signals blocked, then the program after (nil: none), whatever happened, and
// unblocks them. Both programs must stay untouched until Run returns, and those of children that were cloned without
// CLONE_VFORK until these have ended. It returns the first failed step of p.
func Run(p, after *Program) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, old unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^uint64(0)
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &old); err != nil {
		return &StepError{"block signals", err.(unix.Errno)}
	}
	var m *Op
	var n uintptr
	p.link()
	if after != nil && len(after.ops) > 0 {
		after.link()
		m, n = &after.ops[0], uintptr(len(after.ops))
	}
	walk(&p.ops[0], uintptr(len(p.ops)), m, n)
	runtime.KeepAlive(p)
	runtime.KeepAlive(after)
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil); err != nil {
		return &StepError{"unblock signals", err.(unix.Errno)}
	}
	if f := p.Failure(); f != nil {
		return f
	}
	return nil
}

// walk is written in assembly: a child must not touch the stack that it shares with its parent.
//
//go:noescape
func walk(ops *Op, n uintptr, after *Op, m uintptr)
