package held

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"time"

	"toolrun/archive/internal/socket"
	"toolrun/archive/ledger"
)

const (
	// maxLineBytes bounds a question or an answer on the socket.
	maxLineBytes = 64 << 10
	// sendWait bounds how long the other end may take to read an answer, or to send its own.
	sendWait = 10 * time.Second
	// takeWait bounds how long the holder may take to put an answer on the record.
	takeWait = time.Minute
)

// request is the one line that a process sends, and response the one that it gets.
type request struct {
	Call   string `json:"call"`  // tool_call_id
	Shown  string `json:"shown"` // SHA-256 of the file that was shown
	Answer string `json:"answer"`
	Reason string `json:"reason,omitempty"`
}

type response struct {
	OK  bool   `json:"ok"`
	Why string `json:"why,omitempty"`
}

const (
	allow = "allow"
	deny  = "deny"
)

// ErrRefused: the holder did not take the answer.
var ErrRefused = errors.New("the answer was not taken")

// Send answers for a held call and returns when the answer is on the record. Errors that are not ErrRefused say that the
// holder could not be asked, or did not say.
func (e *Entry) Send(dataDir string, yes bool, reason string) error {
	conn, err := socket.Dial(filepath.Join(dataDir, DirName), e.RunID)
	if err != nil {
		return fmt.Errorf("the process that holds call %s does not answer: %w", e.ToolCallID, err)
	}
	defer conn.Close()
	r := request{Call: e.ToolCallID.String(), Shown: e.shown, Answer: deny, Reason: reason}
	if yes {
		r.Answer = allow
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if len(line) >= maxLineBytes {
		return fmt.Errorf("%w: the reason is too long", ErrRefused)
	}
	conn.SetDeadline(time.Now().Add(takeWait + sendWait))
	if _, err := conn.Write(append(line, '\n')); err != nil {
		return err
	}
	var got response
	if err := json.NewDecoder(io.LimitReader(conn, maxLineBytes)).Decode(&got); err != nil {
		return fmt.Errorf("the process that holds call %s said nothing to the answer, look at its row: %w", e.ToolCallID, err)
	}
	if !got.OK {
		return fmt.Errorf("%w: %s", ErrRefused, got.Why)
	}
	return nil
}

// listens says whether the holder of a run's calls is there.
func listens(folder, run string) bool {
	conn, err := socket.Dial(folder, run)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// serve takes one answer from one connection.
func (d *Desk) serve(conn *net.UnixConn) {
	// Who asks is looked at before it is asked: it waits for us, so that it is still there and still the same.
	uid, pid, err := socket.Peer(conn)
	if err != nil {
		reply(conn, err)
		return
	}
	by := Process(uid, pid)
	line, err := bufio.NewReader(io.LimitReader(conn, maxLineBytes)).ReadBytes('\n')
	if err != nil {
		return // it only looked whether we are here, or says nothing
	}
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		reply(conn, errors.New("no answer that this version understands"))
		return
	}
	reply(conn, d.take(r, by))
}

func reply(conn *net.UnixConn, err error) {
	r := response{OK: err == nil}
	if err != nil {
		r.Why = err.Error()
	}
	conn.SetWriteDeadline(time.Now().Add(sendWait))
	line, _ := json.Marshal(r)            // of strings
	_, _ = conn.Write(append(line, '\n')) // whoever is gone misses it
}

// take holds an answer against the call it is for, and hands it to who waits. It returns when that is decided.
func (d *Desk) take(r request, by ledger.Answerer) error {
	d.mu.Lock()
	h := d.held[r.Call]
	d.mu.Unlock()
	switch {
	case h == nil:
		return fmt.Errorf("call %s is not held here: it was answered, has ended, or never was", r.Call)
	case r.Shown != h.shown:
		return fmt.Errorf("call %s is not what was shown: list the held calls again", r.Call)
	case r.Answer != allow && r.Answer != deny:
		return errors.New(`an answer is "allow" or "deny"`)
	case !d.now().Before(h.expires):
		return fmt.Errorf("call %s waited until %s and is over", r.Call, h.ExpiresAt)
	case r.Answer == allow && by.TTY == nil:
		return errors.New("allowing a call takes a terminal: stdin of who allows it is none")
	}
	if !h.taken.CompareAndSwap(false, true) {
		return fmt.Errorf("call %s has an answer already", r.Call)
	}
	h.offered <- Answer{Allow: r.Answer == allow, Reason: r.Reason, By: by}
	select {
	case <-h.done:
	case <-time.After(takeWait):
		return errors.New("the answer waits for its record: look at the call's row")
	}
	if h.verdict != "" {
		return errors.New(h.verdict)
	}
	return nil
}
