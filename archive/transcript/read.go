package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"toolrun/archive/internal/jsonl"
)

// maxFileBytes bounds what is read of one transcript.
const maxFileBytes = 1 << 30

// ErrFormat means that a file has none of the known forms.
var ErrFormat = errors.New("no transcript of a known form (Claude Code, Codex, Gemini CLI, OpenCode, Qwen Code, or the messages of the OpenAI or the Anthropic API)")

// reader takes a file line by line.
type reader interface {
	line(text []byte) error
	finish() *Transcript
}

// Window is a time in which a session was written to. A zero end does not bound it.
type Window struct{ From, To time.Time }

// holds tells whether what was written between two times, in milliseconds, was written in the window too.
func (w Window) holds(first, last int64) bool {
	return (w.From.IsZero() || last >= w.From.UnixMilli()) && (w.To.IsZero() || first <= w.To.UnixMilli())
}

// Read reads a file in whatever form it has: one transcript, or, of a database, each session that was written to in the
// window. Errors are ErrFormat or of reading; a damaged line is none.
func Read(path string, w Window) ([]*Transcript, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	in := bufio.NewReaderSize(io.LimitReader(f, maxFileBytes), 64<<10)
	head, _ := in.Peek(len(databaseHead))
	switch {
	case string(head) == databaseHead:
		return readDatabase(path, w)
	case info.Size() > maxFileBytes:
		return nil, fmt.Errorf("%s: more than %d bytes", path, maxFileBytes)
	}
	one, err := read(path, in)
	if err != nil {
		return nil, err
	}
	return []*Transcript{one}, nil
}

// read tells the form by the first lines: a document that spans lines is one JSON value, else each line is one.
func read(path string, in *bufio.Reader) (*Transcript, error) {
	var r reader
	var before [][]byte // lines that told nothing yet
	var damaged []error
	for line, err := range jsonl.Lines(in) {
		if err != nil {
			return nil, err
		}
		bad := line.Damaged()
		if line.No == 1 && !json.Valid(line.Text) {
			if t, err := readWhole(path); t != nil || err != nil {
				return t, err
			}
		}
		if bad == nil && !json.Valid(line.Text) {
			bad = errors.New("not valid JSON")
			if line.Torn {
				bad = jsonl.ErrTorn
			}
		}
		if bad == nil && r == nil {
			if r = sniff(path, line.Text); r == nil {
				if before = append(before, bytes.Clone(line.Text)); len(before) > 64 {
					return nil, fmt.Errorf("%s: %w", path, ErrFormat)
				}
				continue
			}
			for _, text := range before {
				r.line(text) // of no type that counts, else it had told
			}
		}
		if bad == nil {
			bad = r.line(line.Text)
		}
		if bad != nil {
			damaged = append(damaged, &jsonl.Damage{File: path, Line: line.No, Err: bad})
		}
	}
	if r == nil {
		return nil, fmt.Errorf("%s: %w", path, ErrFormat)
	}
	t := r.finish()
	t.Damaged = append(t.Damaged, damaged...)
	return t, nil
}

// readWhole reads a document that spans lines; nil where the file is none.
func readWhole(path string) (*Transcript, error) {
	text, err := os.ReadFile(path)
	if err != nil || !json.Valid(text) {
		return nil, err
	}
	r := sniff(path, text)
	if r == nil {
		return nil, fmt.Errorf("%s: %w", path, ErrFormat)
	}
	if err := r.line(text); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r.finish(), nil
}

// sniff tells the form from one line, nil where it tells nothing. A document has the form of its keys.
func sniff(path string, text []byte) reader {
	var l struct {
		Type      string          `json:"type"`
		SessionID string          `json:"sessionId"`
		Payload   json.RawMessage `json:"payload"`
		Hash      string          `json:"projectHash"`
		ID        string          `json:"id"`
		ProjectID string          `json:"projectID"`
		Info      json.RawMessage `json:"info"`
		Messages  json.RawMessage `json:"messages"`
		Role      string          `json:"role"`
		Message   struct {
			Role  string          `json:"role"`
			Parts json.RawMessage `json:"parts"`
		} `json:"message"`
		Input  json.RawMessage `json:"input"`
		Output json.RawMessage `json:"output"`
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		return newMessages(path)
	}
	if json.Unmarshal(text, &l) != nil {
		return nil
	}
	switch {
	case l.Payload != nil && l.Type != "":
		return newCodex(path)
	case l.Hash != "" && l.SessionID != "":
		return newGemini(path)
	case l.Info != nil && l.Messages != nil:
		return newOpenCodeExport(path)
	case l.ProjectID != "" && strings.HasPrefix(l.ID, "ses_"):
		return newOpenCodeFile(path)
	case l.Message.Parts != nil && l.SessionID != "":
		return newQwen(path)
	case l.SessionID != "" && (l.Type == "user" || l.Type == "assistant"):
		return newClaude(path)
	case l.SessionID == "" && (l.Messages != nil || l.Role != "" || l.Input != nil || l.Output != nil && l.Type == ""):
		return newMessages(path)
	}
	return nil
}
