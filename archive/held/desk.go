package held

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"toolrun/archive/internal/socket"
	"toolrun/archive/ledger"
)

// Desk holds the calls of one run. Nothing is made in the data directory before the first of them.
type Desk struct {
	dataDir, runID string
	now            func() time.Time

	mu     sync.Mutex
	server *socket.Server   // nil before the first call
	held   map[string]*Held // by tool_call_id
	next   int
	closed bool
}

// NewDesk is the desk of a run.
func NewDesk(dataDir, runID string, now func() time.Time) *Desk {
	return &Desk{dataDir: dataDir, runID: runID, now: now, held: make(map[string]*Held)}
}

// Answer is what a person said.
type Answer struct {
	Allow  bool
	Reason string // as it was given; may hold anything
	By     ledger.Answerer
}

// Held is one call that waits. Its owner takes at most one answer from Answers, and closes it in any case.
type Held struct {
	Call
	Answers <-chan Answer

	desk    *Desk
	path    string
	shown   string
	expires time.Time
	offered chan Answer // holds one
	taken   atomic.Bool // an answer was offered: there is no second
	once    sync.Once
	done    chan struct{}
	verdict string // why the offered answer did not count; owned by Close, read after done
}

// Hold shows a call to other processes. The run and the nonce are filled in. expires is when answers stop to count.
func (d *Desk) Hold(c Call, expires time.Time) (*Held, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.listen(); err != nil {
		return nil, fmt.Errorf("hold a call: %w", err)
	}
	c.RunID, c.Nonce = d.runID, rand.Text()
	c.AskedAt, c.ExpiresAt = ledger.FormatTime(d.now()), ledger.FormatTime(expires)
	line, shown, err := c.encode()
	if err != nil {
		return nil, fmt.Errorf("hold a call: %w", err)
	}
	d.next++
	folder, name := filepath.Join(d.dataDir, DirName), d.runID+"."+strconv.Itoa(d.next)+callSuffix
	offered := make(chan Answer, 1)
	h := &Held{
		Call: c, Answers: offered, desk: d, path: filepath.Join(folder, name), shown: shown, expires: expires,
		offered: offered, done: make(chan struct{}),
	}
	if err := writeFile(filepath.Join(folder, "."+name), h.path, line); err != nil {
		return nil, fmt.Errorf("hold a call: %w", err)
	}
	d.held[c.ToolCallID.String()] = h
	return h, nil
}

// writeFile gives a file its name only when it is whole.
func writeFile(temp, path string, content []byte) error {
	err := os.WriteFile(temp, content, 0o600)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		os.Remove(temp)
	}
	return err
}

// Close ends the holding; only the first one counts. why says to who answered why that does not count; empty: it does.
func (h *Held) Close(why string) {
	h.once.Do(func() {
		h.desk.mu.Lock()
		delete(h.desk.held, h.ToolCallID.String())
		h.desk.mu.Unlock()
		// Killed before this: a file of a run that nobody listens for.
		os.Remove(h.path)
		h.verdict = why
		close(h.done)
	})
}

// listen makes the folder and the socket, once. Whoever may enter the folder may ask; who asks is looked at.
func (d *Desk) listen() (err error) {
	if d.closed {
		return errors.New("the run has ended")
	}
	if d.server == nil {
		d.server, err = socket.Listen(filepath.Join(d.dataDir, DirName), d.runID, d.serve)
	}
	return err
}

// Close ends the desk. All that was held has been closed; who was answered gets to know it.
func (d *Desk) Close() error {
	d.mu.Lock()
	d.closed = true
	server := d.server
	d.mu.Unlock()
	if server == nil {
		return nil
	}
	err := server.Close(func(conn *net.UnixConn) { conn.SetReadDeadline(time.Now()) })
	return errors.Join(err, Remove(d.dataDir, d.runID))
}
