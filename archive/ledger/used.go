package ledger

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"toolrun/archive/internal/jsonl"
)

// RunsName is the folder of the traces.
const RunsName = "runs"

// usedIDs reads every tool_call_id of the ledger and of the run files, and the names of the runs, of sealed months too.
func (l *Ledger) usedIDs() (map[uint64]struct{}, error) {
	used := map[uint64]struct{}{}
	add := func(id string) {
		if id != "" && !reserved.MatchString(id) {
			used[idHash(id)] = struct{}{}
		}
	}
	if l.sealed != nil {
		if err := l.sealed(func(hash uint64) { used[hash] = struct{}{} }); err != nil {
			return nil, err
		}
	}
	if err := eachID(filepath.Join(l.dir, FileName), nil, add); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(l.dir, RunsName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok {
			continue
		}
		used[idHash(runKey(id))] = struct{}{}
		if err := eachID(filepath.Join(l.dir, RunsName, e.Name()), []byte(`"tool_call"`), add); err != nil {
			return nil, err
		}
	}
	return used, nil
}

// eachID calls add with the tool_call_id of each line of a file that holds mark. Lines that are damaged it passes over: a
// verifier names them.
func eachID(path string, mark []byte, add func(string)) error {
	f, size, err := jsonl.Snapshot(path, "")
	if err != nil || f == nil {
		return err
	}
	defer f.Close()
	for line, err := range jsonl.Lines(io.NewSectionReader(f, 0, size)) {
		if err != nil {
			return err
		}
		if bytes.Contains(line.Text, mark) {
			add(idOf(line.Text))
		}
	}
	return nil
}

// idOf returns the tool_call_id of a line, or "".
func idOf(line []byte) string {
	dec := jsontext.NewDecoder(bytes.NewReader(line))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return ""
	}
	for dec.PeekKind() == '"' {
		key, err := dec.ReadToken()
		if err != nil {
			return ""
		}
		if key.String() != "tool_call_id" {
			if dec.SkipValue() != nil {
				return ""
			}
			continue
		}
		value, err := dec.ReadToken()
		if err != nil || value.Kind() != '"' {
			return ""
		}
		return value.String()
	}
	return ""
}
