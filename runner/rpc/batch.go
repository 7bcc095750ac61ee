package rpc

import "sync"

// maxBatch is how many messages a batch may hold: each request among them becomes a goroutine.
const maxBatch = 1000

// batch collects the answers to the members of one JSON-RPC batch (MCP 2025-03-26; removed in 2025-06-18).
type batch struct {
	out *writer

	mu      sync.Mutex
	owed    int // members without an answer, and one for the reader until it has seen them all
	answers []byte
}

func newBatch(out *writer) *batch { return &batch{out: out, owed: 1} }

// expect says that one more member will be answered, or will say that it is not.
func (b *batch) expect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.owed++
}

// answer adds the answer of a member that was expected, nil for none. The last one sends the array; an empty one is not
// sent, as JSON-RPC 2.0 §6 demands.
func (b *batch) answer(build func(dst []byte) []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if build != nil {
		sep := byte(',')
		if b.answers == nil {
			sep = '['
		}
		b.answers = build(append(b.answers, sep))
	}
	b.owed--
	if b.owed == 0 && b.answers != nil {
		b.out.send(func(dst []byte) []byte { return append(append(dst, b.answers...), ']') })
	}
}
