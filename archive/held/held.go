// Package held is how a call that waits for a person's answer is seen and answered by another process.
//
// The holder, the process that received the call, has a unix socket in pending/ of the data directory and writes one file
// a held call, with all that a person has to see before saying yes. Another process of the same user lists the files and
// answers through the socket. Promised: an answer counts for the very file that was shown (it brings the hash of its
// bytes), for a call that is still held, once; who answered is told by the kernel and not by who answers; allowing takes
// a terminal. A holder that died holds nothing: nobody listens, and the next process removes what it left behind.
//
// Not promised: that a person was at that terminal. Any program of the same user outside of a box can open one.
package held

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"toolrun/archive/redact"
)

// DirName is the folder of held calls in a data directory. Its files are <run_id>.sock and <run_id>.<n>.json.
const DirName = "pending"

const (
	callSuffix = ".json"

	// maxCallBytes bounds a file that is read: arguments are at most a line of 16 MiB, and stand in argv again.
	maxCallBytes = 64 << 20
)

// Call is what a person is shown of a held call, in the order of its keys on disk.
type Call struct {
	ToolCallID redact.Text   `json:"tool_call_id"`
	RunID      string        `json:"run_id"`
	SessionID  redact.Text   `json:"session_id"`
	Client     *redact.Text  `json:"client"` // name/version
	Tool       redact.Text   `json:"tool_name"`
	Risk       string        `json:"risk_class"`
	Argv       redact.JSON   `json:"argv"` // whole, however long; null for a tool without a program
	Arguments  redact.JSON   `json:"arguments"`
	Cwd        redact.Text   `json:"cwd"`
	Write      []redact.Text `json:"write"`   // places of the host that it may change
	Network    []redact.Text `json:"network"` // "none", "host", or the hosts that it may reach
	Timeout    int64         `json:"timeout_ms"`
	AskedAt    string        `json:"asked_at"`
	ExpiresAt  string        `json:"expires_at"` // afterwards no answer counts
	Nonce      string        `json:"nonce"`      // makes the file of each held call another one
}

// Entry is a held call as another process sees it.
type Entry struct {
	Call
	shown string // SHA-256 of the file's bytes
}

// encode gives the file's bytes and their hash.
func (c *Call) encode() (line []byte, shown string, err error) {
	line, err = json.Marshal(c, json.Deterministic(true))
	if err != nil {
		return nil, "", err
	}
	line = append(redact.EscapeLines(line), '\n')
	return line, hashOf(line), nil
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// List gives the calls that are held now, the oldest first: those whose holder listens. A file that cannot be read is
// passed over, and so is one that is no file of ours.
func List(dataDir string) ([]Entry, error) {
	folder := filepath.Join(dataDir, DirName)
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Entry
	alive := make(map[string]bool)
	for _, file := range entries {
		run, ok := runOf(file.Name())
		if !ok || !strings.HasSuffix(file.Name(), callSuffix) {
			continue
		}
		if _, asked := alive[run]; !asked {
			alive[run] = listens(folder, run)
		}
		if !alive[run] {
			continue
		}
		if e, err := read(filepath.Join(folder, file.Name())); err == nil && e.RunID == run {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b Entry) int {
		return strings.Compare(a.AskedAt+a.ToolCallID.String(), b.AskedAt+b.ToolCallID.String())
	})
	return list, nil
}

func read(path string) (e Entry, err error) {
	f, err := os.Open(path)
	if err != nil {
		return e, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCallBytes+1))
	if err != nil {
		return e, err
	}
	if len(b) > maxCallBytes {
		return e, fmt.Errorf("%q is over %d bytes", path, maxCallBytes)
	}
	if err := json.UnmarshalRead(bytes.NewReader(b), &e.Call, jsontext.AllowDuplicateNames(false), json.RejectUnknownMembers(true)); err != nil {
		return e, err
	}
	e.shown = hashOf(b)
	return e, nil
}

// Expires is when answers stop to count.
func (c *Call) Expires() time.Time {
	t, err := time.Parse(time.RFC3339, c.ExpiresAt)
	if err != nil {
		return time.Time{}
	}
	return t
}

// Remove takes away what a run left behind that will hold nothing any more: it ended, or it is dead and closed.
func Remove(dataDir, runID string) error {
	dir := filepath.Join(dataDir, DirName)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if run, ok := runOf(e.Name()); ok && run == runID {
			if gone := os.Remove(filepath.Join(dir, e.Name())); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
	}
	return err
}

// runOf is the run that a name in pending/ belongs to.
func runOf(name string) (run string, ok bool) {
	run, rest, ok := strings.Cut(strings.TrimPrefix(name, "."), ".")
	return run, ok && run != "" && rest != ""
}

// Facts is what a person must see before the call may run, each with its name. At most maxChars of arguments and of argv
// are in it; what is left out is counted. Nothing is escaped.
func (c *Call) Facts(maxChars int) [][2]string {
	facts := [][2]string{{"call", c.ToolCallID.String()}, {"tool", c.Tool.String() + ", " + c.Risk}}
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, [2]string{name, value})
		}
	}
	if !c.Argv.IsNull() {
		add("argv", shorten(c.Argv.String(), maxChars))
	}
	add("arguments", shorten(c.Arguments.String(), maxChars))
	add("runs in", c.Cwd.String())
	add("may write", words(c.Write))
	add("network", words(c.Network))
	if c.Timeout > 0 {
		add("timeout", (time.Duration(c.Timeout) * time.Millisecond).String())
	}
	asks := "session " + c.SessionID.String()
	if c.Client != nil {
		asks = c.Client.String() + ", " + asks
	}
	add("asked by", asks)
	return facts
}

func words(texts []redact.Text) string {
	list := make([]string, len(texts))
	for i, t := range texts {
		list[i] = t.String()
	}
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

func shorten(s string, maxChars int) string {
	n := 0
	for i := range s {
		if n++; n > maxChars {
			return fmt.Sprintf("%s … and %d bytes more, which toolrun pending --json shows", s[:i], len(s)-i)
		}
	}
	return s
}
