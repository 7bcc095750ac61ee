package tests

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// This file reads a data directory knowing only what archive/FORMAT.md says of it, not toolrun's code.

// row is one line of ledger.jsonl.
type row struct {
	ToolCallID   string   `json:"tool_call_id"`
	SessionID    string   `json:"session_id"`
	Turn         int      `json:"turn"`
	ToolName     string   `json:"tool_name"`
	RiskClass    *string  `json:"risk_class"`
	Status       string   `json:"status"`
	Attempt      int      `json:"attempt"`
	StartedAt    string   `json:"started_at"`
	EndedAt      string   `json:"ended_at"`
	DurationMS   int64    `json:"duration_ms"`
	InputSummary string   `json:"input_summary"`
	InputHash    string   `json:"input_hash"`
	OutputSum    string   `json:"output_summary"`
	OutputHash   *string  `json:"output_hash"`
	OutputBytes  int64    `json:"output_bytes"`
	ErrorType    *string  `json:"error_type"`
	ErrorMessage *string  `json:"error_message"`
	Approval     *string  `json:"approval_status"`
	Seq          int64    `json:"seq"`
	RunID        string   `json:"run_id"`
	ClientCallID *string  `json:"client_call_id"`
	Known        bool     `json:"known"`
	Flags        []string `json:"flags"`
	Outcome      string   `json:"outcome"`
	ExitCode     *int     `json:"exit_code"`
	Signal       *string  `json:"signal"`
	StoredBytes  int64    `json:"stored_bytes"`
	StderrHash   *string  `json:"stderr_hash"`
	StderrBytes  int64    `json:"stderr_bytes"`
	Truncated    bool     `json:"truncated"`
	CPUMS        *int64   `json:"cpu_ms"`
	OOMKills     *int64   `json:"oom_kills"`
	PidsLimitHit *bool    `json:"pids_limit_hit"`
	Enforced     []string `json:"enforced"`
	Redactions   int      `json:"redactions"`

	raw  []byte
	line int
}

// traceLine is one line of runs/<run_id>.jsonl.
type traceLine struct {
	Type         string            `json:"type"`
	RunID        string            `json:"run_id"`
	ToolCallID   string            `json:"tool_call_id"`
	Name         string            `json:"name"`
	CatalogNames []string          `json:"catalog_names"`
	Catalog      string            `json:"catalog_sha256"`
	Schemas      map[string]string `json:"-"`
	ArgsSHA256   string            `json:"args_sha256"`
	SessionID    string            `json:"session_id"`
	Flags        []string          `json:"flags"`
	ExitCode     *int              `json:"exit_code"`
	OutputBytes  int64             `json:"output_bytes"`
	UnusedNames  []string          `json:"unused_names"`
	ClosedBy     string            `json:"closed_by"`
}

// jsonLines calls f with each line of a JSONL file. A missing file has no lines.
func jsonLines(path string, f func(n int, line []byte)) error {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	n := 0
	for line := range bytes.Lines(content) {
		n++
		if !bytes.HasSuffix(line, []byte("\n")) {
			return fmt.Errorf("%s:%d: the last line has no newline", path, n)
		}
		f(n, bytes.TrimSuffix(line, []byte("\n")))
	}
	return nil
}

// readRows reads the ledger and names every line that is no row.
func readRows(data string) (rows []row, problems []error) {
	path := filepath.Join(data, "ledger.jsonl")
	err := jsonLines(path, func(n int, line []byte) {
		r := row{raw: line, line: n}
		if err := json.Unmarshal(line, &r); err != nil {
			problems = append(problems, fmt.Errorf("%s:%d: %w", path, n, err))
			return
		}
		rows = append(rows, r)
	})
	if err != nil {
		problems = append(problems, err)
	}
	return rows, problems
}

// readRuns reads the traces of all runs by run_id.
func readRuns(data string) (runs map[string][]traceLine, problems []error) {
	runs = map[string][]traceLine{}
	files, _ := filepath.Glob(filepath.Join(data, "runs", "*.jsonl"))
	for _, path := range files {
		id := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		err := jsonLines(path, func(n int, line []byte) {
			var l traceLine
			if err := json.Unmarshal(line, &l); err != nil {
				problems = append(problems, fmt.Errorf("%s:%d: %w", path, n, err))
				return
			}
			if l.RunID != id {
				problems = append(problems, fmt.Errorf("%s:%d: run_id is %q", path, n, l.RunID))
			}
			runs[id] = append(runs[id], l)
		})
		if err != nil {
			problems = append(problems, err)
		}
	}
	return runs, problems
}

func objectPath(data, hash string) string {
	if len(hash) < 2 {
		return filepath.Join(data, "store", "no-hash")
	}
	return filepath.Join(data, "store", hash[:2], hash+".txt")
}

// checkObject opens an object and compares it with its name.
func checkObject(data, hash string) (size int64, err error) {
	f, err := os.Open(objectPath(data, hash))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	h := sha256.New()
	size, err = bufio.NewReader(f).WriteTo(h)
	if err == nil && hex.EncodeToString(h.Sum(nil)) != hash {
		err = fmt.Errorf("object %s does not match its hash", hash)
	}
	return size, err
}

// keys are the keys of a JSON object in the order they stand in, and their values.
func keys(object []byte) (order []string, values map[string]json.RawMessage, err error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return nil, nil, fmt.Errorf("no object: %.80q", object)
	}
	values = map[string]json.RawMessage{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		key := token.(string)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, nil, err
		}
		if _, twice := values[key]; twice {
			return nil, nil, fmt.Errorf("key %q stands twice", key)
		}
		order, values[key] = append(order, key), value
	}
	return order, values, nil
}

func sha256Hex(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// grep names the files of a tree that contain s.
func grep(root, s string) (files []string) {
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if content, err := os.ReadFile(path); err == nil && bytes.Contains(content, []byte(s)) {
				files = append(files, path)
			}
		}
		return nil
	})
	slices.Sort(files)
	return files
}

// usage is the number of bytes of all files of a tree.
func usage(root string) (n int64) {
	filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}
