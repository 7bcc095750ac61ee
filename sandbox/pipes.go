package sandbox

import (
	"bytes"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// pipes are the descriptors between this process and the program, pipes or a terminal, and the eventfd that wakes the
// call's watch.
type pipes struct {
	child [3]int // the program's ends of stdin, stdout, stderr; child[2] == child[1] where stderr is merged
	out   [2]int // our ends of stdout and stderr, -1: merged, or at its end
	in    int    // our end of stdin, -1: all of it is written, or there is none
	input []byte // not written yet
	live  *Input // what comes of it while the program runs, nil: nothing
	tty   bool   // child is a terminal, three times
	slave int    // keeps the terminal open until the program's end: a program may close all that it has of it, and open it again
	last  byte   // written to it
	eof   []byte // what is still to be written of the end of live; nil: that has not come
	event int

	again time.Time // when the end of the input is typed again; zero: it is not
}

// noPipes holds no descriptor.
var noPipes = pipes{child: [3]int{-1, -1, -1}, out: [2]int{-1, -1}, in: -1, slave: -1, event: -1}

// open makes the pipes. Small input is written here and now, into the pipe's buffer.
func (p *pipes) open(c *Command, size Terminal) (err error) {
	*p = noPipes
	p.last = '\n'
	p.live = c.Input
	defer func() {
		if err != nil {
			err = fmt.Errorf("make pipes: %w", err)
			p.close()
		}
	}()
	pipe := func() (r, w int, err error) {
		fds := [2]int{-1, -1} // as it stays where it fails: 0 would be closed as if it were ours
		err = unix.Pipe2(fds[:], unix.O_CLOEXEC)
		return fds[0], fds[1], err
	}
	if p.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	if p.tty = size != (Terminal{}); p.tty {
		return p.openTerminal(c, size)
	}
	if c.Stdin == nil && c.Input == nil {
		// One of the call's own: flags, signal and locks of an open file are seen by all who share it.
		if p.child[0], err = unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return fmt.Errorf("open /dev/null: %w", err)
		}
	} else {
		if p.child[0], p.in, err = pipe(); err != nil {
			return err
		}
		if err := unix.SetNonblock(p.in, true); err != nil {
			return err
		}
		p.input = c.Stdin
		p.feed()
	}
	if p.out[0], p.child[1], err = pipe(); err != nil {
		return err
	}
	p.child[2] = p.child[1]
	if c.Stderr != nil {
		if p.out[1], p.child[2], err = pipe(); err != nil {
			return err
		}
	}
	for _, fd := range p.out {
		if fd >= 0 {
			if err := unix.SetNonblock(fd, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// openTerminal makes a terminal in place of the pipes.
func (p *pipes) openTerminal(c *Command, size Terminal) (err error) {
	if p.out[0], p.child[0], err = openTerminal(size); err != nil {
		return err
	}
	p.child[1], p.child[2], p.slave = p.child[0], p.child[0], p.child[0]
	if err := unix.SetNonblock(p.out[0], true); err != nil {
		return err
	}
	if c.Stdin == nil && c.Input == nil {
		return nil
	}
	if p.in, err = unix.FcntlInt(uintptr(p.out[0]), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return err
	}
	if c.Input == nil {
		p.input = append(bytes.Clone(c.Stdin), endOfInput(last(c.Stdin))...)
	}
	return nil
}

// started closes the program's ends.
func (p *pipes) started() {
	if p.child[2] == p.child[1] {
		p.child[2] = -1
	}
	if p.child[1] == p.child[0] {
		p.child[1] = -1
	}
	if p.child[0] == p.slave {
		p.child[0] = -1
	}
	for i := range p.child {
		closeFD(&p.child[i])
	}
}

// ended says that the program has ended.
func (p *pipes) ended() {
	closeFD(&p.slave)
	p.again = time.Time{}
	if p.live != nil {
		p.inputEnded()
	}
}

// inputEnded says that nobody reads what comes of input.
func (p *pipes) inputEnded() {
	p.live.detach()
	p.live, p.eof = nil, nil
	closeFD(&p.in)
}

// feed writes input until the pipe is full. A program that does not read its input is no failure.
func (p *pipes) feed() {
	if p.in < 0 {
		return
	}
	if p.live != nil {
		p.feedLive()
		return
	}
	n, err := writeAll(p.in, p.input)
	if p.input = p.input[n:]; len(p.input) == 0 || err != nil {
		p.input = nil
		closeFD(&p.in)
		p.typed()
	}
}

// endAgain is after how long the end of the input is typed again.
const endAgain = 100 * time.Millisecond

// typed says that the end of the input was typed, where there is a terminal.
func (p *pipes) typed() {
	if p.tty {
		p.again = time.Now().Add(endAgain)
	}
}

// typeAgain types the end of the input again, if the program reads character by character now: where it began to only after
// the end had come, as a shell does that draws its prompt, the kernel gave it a NUL in place of it.
func (p *pipes) typeAgain() {
	p.again = time.Now().Add(endAgain)
	if t, err := unix.IoctlGetTermios(p.slave, unix.TCGETS); err == nil && t.Lflag&unix.ICANON == 0 {
		unix.Write(p.out[0], []byte{eof})
	}
}

// feedLive writes what waits of the input that comes while the program runs.
func (p *pipes) feedLive() {
	var err error
	left, more := p.live.offer(func(b []byte) (n int) {
		if n, err = writeAll(p.in, b); n > 0 {
			p.last = b[n-1]
		}
		return n
	})
	switch {
	case err != nil:
	case left > 0 || more:
		return
	case p.tty:
		if p.eof == nil {
			p.eof = endOfInput(p.last)
		}
		var n int
		n, err = writeAll(p.in, p.eof)
		if p.eof = p.eof[n:]; err == nil && len(p.eof) > 0 {
			return // it is full
		}
		p.typed()
	}
	p.inputEnded()
}

// writeAll writes to a descriptor that does not block what it takes now.
func writeAll(fd int, b []byte) (n int, err error) {
	for n < len(b) {
		k, err := unix.Write(fd, b[n:])
		switch err {
		case nil:
			n += k
		case unix.EINTR:
		case unix.EAGAIN:
			return n, nil
		default:
			return n, err
		}
	}
	return n, nil
}

// wantsRoom tells whether input waits for room in the pipe.
func (p *pipes) wantsRoom() bool {
	if p.live != nil {
		return p.live.Pending() > 0 || len(p.eof) > 0
	}
	return p.in >= 0
}

// wake makes the watch look at its context.
func (p *pipes) wake() {
	unix.Write(p.event, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

func (p *pipes) close() {
	if p.live != nil {
		p.live.detach()
	}
	p.started()
	for _, fd := range []*int{&p.in, &p.out[0], &p.out[1], &p.slave, &p.event} {
		closeFD(fd)
	}
}

func closeFD(fd *int) {
	if *fd >= 0 {
		unix.Close(*fd)
	}
	*fd = -1
}

// last is the last byte, a newline where there is none.
func last(b []byte) byte {
	if len(b) == 0 {
		return '\n'
	}
	return b[len(b)-1]
}
