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
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"toolrun/archive/internal/socket"
)

// DirName is the folder of the sockets in a data directory; each is <run_id>.sock.
const DirName = "watch"

const (
	answerWait   = 2 * time.Second        // for the list of calls
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
	source Source
	server *socket.Server
}

// Listen makes the socket of a run.
func Listen(dataDir, runID string, source Source) (_ *Listener, err error) {
	l := &Listener{source: source}
	l.server, err = socket.Listen(filepath.Join(dataDir, DirName), runID, l.serve)
	return l, err
}

// Close ends all watching and removes the socket. Every call has ended; who watched one gets the end of its output.
func (l *Listener) Close() error {
	return l.server.Close(func(conn *net.UnixConn) { conn.SetDeadline(time.Now().Add(closeWait)) })
}

// Remove takes away what a run left behind that has ended.
func Remove(dataDir, runID string) error {
	return socket.Remove(filepath.Join(dataDir, DirName), runID)
}

func (l *Listener) serve(conn *net.UnixConn) {
	if _, _, err := socket.Peer(conn); err != nil {
		return
	}
	line, err := bufio.NewReader(io.LimitReader(conn, maxLineBytes)).ReadBytes('\n')
	var r request
	if err != nil || json.Unmarshal(line, &r) != nil {
		return
	}
	if r.Call == "" {
		list := json.NewEncoder(conn)
		conn.SetWriteDeadline(time.Now().Add(answerWait))
		for _, c := range l.source.Running() {
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
	l.source.Copy(r.Call, conn, left, r.Follow)
	conn.CloseWrite()
	conn.CloseRead()
	<-left
}

// Running are the calls that run in a data directory now, of all runs.
func Running(dataDir string) ([]Call, error) {
	folder := filepath.Join(dataDir, DirName)
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Call
	for _, e := range entries {
		run, ok := strings.CutSuffix(e.Name(), socket.Suffix)
		if !ok {
			continue
		}
		conn, err := ask(folder, run, request{})
		if err != nil {
			continue // a run that has died, or is about to end
		}
		conn.SetReadDeadline(time.Now().Add(answerWait))
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
	return ask(filepath.Join(dataDir, DirName), c.RunID, request{Call: c.ToolCallID, Follow: follow})
}

func ask(folder, run string, r request) (*net.UnixConn, error) {
	conn, err := socket.Dial(folder, run)
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
