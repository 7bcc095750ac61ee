package rpc

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"toolrun/catalog/canon"
)

// states are the requestStates of calls that wait for their re-send (MCP 2026-07-28). One is base64url of a random name, of
// when it expires, and of an HMAC over these, the tool and the arguments, under a key that this process made and never
// tells: a process that starts later has nothing to resume.
type states struct {
	key [32]byte
	now func() time.Time

	mu   sync.Mutex
	open map[stateName]*parked // issued and not used
}

type stateName [16]byte

const stateBytes = len(stateName{}) + 8 + sha256.Size

func newStates() *states {
	s := &states{open: make(map[stateName]*parked), now: time.Now}
	rand.Read(s.key[:])
	return s
}

var (
	errStateForged  = errors.New("invalid params: requestState was not issued for this tool and these arguments")
	errStateExpired = errors.New("invalid params: requestState has expired; send the call without it")
	errStateUsed    = errors.New("invalid params: requestState was used, or its call is over; send the call without it")
)

// issue gives the one state that resumes a call until it expires.
func (s *states) issue(p *parked, expires time.Time) string {
	var name stateName
	rand.Read(name[:])
	b := binary.BigEndian.AppendUint64(name[:], uint64(expires.UnixMilli()))
	s.mu.Lock()
	s.open[name] = p
	s.mu.Unlock()
	time.AfterFunc(expires.Sub(s.now()), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, name)
	})
	return base64.RawURLEncoding.EncodeToString(s.sign(b, p.name, p.arguments))
}

// use gives the call that a state resumes, once. name and arguments are those of the re-send.
func (s *states) use(state, name string, arguments [32]byte) (*parked, error) {
	b, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil || len(b) != stateBytes {
		return nil, errStateForged
	}
	head := b[: stateBytes-sha256.Size : stateBytes-sha256.Size]
	if !hmac.Equal(s.sign(head, name, arguments), b) {
		return nil, errStateForged
	}
	if ms := binary.BigEndian.Uint64(head[len(stateName{}):]); s.now().UnixMilli() >= int64(ms) {
		return nil, errStateExpired
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.open[stateName(head)]
	delete(s.open, stateName(head))
	if p == nil {
		return nil, errStateUsed
	}
	return p, nil
}

// sign returns head with the HMAC behind it.
func (s *states) sign(head []byte, name string, arguments [32]byte) []byte {
	mac := hmac.New(sha256.New, s.key[:])
	mac.Write(head)
	mac.Write(arguments[:])
	mac.Write([]byte(name)) // the last: only it has no fixed length
	return mac.Sum(head)
}

// argumentsOf is the hash of arguments, equal for equal values however they are written. No arguments are {}.
func argumentsOf(raw []byte) [32]byte {
	if isNull(raw) {
		raw = []byte("{}")
	}
	if c, err := canon.Canonicalize(raw); err == nil {
		raw = c
	}
	return sha256.Sum256(raw)
}
