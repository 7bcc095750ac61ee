package rpc

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// hangup returns a channel that is closed when out is a pipe or socket whose other end nobody holds any more, as poll(2)
// tells by POLLERR or POLLHUP without a write. It is nil, and so never closed, where out is no file.
func hangup(ctx context.Context, out io.Writer) <-chan struct{} {
	f, ok := out.(*os.File)
	if !ok {
		return nil
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	gone := make(chan struct{})
	go func() {
		for ctx.Err() == nil {
			hung := false
			err := conn.Control(func(fd uintptr) { hung = pollHangup(int(fd)) })
			if err != nil {
				return // the file was closed by us
			}
			if hung {
				close(gone)
				return
			}
		}
	}()
	return gone
}

// pollMillis is how long one poll waits; the wait ends at once when the other end goes.
const pollMillis = 100

func pollHangup(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd)}} // no events: errors and hang-ups are always reported
	n, err := unix.Poll(fds, pollMillis)
	if err != nil {
		return !errors.Is(err, unix.EINTR)
	}
	return n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
