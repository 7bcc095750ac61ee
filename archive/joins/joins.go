// Package joins is the file joins.jsonl: what was learned of rows later, from the agent's transcript. Rows never change; who
// asks for the model, the tokens, the cost or the turn of a row takes them from here where the row has none.
//
// Several processes may add to it. What is known already is not written again, so that to join twice is to join once; where
// a transcript has more to tell of a row, the later line counts.
package joins

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
)

// FileName is the file in the data directory.
const FileName = "joins.jsonl"

// Join is what was learned of one row, in the order of its keys on disk. Zero turn and nil fields were not learned.
type Join struct {
	ToolCallID       redact.Text  `json:"tool_call_id"`
	Turn             int          `json:"turn"`
	Model            *redact.Text `json:"model"`
	Provider         *redact.Text `json:"provider"`
	InputTokens      *int64       `json:"input_tokens"`
	OutputTokens     *int64       `json:"output_tokens"`
	EstimatedCostUSD *float64     `json:"estimated_cost_usd"`
	Source           string       `json:"source"`    // the form of the transcript
	JoinedAt         string       `json:"joined_at"` // RFC 3339, UTC, milliseconds
}

// same tells whether two joins say the same, whenever it was learned.
func (j *Join) same(other *Join) bool {
	a, b := *j, *other
	a.JoinedAt, b.JoinedAt = "", ""
	x, err1 := json.Marshal(&a)
	y, err2 := json.Marshal(&b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}

// Load reads the joins by tool_call_id. A damaged line goes to damaged, which may be nil, as a
// *[ledger.Damage], and is passed over. A missing file has none.
func Load(dir string, damaged func(error)) (map[string]*Join, error) {
	f, err := os.Open(filepath.Join(dir, FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]*Join{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// A line in the making is not yet there: who writes holds the lock.
	if _, err := jsonl.Lock(f, unix.LOCK_SH); err != nil {
		return nil, err
	}
	defer jsonl.Unlock(f)
	return load(f, damaged)
}

func load(f *os.File, damaged func(error)) (map[string]*Join, error) {
	if damaged == nil {
		damaged = func(error) {}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	all := map[string]*Join{}
	for line, err := range jsonl.Lines(f) {
		if err != nil {
			return nil, err
		}
		bad := line.Damaged()
		j := &Join{}
		if bad == nil {
			if bad = json.Unmarshal(line.Text, j); bad == nil && j.ToolCallID.String() == "" {
				bad = errors.New("no tool_call_id")
			}
		}
		if bad != nil {
			if line.Torn {
				bad = jsonl.ErrTorn
			}
			damaged(&jsonl.Damage{File: f.Name(), Line: line.No, Err: bad})
			continue
		}
		all[j.ToolCallID.String()] = j
	}
	return all, nil
}

// Add appends the joins that are not known yet, all by one write, synced, and returns how many those are.
func Add(dir string, list []*Join, now time.Time) (added int, err error) {
	if len(list) == 0 {
		return 0, nil
	}
	f, err := jsonl.OpenAppend(filepath.Join(dir, FileName), 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if _, err := jsonl.Lock(f, unix.LOCK_EX); err != nil {
		return 0, err
	}
	defer jsonl.Unlock(f)
	size, err := repair(dir, f, now)
	if err != nil {
		return 0, fmt.Errorf("repair the end of %s: %w", FileName, err)
	}
	known, err := load(f, nil)
	if err != nil {
		return 0, err
	}
	var text []byte
	for _, j := range list {
		if have := known[j.ToolCallID.String()]; have != nil && have.same(j) {
			continue
		}
		j.JoinedAt = now.UTC().Format(jsonl.TimeLayout)
		line, err := json.Marshal(j)
		if err != nil {
			return 0, err
		}
		text = append(jsonl.AppendJSON(text, line), '\n')
		known[j.ToolCallID.String()] = j
		added++
	}
	if added == 0 {
		return 0, nil
	}
	if err := jsonl.Append(f, size, text); err != nil {
		return 0, err
	}
	return added, jsonl.Datasync(f)
}

// repair cuts off what a crash left without a newline. Only then it takes the lock of the directory, which calls wait for.
func repair(dir string, f *os.File, now time.Time) (size int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if size = info.Size(); size == 0 {
		return 0, nil
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], size-1); err != nil || last[0] == '\n' {
		return size, err
	}
	lock, err := jsonl.OpenAppend(filepath.Join(dir, ledger.LockName), 0)
	if err != nil {
		return 0, err
	}
	defer lock.Close()
	if _, err := jsonl.Lock(lock, unix.LOCK_EX); err != nil {
		return 0, err
	}
	size, _, err = jsonl.Repair(dir, f, now, func(line []byte) bool { return json.Valid(line) })
	return size, err
}
