package runner

import (
	"crypto/sha256"
	"sync"

	"toolrun/archive/ledger"
	"toolrun/archive/redact"
)

// sessions is what a run remembers of each conversation it serves, for as long as the run lives.
type sessions struct {
	mu   sync.Mutex
	byID map[string]*session
}

// session is one conversation. Its fields are owned by its mu.
type session struct {
	mu        sync.Mutex
	announced bool
	turns     map[string]int             // the client's name of a turn → its ordinal
	last      map[string]previous        // tool name → the session's last row of that tool
	outputs   map[ledger.OrNull]struct{} // hashes of the objects that its calls stored
}

// previous is what a later call of the same tool must know to tell that it is a repeat.
type previous struct {
	id        redact.Text
	inputHash string
	failed    bool
	repeat    int
}

func newSessions() *sessions { return &sessions{byID: make(map[string]*session)} }

// get finds or makes the session with this id.
func (s *sessions) get(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.byID[id]
	if found == nil {
		found = &session{
			turns:   make(map[string]int),
			last:    make(map[string]previous),
			outputs: make(map[ledger.OrNull]struct{}),
		}
		s.byID[id] = found
	}
	return found
}

// announce calls write unless it succeeded before: one session line a session and run. An error leaves it to the next.
func (s *session) announce(write func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.announced {
		return nil
	}
	err := write()
	s.announced = err == nil
	return err
}

// turn is the ordinal of a call's turn: told, else counted by the distinct names of turns in this session and run, else 0.
func (s *session) turn(told int, name string) int {
	if told > 0 || name == "" {
		return max(told, 0)
	}
	if len(name) > maxIDBytes {
		sum := sha256.Sum256([]byte(name))
		name = string(sum[:])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n, known := s.turns[name]
	if !known {
		n = len(s.turns) + 1
		s.turns[name] = n
	}
	return n
}

// repeatOf says whether a call with this input repeats one that failed: the session's previous row of the tool, as it
// stood when the call arrived.
func (s *session) repeatOf(tool, inputHash string) (of *redact.Text, repeat int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.last[tool]
	if !ok || !p.failed || p.inputHash != inputHash {
		return nil, 0
	}
	return &p.id, p.repeat + 1
}

// remember takes a written row as the session's last of its tool, and its objects as the session's own.
func (s *session) remember(row *ledger.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[row.ToolName.String()] = previous{
		id:        row.ToolCallID,
		inputHash: row.InputHash,
		failed:    row.Status != ledger.StatusSuccess,
		repeat:    row.Repeat,
	}
	for _, hash := range []ledger.OrNull{row.OutputHash, row.StderrHash} {
		if hash != "" {
			s.outputs[hash] = struct{}{}
		}
	}
}

// owns says whether a call of this session and run stored the object.
func (s *session) owns(hash string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.outputs[ledger.OrNull(hash)]
	return ok
}
