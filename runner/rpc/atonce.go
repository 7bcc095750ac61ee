package rpc

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// atOnce returns a function that writes to out what can be written without waiting, and returns how much that was; nil
// where out is neither a pipe nor a socket, and so nobody can tell.
func atOnce(out io.Writer) func(p []byte) int {
	f, ok := out.(*os.File)
	if !ok {
		return nil
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	var st unix.Stat_t
	if conn.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &st) }) != nil || err != nil {
		return nil
	}
	var write func(fd int, p []byte) int
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFIFO:
		write = writePipe
	case unix.S_IFSOCK:
		write = writeSocket
	default:
		return nil
	}
	return func(p []byte) (n int) {
		conn.Control(func(fd uintptr) { n = max(write(int(fd), p), 0) })
		return n
	}
}

// pipeBuf is what fits into a pipe that poll(2) says can be written to: PIPE_BUF of pipe(7).
const pipeBuf = 4096

func writePipe(fd int, p []byte) int {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	if len(p) > pipeBuf {
		return 0
	}
	if n, err := unix.Poll(fds, 0); n != 1 || err != nil || fds[0].Revents != unix.POLLOUT {
		return 0
	}
	n, _ := unix.Write(fd, p)
	return n
}

func writeSocket(fd int, p []byte) int {
	n, _ := unix.SendmsgN(fd, p, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	return n
}
