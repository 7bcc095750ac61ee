package runner

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/catalog"
)

// errCaptureClosed: bytes came after the call's row was written; they belong to nobody.
var errCaptureClosed = errors.New("the call has ended")

// capture takes one stream of a tool: it counts the raw bytes, redacts, and hands the redacted bytes to the capped object,
// to the excerpt for the reply and to whoever asks for the last line. Memory is bounded whatever comes.
//
// Write may be called by the box while finish is called by the runner: mu owns everything.
type capture struct {
	mu      sync.Mutex
	raw     int64
	stream  *redact.Stream
	object  capped
	excerpt excerpt
	line    lastLine
	taps    []*unread // get the redacted bytes too
	err     error     // why the object cannot be completed
	closed  bool
}

// captured is what is known of a stream after its end.
type captured struct {
	Hash       ledger.OrNull // of the stored object, null where it could not be stored
	Stored     int64         // its length
	Bytes      int64         // what the tool wrote
	Truncated  bool
	Redactions int
	LastLine   string
	Excerpt    *excerpt
	Err        error
}

// newCapture makes a capture whose object holds at most capBytes and whose excerpt at most excerptBytes at either end.
func newCapture(rules *redact.Rules, to object, capBytes int64, excerptBytes int) *capture {
	c := &capture{object: newCapped(rules, to, capBytes), excerpt: newExcerpt(excerptBytes)}
	c.stream = rules.Stream(c.emit)
	return c
}

// atTerminal says that the stream is what a program writes to a terminal. It comes before the first byte.
func (c *capture) atTerminal(rules *redact.Rules, size catalog.Terminal) {
	c.excerpt = newExcerpt(max(c.excerpt.max, screenBytes))
	c.excerpt.screen = &screen{rules: rules, size: size}
}

// Write takes raw bytes of the tool. An error means that they cannot be stored and the tool must be ended. It never
// panics: its caller is a goroutine of the box.
func (c *capture) Write(p []byte) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		if v := recover(); v != nil {
			c.err = fmt.Errorf("capture output: panic: %v", v)
			n, err = 0, c.err
		}
	}()
	if c.closed {
		return 0, errCaptureClosed
	}
	c.raw += int64(len(p))
	if c.err != nil {
		return 0, c.err
	}
	if _, err := c.stream.Write(p); err != nil {
		c.err = err
		return 0, err
	}
	return len(p), nil
}

// emit receives the redacted bytes. The excerpt goes first: what the object cannot take may still reach the reply.
func (c *capture) emit(b redact.Bytes) error {
	c.excerpt.write(b.Raw())
	c.line.write(b.Raw())
	for _, tap := range c.taps {
		tap.write(b.Raw())
	}
	return c.object.write(b)
}

// lastLine is the latest line that is not blank, while the tool runs.
func (c *capture) lastLine() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.excerpt.screen.line(c.line.String())
}

// tap gives u what is kept of the redacted bytes so far, and all that follow.
func (c *capture) tap(u *unread) {
	c.mu.Lock()
	defer c.mu.Unlock()
	older, newer := c.excerpt.tail.parts()
	u.write(c.excerpt.head)
	if leftOut := c.excerpt.n - int64(len(c.excerpt.head)+len(older)+len(newer)); leftOut > 0 {
		head := c.excerpt.head
		u.write([]byte(leftOutMark(head[len(head)-1] != '\n', leftOut)))
	}
	u.write(older)
	u.write(newer)
	c.taps = append(c.taps, u)
}

// untap ends that.
func (c *capture) untap(u *unread) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taps = slices.DeleteFunc(c.taps, func(other *unread) bool { return other == u })
}

// heldBack is how many bytes may still become part of a secret.
func (c *capture) heldBack() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stream.Held()
}

// finish ends the stream and puts the object in its place. Later writes fail.
func (c *capture) finish() captured {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if err := c.stream.Close(); err != nil && c.err == nil {
		c.err = err
	}
	end := captured{
		Bytes:      c.raw,
		Redactions: c.stream.Redactions(),
		LastLine:   c.excerpt.screen.line(c.line.String()),
		Excerpt:    &c.excerpt,
	}
	if c.err != nil {
		c.object.to.Abort()
		end.Err = c.err
		return end
	}
	hash, n, truncated, err := c.object.finish()
	if err != nil {
		end.Err = err
		return end
	}
	end.Hash, end.Stored, end.Truncated = ledger.OrNull(hash), n, truncated
	return end
}

// empty says that nothing was written so far.
func (c *capture) empty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.raw == 0
}

// abort drops the stream. Later writes fail.
func (c *capture) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.object.to.Abort()
}
