package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/catalog"
	"toolrun/sandbox"
)

// handle is a program that stays: its own call, which began with a tool_call line and ends with one row, and what others
// may know of it meanwhile. Its goroutine (run) owns call; mu owns the rest.
type handle struct {
	id      string // the tool_call_id of the process
	tool    *catalog.Tool
	session string // who started it; nobody else finds it
	argv    string // redacted
	call    *call
	input   *sandbox.Input // nil: nothing is typed into it
	end     context.CancelCauseFunc
	out     [2]*unread // stdout; stderr, nil where it is merged

	started chan struct{} // closed when the program runs
	ended   chan struct{} // closed when its row is written, or cannot be

	mu       sync.Mutex
	began    time.Time
	line     sandbox.Line // that is being typed
	users    int          // calls that use it now
	idle     *time.Timer  // runs while there are none; nil: it may be idle
	unused   time.Time    // since then
	takes    int          // how often something was taken of out
	captures []*capture
	reply    Reply // after ended
}

// ending of a program that a handle names, by us: the cause of its context.
type stopped struct{ outcome, why string }

// Error implements error.
func (s *stopped) Error() string { return s.why }

// Is makes it a call that was taken back, for whose end there is time.
func (s *stopped) Is(target error) bool { return target == ErrCancelled }

// equip gives the command of a process what a call has not.
func (h *handle) equip(cmd *sandbox.Command, captures []*capture) {
	for i, c := range captures {
		c.tap(h.out[i])
	}
	if h.input != nil {
		cmd.Stdin, cmd.Input = nil, h.input
	}
	cmd.Started = sync.OnceFunc(func() {
		h.mu.Lock()
		h.began = time.Now()
		h.mu.Unlock()
		close(h.started)
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.captures = captures
}

// run is the whole life of the program.
func (h *handle) run(ctx context.Context) {
	defer h.end(nil)
	reply := h.attempt(ctx)
	h.mu.Lock()
	h.reply, h.captures = reply, nil
	if h.idle != nil {
		h.idle.Stop()
	}
	close(h.ended)
	h.mu.Unlock()
	for _, u := range h.out {
		u.wake()
	}
}

func (h *handle) attempt(ctx context.Context) (reply Reply) {
	defer h.call.survive(&reply)
	return h.call.attempt(ctx)
}

// use says that a call uses the handle, until the function that it returns is called: it is not idle.
func (h *handle) use() (done func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.users++
	if h.idle != nil {
		h.idle.Stop()
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.users--; h.users == 0 && h.idle != nil && h.runs() {
			h.unused = time.Now()
			h.idle.Reset(h.tool.Idle)
		}
	}
}

// watchIdle ends the program when no call has used it for too long.
func (h *handle) watchIdle() {
	if h.tool.Idle <= 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.runs() {
		return
	}
	h.unused = time.Now()
	h.idle = time.AfterFunc(h.tool.Idle, func() {
		h.mu.Lock()
		idle := h.users == 0 && time.Since(h.unused) >= h.tool.Idle // also now: a call may have come meanwhile
		h.mu.Unlock()
		if idle {
			h.end(&stopped{ledger.OutcomeTimeout, fmt.Sprintf("ended after %v in which no call used it", h.tool.Idle)})
		}
	})
}

// runs says whether the program has not ended yet.
func (h *handle) runs() bool {
	select {
	case <-h.ended:
		return false
	default:
		return true
	}
}

// Errors of handle.send.
var (
	errEnded       = errors.New("names a program that has ended, or that reads no more input")
	errLineTooLong = errors.New(lineTooLong)
)

// send types text; eof says that nothing follows. All of it is taken, or nothing.
func (h *handle) send(text []byte, eof bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.runs() {
		return errEnded
	}
	line := h.line
	if fits := line.Type(text); h.tool.Terminal != (catalog.Terminal{}) && !fits {
		return errLineTooLong
	}
	if len(text) > 0 {
		if err := h.input.Write(text); errors.Is(err, sandbox.ErrInputEnded) {
			return errEnded
		} else if err != nil {
			return err
		}
	}
	h.line = line
	if eof {
		h.input.Close()
	}
	return nil
}

// heldBack is how many bytes were printed that may still become a secret.
func (h *handle) heldBack() (n int) {
	h.mu.Lock()
	captures := h.captures
	h.mu.Unlock()
	for _, c := range captures {
		n += c.heldBack()
	}
	return n
}

// Process is what a caller is told of a program that stays.
type Process struct {
	Handle   string        `json:"handle"`
	Running  bool          `json:"running"`
	HeldBack int           `json:"held_back_bytes"`     // printed, and not shown while they may still become a secret
	Waited   string        `json:"waited_for,omitzero"` // what the call waited for and got: "pattern", "quiet", "end", or "time"
	ForMS    int64         `json:"duration_ms"`         // since its start; of its life where it has ended
	Outcome  ledger.OrNull `json:"outcome"`             // this and the rest: null while it runs
	ExitCode *int          `json:"exit_code"`
	Signal   ledger.OrNull `json:"signal"`

	verdict string // where it has ended
}

// process is how it stands with the program.
func (h *handle) process() *Process {
	p := &Process{Handle: h.id, Running: h.runs(), HeldBack: h.heldBack()}
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.Running {
		if !h.began.IsZero() {
			p.ForMS = time.Since(h.began).Milliseconds()
		}
		return p
	}
	p.HeldBack = 0
	p.verdict = h.reply.verdict()
	if row := h.reply.Row; row != nil {
		p.ForMS, p.Outcome, p.ExitCode, p.Signal = row.DurationMS, ledger.OrNull(row.Outcome), row.ExitCode, row.Signal
	}
	return p
}

// Text is one line.
func (p *Process) Text() string {
	if !p.Running {
		return fmt.Sprintf("program %s has ended: %s", p.Handle, p.verdict)
	}
	s := fmt.Sprintf("program %s still runs, since %v", p.Handle, time.Duration(p.ForMS)*time.Millisecond)
	switch p.Waited {
	case waitedTime:
		s += "; what was waited for has not come"
	case waitedPattern:
		s += "; the pattern has matched"
	}
	if p.HeldBack > 0 {
		s += fmt.Sprintf("; %d bytes are held back, since they may still become a secret", p.HeldBack)
	}
	return s
}

// argvText is argv on one short line.
func argvText(rules *redact.Rules, argv []string) string {
	return redact.Summary(rules.Strings(argv).Text(), 80).String()
}
