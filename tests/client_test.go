package tests

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for an answer that says nothing about time.
const patience = 60 * time.Second

// server is a running `toolrun serve` and its client: lines go in, answers are kept by the JSON text of their id.
type server struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.Closer
	ended  chan struct{} // closed when the process was reaped
	stderr *lockedBuffer

	mu      sync.Mutex
	changed chan struct{} // closed and renewed at each new line
	answers map[string][]answer
	lines   []string // everything that came on stdout
	eof     bool
	next    int // the last id of call
}

// answer is one message from the server.
type answer struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// facts are what a tools/call result says as structuredContent, with its isError and text.
type facts struct {
	Status        string  `json:"status"`
	Outcome       string  `json:"outcome"`
	ExitCode      *int    `json:"exit_code"`
	Signal        *string `json:"signal"`
	Stdout        string  `json:"stdout"`
	Stderr        string  `json:"stderr"`
	StdoutBytes   int64   `json:"stdout_bytes"`
	StderrBytes   int64   `json:"stderr_bytes"`
	Truncated     bool    `json:"truncated"`
	DurationMS    int64   `json:"duration_ms"`
	OutputHash    *string `json:"output_hash"`
	StderrHash    *string `json:"stderr_hash"`
	ToolCallID    string  `json:"tool_call_id"`
	RunID         string  `json:"run_id"`
	Seq           int64   `json:"seq"`
	CatalogSHA256 string  `json:"catalog_sha256"`

	IsError bool   `json:"-"`
	Text    string `json:"-"`
}

// object is JSON in a test.
type object = map[string]any

// serve starts a server in this place; it is stopped at the end of the test.
func (p *place) serve(args ...string) *server {
	p.t.Helper()
	return p.start(p.command(append([]string{"serve"}, args...)...))
}

// start starts a prepared command as a server.
func (p *place) start(cmd *exec.Cmd) *server {
	p.t.Helper()
	s := &server{t: p.t, cmd: cmd, ended: make(chan struct{}), stderr: new(lockedBuffer), changed: make(chan struct{}), answers: map[string][]answer{}}
	in, childIn := pipe(p.t)
	childOut, out := pipe(p.t)
	if cmd.Stderr == nil {
		cmd.Stderr = s.stderr
	}
	cmd.Stdin, cmd.Stdout = in, out
	cmd.WaitDelay = time.Second
	s.stdin, s.stdout = childIn, childOut
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	in.Close()
	out.Close()
	go s.read(childOut)
	go func() { cmd.Wait(); close(s.ended) }()
	p.t.Cleanup(s.stop)
	return s
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

func (s *server) read(out io.Reader) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		s.mu.Lock()
		if line != "" {
			s.lines = append(s.lines, line)
			var m answer
			if jsonErr := json.Unmarshal([]byte(line), &m); jsonErr == nil && m.Method == "" {
				s.answers[string(m.ID)] = append(s.answers[string(m.ID)], m)
			}
		}
		s.eof = err != nil
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// stop ends the server as a client does, by closing its stdin, and holds it to what every server owes.
func (s *server) stop() {
	s.stdin.Close()
	select {
	case <-s.ended:
	case <-time.After(20 * time.Second):
		s.cmd.Process.Kill()
		<-s.ended
		s.t.Errorf("the server did not end at EOF\n%s", s.stderr)
	}
	s.stdout.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	status, _ := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	for i, line := range s.lines {
		var m struct {
			Version string `json:"jsonrpc"`
		}
		if i == len(s.lines)-1 && !strings.HasSuffix(line, "\n") && status.Signaled() && status.Signal() == syscall.SIGKILL {
			continue // it was killed in the middle of a write: that is no answer
		}
		if !strings.HasSuffix(line, "\n") || json.Unmarshal([]byte(line), &m) != nil || m.Version != "2.0" {
			s.t.Errorf("stdout holds a line that is no JSON-RPC message: %.200q", line)
		}
	}
	for id, all := range s.answers {
		if len(all) > 1 && id != "null" {
			s.t.Errorf("id %s was answered %d times", id, len(all))
		}
	}
	if s.t.Failed() && s.stderr.String() != "" {
		s.t.Logf("stderr of the server:\n%s", s.stderr)
	}
}

// kill ends the server with SIGKILL.
func (s *server) kill() {
	s.cmd.Process.Kill()
	<-s.ended
}

// wait waits for the end of the server and gives its exit code, or the signal that ended it as a negative number.
func (s *server) wait(limit time.Duration) int {
	s.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(limit):
		s.t.Fatalf("the server has not ended within %v\n%s", limit, s.stderr)
	}
	status := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return -int(status.Signal())
	}
	return status.ExitStatus()
}

