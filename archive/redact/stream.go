package redact

import "errors"

// Stream redacts a stream of bytes that arrives in pieces. It is not safe for concurrent use. Two streams (stdout and
// stderr) are two Streams and are never joined.
type Stream struct {
	scan scanner
	emit func([]byte) error
	err  error
}

// chunk is how much of a large piece is looked at in one pass, so that it stays in the cache.
const chunk = 64 << 10

var errClosed = errors.New("write to a closed redaction stream")

// Stream returns a Stream that hands what is free of secrets to emit, in order. The first error of emit ends the
// stream: every later Write and Close returns it.
func (r *Rules) Stream(emit func(Bytes) error) *Stream {
	return &Stream{scan: scanner{index: r.index()}, emit: func(b []byte) error { return emit(Bytes{b: b}) }}
}

// Write takes the next piece. What may still become part of a secret is held back.
func (s *Stream) Write(p []byte) (int, error) {
	for n := 0; n < len(p) && s.err == nil; {
		piece := p[n:min(len(p), n+chunk)]
		grown := len(s.scan.buf)
		s.scan.buf = append(s.scan.buf, piece...)
		s.err = s.scan.pass(grown, s.emit)
		s.scan.compact()
		n += len(piece)
	}
	if s.err != nil {
		return 0, s.err
	}
	return len(p), nil
}

// Close emits what was held back. A second Close does nothing.
func (s *Stream) Close() error {
	if s.err == errClosed {
		return nil
	}
	if s.err != nil {
		return s.err
	}
	s.scan.final = true
	if err := s.scan.pass(len(s.scan.buf), s.emit); err != nil {
		s.err = err
		return err
	}
	s.err = errClosed
	s.scan.buf = nil
	return nil
}

// Held is the number of bytes that are held back, since they may still become part of a secret.
func (s *Stream) Held() int { return len(s.scan.buf) - min(s.scan.out, len(s.scan.buf)) }

// Redactions is the number of marks emitted so far.
func (s *Stream) Redactions() int { return s.scan.marks }
