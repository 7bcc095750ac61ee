// Package watch is how another process of the same user sees what a running call prints.
//
// A run listens on a unix socket in watch/ of the data directory. Who connects asks which calls run, or for the output of
// one: what of it is kept so far, and then what comes, redacted, until the call ends. Nothing of it rests on disk, and a
// call that nobody looks at pays nothing. Not promised: every byte. Who reads too slowly misses some, and is told how many.
package watch

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// DirName is the folder of the sockets in a data directory; each is <run_id>.sock.
const DirName = "watch"

const (
	socketSuffix = ".sock"
	askWait      = 2 * time.Second        // for a request, and for its first answer
	closeWait    = 500 * time.Millisecond // for who does not read, at the end of the run
	maxLineBytes = 64 << 10
)

// Call is a call that runs, or a program that stays.
type Call struct {
	ToolCallID string `json:"tool_call_id"`
	RunID      string `json:"run_id"`
	SessionID  string `json:"session_id"`
	ToolName   string `json:"tool_name"`
	StartedAt  string `json:"started_at"`
}

// Source is what a run knows of its calls. Its methods are called concurrently.
type Source interface {
	// Running are the calls that run.
	Running() []Call
	// Copy writes what the call prints to w until the call ends, w fails, or gone is closed; with follow false only what is
	// kept of it so far. It is false where no such call runs, and then nothing was written.
	Copy(call string, w io.Writer, gone <-chan struct{}, follow bool) bool
}

// request is what a watcher asks: the running calls, or one of them.
type request struct {
	Call   string `json:"tool_call_id"` // empty: which calls run
	Follow bool   `json:"follow"`
}

// Listener serves the watchers of one run.
type Listener struct {
	path     string
	listener *net.UnixListener
	source   Source

	mu      sync.Mutex
	conns   map[*net.UnixConn]struct{}
	closed  bool
	serving sync.WaitGroup
}

// Listen makes the socket of a run.
func Listen(dataDir, runID string, source Source) (*Listener, error) {
	path := filepath.Join(dataDir, DirName)
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: address(dir, runID), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen in %q: %w", path, err)
	}
	l.SetUnlinkOnClose(false) // Close does, by the name that stays
	s := &Listener{path: filepath.Join(path, runID+socketSuffix), listener: l, source: source, conns: make(map[*net.UnixConn]struct{})}
	if err := os.Chmod(s.path, 0o600); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	go s.accept()
	return s, nil
}

// address names a socket by the open folder: a path may be longer than the 107 bytes that an address holds (unix(7)).
func address(dir *os.File, runID string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), runID+socketSuffix)
}

// Close ends all watching and removes the socket. Every call has ended; who watched one gets the end of its output.
func (s *Listener) Close() error {
	s.mu.Lock()
	s.closed = true
	for conn := range s.conns {
		conn.SetDeadline(time.Now().Add(closeWait))
	}
	s.mu.Unlock()
	err := s.listener.Close()
	s.serving.Wait()
	return errors.Join(err, gone(os.Remove(s.path)))
}

// Remove takes away what a run left behind that has ended.
func Remove(dataDir, runID string) error {
	return gone(os.Remove(filepath.Join(dataDir, DirName, runID+socketSuffix)))
}

func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (s *Listener) accept() {
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
		s.conns[conn] = struct{}{}
		s.mu.Unlock()
		s.serving.Go(func() {
			s.serve(conn)
			conn.Close()
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.conns, conn)
		})
	}
}

func (s *Listener) serve(conn *net.UnixConn) {
	if !ours(conn) {
		return
	}
	conn.SetReadDeadline(time.Now().Add(askWait))
	line, err := bufio.NewReader(io.LimitReader(conn, maxLineBytes)).ReadBytes('\n')
	var r request
	if err != nil || json.Unmarshal(line, &r) != nil {
		return
	}
	if r.Call == "" {
		list := json.NewEncoder(conn)
		conn.SetWriteDeadline(time.Now().Add(askWait))
		for _, c := range s.source.Running() {
			if list.Encode(c) != nil {
				return
			}
		}
		return
	}
	conn.SetReadDeadline(time.Time{})
	left := make(chan struct{})
	go func() { // who watches says nothing more; the end of it is the end of the watching
		defer close(left)
		io.Copy(io.Discard, conn)
	}()
	s.source.Copy(r.Call, conn, left, r.Follow)
	conn.CloseWrite()
	conn.CloseRead()
	<-left
}

// ours tells whether the other end is a process of our own user, or of root.
func ours(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	var cred *unix.Ucred
	if ctl := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); ctl != nil || err != nil {
		return false
	}
	return int(cred.Uid) == os.Geteuid() || cred.Uid == 0
}

// Running are the calls that run in a data directory now, of all runs.
func Running(dataDir string) ([]Call, error) {
	dir, err := os.Open(filepath.Join(dataDir, DirName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var list []Call
	for _, name := range names {
		run, ok := strings.CutSuffix(name, socketSuffix)
		if !ok {
			continue
		}
		conn, err := ask(dir, run, request{})
		if err != nil {
			continue // a run that has died, or is about to end
		}
		conn.SetReadDeadline(time.Now().Add(askWait))
		for d := json.NewDecoder(conn); ; {
			var c Call
			if d.Decode(&c) != nil {
				break
			}
			c.RunID = run
			list = append(list, c)
		}
		conn.Close()
	}
	return list, nil
}

// Open connects to the output of a running call. It ends when the call does; it is empty where the call has ended already.
func Open(dataDir string, c Call, follow bool) (io.ReadCloser, error) {
	dir, err := os.Open(filepath.Join(dataDir, DirName))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return ask(dir, c.RunID, request{Call: c.ToolCallID, Follow: follow})
}

func ask(dir *os.File, run string, r request) (*net.UnixConn, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: address(dir, run), Net: "unix"})
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(r)
	if err == nil {
		_, err = conn.Write(append(line, '\n'))
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
