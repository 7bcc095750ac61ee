package runner

import (
	"crypto/sha256"
	"strconv"
	"sync"
	"unicode/utf8"

	"toolrun/archive/redact"
)

// maxIDBytes bounds what a client chose as an id or a name; what is longer is kept cut.
const maxIDBytes = 256

// ids gives every call of a run its tool_call_id: the client's own where it sent one that can be a key, else
// <run_id[:8]>-<n>. The id is unique in the data directory, because others use it as a primary key: claim refuses the
// forms that are made here, so that no client's id can meet one of them.
type ids struct {
	run8  string
	rules *redact.Rules
	claim func(id string) (fresh bool, err error) // false: an earlier run used it, or it has a form of ours

	mu   sync.Mutex // also held over claim: a duplicate must know what the first call was named
	next int
	seen map[idKey]*use // what clients sent in this run
}

// idKey stands for a client's id of any length.
type idKey [16]byte

// use is one client id within the run.
type use struct {
	id         string // the tool_call_id of its first call
	duplicates int
}

// identity is what ids decided for one call.
type identity struct {
	ID        redact.Text
	Client    *redact.Text // the client's own id, nil where it sent none
	Duplicate bool
}

func newIDs(runID string, rules *redact.Rules, claim func(string) (bool, error)) *ids {
	return &ids{run8: runID[:min(8, len(runID))], rules: rules, claim: claim, seen: make(map[idKey]*use)}
}

// take names a call. raw is the client's id, "" for none. The only error is claim's: the record cannot be written.
func (s *ids) take(raw string) (identity, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if raw == "" {
		return identity{ID: redact.Plain(s.own())}, nil
	}
	text, _ := bounded(s.rules, raw, maxIDBytes)
	if u := s.seen[keyOfID(raw)]; u != nil {
		u.duplicates++
		return identity{ID: redact.Plain(u.id + "!" + strconv.Itoa(u.duplicates)), Client: &text, Duplicate: true}, nil
	}
	id := raw
	if text.String() != raw {
		id = s.own() // masked or cut it would not be unique
	} else if fresh, err := s.claim(id); err != nil {
		return identity{}, err
	} else if !fresh {
		id += "@" + s.run8
	}
	s.seen[keyOfID(raw)] = &use{id: id}
	return identity{ID: redact.Plain(id), Client: &text}, nil // free of secrets: else it would differ from text
}

// forget takes a client's id back whose call could not be put on the record: sent again it is no duplicate.
func (s *ids) forget(raw string, id identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if raw != "" && !id.Duplicate {
		delete(s.seen, keyOfID(raw))
	}
}

func (s *ids) own() string {
	s.next++
	return s.run8 + "-" + strconv.Itoa(s.next)
}

func keyOfID(raw string) idKey {
	sum := sha256.Sum256([]byte(raw))
	return idKey(sum[:16])
}

// bounded redacts s and cuts what is over max bytes, with "..." in its place. n is the number of secrets masked in the
// whole of s. It redacts before it cuts, since half a secret no longer looks like one.
func bounded(rules *redact.Rules, s string, max int) (text redact.Text, n int) {
	text = rules.Text(s)
	n = text.Redactions()
	if t := text.String(); len(t) > max {
		for max > 0 && !utf8.RuneStart(t[max]) {
			max--
		}
		text = rules.Text(t[:max] + "...")
	}
	return text, n
}

// boundedOrNil is bounded for what may not have been told.
func boundedOrNil(rules *redact.Rules, s string) *redact.Text {
	if s == "" {
		return nil
	}
	text, _ := bounded(rules, s, maxIDBytes)
	return &text
}
