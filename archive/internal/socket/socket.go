// Package socket is the unix socket of a run in a folder of the data directory, where another process asks it something.
//
// Promised: only who may enter the data directory can connect; who connects and says nothing keeps nobody else waiting, and
// Close returns when nobody is served any more. Peer tells who is at the other end, as the kernel knows it.
package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Suffix ends the name of a socket, <run_id>.sock.
const Suffix = ".sock"

// askWait bounds how long a peer may take to say what it wants.
const askWait = 10 * time.Second

// Server serves who connects to the socket of a run.
type Server struct {
	path     string
	listener *net.UnixListener
	serve    func(*net.UnixConn)

	mu      sync.Mutex
	conns   map[*net.UnixConn]struct{}
	closed  bool
	serving sync.WaitGroup
}

// Listen makes the folder, where it is not there, and in it the socket of the run. serve is called concurrently, once a
// connection, which is closed behind it and whose reads fail after a while unless serve sets another deadline.
func Listen(folder, runID string, serve func(*net.UnixConn)) (*Server, error) {
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	dir, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	l, err := net.ListenUnix("unix", address(dir, runID))
	if err != nil {
		return nil, fmt.Errorf("listen in %q: %w", folder, err)
	}
	l.SetUnlinkOnClose(false) // Close does, by the name that stays
	s := &Server{path: filepath.Join(folder, runID+Suffix), listener: l, serve: serve, conns: make(map[*net.UnixConn]struct{})}
	if err := os.Chmod(s.path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close(), remove(s.path))
	}
	go s.accept()
	return s, nil
}

// address names a socket by the open folder: a path may be longer than the 107 bytes that an address holds (unix(7)).
func address(dir *os.File, runID string) *net.UnixAddr {
	return &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), runID+Suffix), Net: "unix"}
}

// Dial connects to the socket of a run.
func Dial(folder, runID string) (*net.UnixConn, error) {
	dir, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return net.DialUnix("unix", nil, address(dir, runID))
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // no descriptors left, for a moment
			continue
		}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			conn.Close()
			return
		}
		conn.SetReadDeadline(time.Now().Add(askWait))
		s.conns[conn] = struct{}{}
		s.serving.Go(func() {
			s.serve(conn)
			conn.Close()
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.conns, conn)
		})
		s.mu.Unlock()
	}
}

// Close ends the serving and removes the socket. hurry is called for each connection that is open, to set a deadline.
func (s *Server) Close(hurry func(*net.UnixConn)) error {
	s.mu.Lock()
	s.closed = true
	for conn := range s.conns {
		hurry(conn)
	}
	s.mu.Unlock()
	err := s.listener.Close()
	s.serving.Wait()
	return errors.Join(err, remove(s.path))
}

// Remove takes away the socket of a run that is dead.
func Remove(folder, runID string) error { return remove(filepath.Join(folder, runID+Suffix)) }

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Peer is the process at the other end (SO_PEERCRED, unix(7)). Another user than ours and root is an error. pid is 0 where
// the process is in a pid namespace that has no number for us.
func Peer(conn *net.UnixConn) (uid, pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var cred *unix.Ucred
	if ctl := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); ctl != nil {
		return 0, 0, ctl
	}
	if err != nil {
		return 0, 0, fmt.Errorf("who asks is not known: %w", err)
	}
	if int(cred.Uid) != os.Geteuid() && cred.Uid != 0 {
		return 0, 0, errors.New("another user than the one who runs this server cannot answer")
	}
	return int(cred.Uid), int(cred.Pid), nil
}