// send writes lines, all by one write.
func (s *server) send(lines ...string) {
	s.t.Helper()
	if err := s.trySend(lines...); err != nil {
		s.t.Fatalf("write to the server: %v\n%s", err, s.stderr)
	}
}

func (s *server) trySend(lines ...string) error {
	_, err := io.WriteString(s.stdin, strings.Join(lines, "\n")+"\n")
	return err
}

var errNoAnswer = errors.New("no answer")

// tryAnswer waits for the answer to the request with this id (its JSON text).
func (s *server) tryAnswer(id string, limit time.Duration) (answer, error) {
	deadline := time.After(limit)
	for {
		s.mu.Lock()
		got, eof, changed := s.answers[id], s.eof, s.changed
		s.mu.Unlock()
		if len(got) > 0 {
			return got[0], nil
		}
		if eof {
			return answer{}, fmt.Errorf("%w to id %s: the server closed its stdout", errNoAnswer, id)
		}
		select {
		case <-changed:
		case <-deadline:
			return answer{}, fmt.Errorf("%w to id %s within %v", errNoAnswer, id, limit)
		}
	}
}

// answer is tryAnswer for tests that cannot go on without.
func (s *server) answer(id any, limit time.Duration) answer {
	s.t.Helper()
	a, err := s.tryAnswer(fmt.Sprint(id), limit)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.stderr)
	}
	return a
}

// request is the line of a request; id and params are JSON text or values.
func request(id any, method string, params any) string {
	line := object{"jsonrpc": "2.0", "method": method}
	if params != nil {
		line["params"] = params
	}
	if id != nil {
		line["id"] = id
	}
	return toJSON(line)
}

func toJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // a mistake in the test
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// callLine is the line of a tools/call. args is a value or json.RawMessage; nil: no arguments member.
func callLine(id any, tool string, args any) string {
	params := object{"name": tool}
	if args != nil {
		params["arguments"] = args
	}
	return request(id, "tools/call", params)
}

// begin sends a call with a fresh id and gives the id.
func (s *server) begin(tool string, args any) int {
	s.t.Helper()
	s.mu.Lock()
	s.next++
	id := 1000000 + s.next
	s.mu.Unlock()
	s.send(callLine(id, tool, args))
	return id
}

// call makes one call and waits for its facts.
func (s *server) call(tool string, args any) facts {
	s.t.Helper()
	return s.facts(s.begin(tool, args), patience)
}

// facts waits for the result of a call.
func (s *server) facts(id any, limit time.Duration) facts {
	s.t.Helper()
	a := s.answer(id, limit)
	f, err := factsOf(a)
	if err != nil {
		s.t.Fatalf("answer to %v: %v\n%s", id, err, s.stderr)
	}
	return f
}

// factsOf reads a call's result, and checks that text and structuredContent tell the same story.
func factsOf(a answer) (facts, error) {
	if a.Error != nil {
		return facts{}, fmt.Errorf("JSON-RPC error %d: %s", a.Error.Code, a.Error.Message)
	}
	var r struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		Structured *facts         `json:"structuredContent"`
		IsError    bool           `json:"isError"`
		Meta       map[string]any `json:"_meta"`
	}
	if err := json.Unmarshal(a.Result, &r); err != nil {
		return facts{}, fmt.Errorf("%w in %.300s", err, a.Result)
	}
	if r.Structured == nil || len(r.Content) == 0 {
		return facts{}, fmt.Errorf("no structuredContent or no content: %.500s", a.Result)
	}
	f := *r.Structured
	f.IsError, f.Text = r.IsError, r.Content[0].Text
	if f.IsError != (f.Status != "success") {
		return f, fmt.Errorf("isError is %t with status %s", f.IsError, f.Status)
	}
	for _, key := range []string{"toolrun/tool_call_id", "toolrun/seq", "toolrun/run_id"} {
		if _, ok := r.Meta[key]; !ok {
			return f, fmt.Errorf("_meta lacks %s: %v", key, r.Meta)
		}
	}
	return f, nil
}

// lockedBuffer is a bytes.Buffer that a command may write while a test reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
