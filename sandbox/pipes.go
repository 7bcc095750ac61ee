package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// pipes are the descriptors between this process and the program, and the eventfd that wakes the call's watch.
type pipes struct {
	child [3]int // the program's ends of stdin, stdout, stderr; child[2] == child[1] where stderr is merged
	out   [2]int // our ends of stdout and stderr, -1: merged, or at its end
	in    int    // our end of stdin, -1: all of it is written, or there is none
	input []byte // not written yet
	event int
	keep  int // a descriptor in child that is not ours to close
}

// noPipes holds no descriptor.
var noPipes = pipes{child: [3]int{-1, -1, -1}, out: [2]int{-1, -1}, in: -1, event: -1, keep: -1}

// open makes the pipes. Small input is written here and now, into the pipe's buffer.
func (p *pipes) open(c *Command, null int) (err error) {
	*p = noPipes
	p.keep = null
	defer func() {
		if err != nil {
			err = fmt.Errorf("make pipes: %w", err)
			p.close()
		}
	}()
	pipe := func() (r, w int, err error) {
		var fds [2]int
		err = unix.Pipe2(fds[:], unix.O_CLOEXEC)
		return fds[0], fds[1], err
	}
	p.child[0] = null
	if c.Stdin != nil {
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
	p.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	return err
}

// started closes the program's ends.
func (p *pipes) started() {
	if p.child[2] == p.child[1] {
		p.child[2] = -1
	}
	if p.child[0] == p.keep {
		p.child[0] = -1
	}
	for i := range p.child {
		closeFD(&p.child[i])
	}
}

// feed writes input until the pipe is full. A program that does not read its input is no failure.
func (p *pipes) feed() {
	for len(p.input) > 0 {
		n, err := unix.Write(p.in, p.input)
		if err == unix.EINTR {
			continue
		}
		if err == unix.EAGAIN {
			return
		}
		if err != nil {
			break
		}
		p.input = p.input[n:]
	}
	p.input = nil
	closeFD(&p.in)
}

// wake makes the watch look at its context.
func (p *pipes) wake() {
	unix.Write(p.event, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

func (p *pipes) close() {
	p.started()
	for _, fd := range []*int{&p.in, &p.out[0], &p.out[1], &p.event} {
		closeFD(fd)
	}
}

func closeFD(fd *int) {
	if *fd >= 0 {
		unix.Close(*fd)
	}
	*fd = -1
}
