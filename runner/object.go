package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"

	"toolrun/archive/redact"
)

// keptTailBytes is the end of a stream that a capped object keeps.
const keptTailBytes = 1 << 20

// object is where the redacted bytes of a stream go: the store, or, with payloads "hash", only their hash.
type object interface {
	Write(redact.Bytes) error
	Finish() (hash string, n int64, err error)
	Abort()
}

// capped passes the first bytes of a stream on and holds back the last ones, so that an object over its cap becomes its
// first part, a mark with the number of bytes left out, and its end.
type capped struct {
	to      object
	rules   *redact.Rules
	room    int64 // what may still be passed on
	midLine bool  // what was passed on does not end with a newline
	tail    ring
	leftOut int64
}

func newCapped(rules *redact.Rules, to object, capBytes int64) capped {
	tail := min(keptTailBytes, capBytes/2)
	return capped{to: to, rules: rules, room: capBytes - tail, tail: ring{max: int(tail)}}
}

func (c *capped) write(b redact.Bytes) error {
	p := b.Raw()
	if len(p) == 0 {
		return nil
	}
	if int64(len(p)) <= c.room {
		c.room -= int64(len(p))
		c.midLine = p[len(p)-1] != '\n'
		return c.to.Write(b)
	}
	if first := int(c.room); first > 0 {
		c.room = 0
		c.midLine = p[first-1] != '\n'
		if err := c.to.Write(b.Slice(0, first)); err != nil {
			return err
		}
		p = p[first:]
	}
	c.leftOut += c.tail.write(p)
	return nil
}

func (c *capped) finish() (hash string, n int64, truncated bool, err error) {
	if c.leftOut > 0 {
		err = c.to.Write(redact.Plain(leftOutMark(c.midLine, c.leftOut)).Bytes())
	}
	if err == nil {
		err = c.again(c.tail.parts())
	}
	if err != nil {
		c.to.Abort()
		return "", 0, false, err
	}
	hash, n, err = c.to.Finish()
	return hash, n, c.leftOut > 0, err
}

// again passes on parts of a redacted stream that were held back. Only redaction can vouch for them: redacting twice
// changes nothing.
func (c *capped) again(older, newer []byte) error {
	if len(older)+len(newer) == 0 {
		return nil
	}
	stream := c.rules.Stream(c.to.Write)
	for _, p := range [][]byte{older, newer} {
		if _, err := stream.Write(p); err != nil {
			return err
		}
	}
	return stream.Close()
}

// hashOnly is the object of a run that keeps no content.
type hashOnly struct {
	sum hash.Hash
	n   int64
}

func newHashOnly() *hashOnly { return &hashOnly{sum: sha256.New()} }

func (h *hashOnly) Write(b redact.Bytes) error {
	h.sum.Write(b.Raw()) // a hash never fails
	h.n += int64(len(b.Raw()))
	return nil
}

func (h *hashOnly) Finish() (string, int64, error) {
	return hex.EncodeToString(h.sum.Sum(nil)), h.n, nil
}

func (h *hashOnly) Abort() {}
