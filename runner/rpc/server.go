package rpc

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"toolrun/archive/redact"
	"toolrun/catalog"
	"toolrun/runner"
)

// Backend is what the server serves. *runner.Runner is one; its methods are called concurrently.
type Backend interface {
	// Tools are listed in the order that they come in.
	Tools() []*catalog.Tool
	// Instructions are told to the client at the start.
	Instructions() string
	// Session puts on the record who calls, before the first call of a session and perhaps again.
	Session(runner.Origin) error
	// Call runs one call to its end; when ctx ends, its cause is runner.ErrCancelled or runner.ErrInterrupted. It is told
	// of every tools/call whose name can be read, also of one that is refused here.
	Call(context.Context, runner.Request) runner.Reply
	// RejectedLine is told of every other line that is answered with an error, or would be if it had an id.
	RejectedLine(code int, bytes int64, sha256 string)
}

// Config is how Serve serves.
type Config struct {
	In      io.Reader
	Out     io.Writer // where it is an *os.File, Serve notices that nobody holds its read end
	Backend Backend
	Version string // of toolrun, for serverInfo

	// EOFGrace bounds how long calls may run on after the end of In; 0 does not.
	EOFGrace time.Duration
	// Getenv reads the launch environment; nil is os.Getenv.
	Getenv func(string) string
	// Logger must not block, whoever reads what it writes. Nil discards.
	Logger *slog.Logger
	// MaxLineBytes is the longest line that is read; 0 is MaxLineBytes.
	MaxLineBytes int
	// Rules remove secrets from errors that repeat what was sent; nil: none are known.
	Rules *redact.Rules
	// Refuse, where set, is the answer to the first request, after which Serve returns it: the host cannot enforce the
	// catalog, and many clients hide what a server writes to stderr.
	Refuse error
}

// How long Serve waits where it may not wait for ever.
const (
	stopWait  = 5 * time.Second        // for calls that were told to end; the backend kills, so this is for what cannot be killed
	flushWait = 500 * time.Millisecond // for a client that does not read, once calls were told to end
)

// server is one Serve.
type server struct {
	cfg     Config
	log     *slog.Logger
	backend Backend
	out     *writer
	open    *inflight

	calls     context.Context // every request's context descends from it
	interrupt context.CancelCauseFunc

	mcp       *mcp.Server
	tools     []*mcp.Tool     // frozen
	asks      map[string]bool // tools that ask a person; frozen
	handshake *session        // of who began with initialize
	stateless *session        // of everybody else
	who       identified
	questions questions
	states    *states
	ended     chan struct{} // closed when nothing more will be read

	// initialized says that initialize was read and has not failed: requests that do not say their protocol belong to it.
	initialized atomic.Bool
	// Owned by the reader: initialize asked for the one version that has batches; a request was refused.
	batches, refused bool
}

// Serve serves one client until In ends and everything that was read is answered: then it returns nil. When ctx ends it
// interrupts every call, waits until their records are written, and returns the cause of ctx. With Config.Refuse it
// returns that. Other errors are of reading. A read of In that ctx interrupted goes on until the caller closes In.
//
// Where Out is stdout the caller has to take SIGPIPE (and not to ignore it, which children would inherit): a write to a
// closed stdout would else end the process before the rows of running calls are written.
func Serve(ctx context.Context, cfg Config) error {
	s := newServer(ctx, cfg)
	defer s.interrupt(runner.ErrInterrupted)
	defer s.out.close()
	defer s.handshake.Close()
	defer s.stateless.Close()

	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	ended := make(chan error, 1)
	go s.read(reading, newLineReader(cfg.In, s.cfg.MaxLineBytes), new(parser), ended)
	select {
	case err := <-ended:
		if cfg.Refuse != nil {
			s.flush(ctx, stopWait)
			return cfg.Refuse
		}
		s.drain(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	case <-ctx.Done():
		s.drain(ctx)
		return context.Cause(ctx)
	}
}

func newServer(ctx context.Context, cfg Config) *server {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Getenv == nil {
		cfg.Getenv = os.Getenv
	}
	if cfg.MaxLineBytes == 0 {
		cfg.MaxLineBytes = MaxLineBytes
	}
	s := &server{
		cfg:     cfg,
		log:     cfg.Logger,
		backend: cfg.Backend,
		out:     newWriter(cfg.Out, cfg.Logger),
		open:    newInflight(),
		asks:    make(map[string]bool),
		states:  newStates(),
		ended:   make(chan struct{}),
	}
	s.calls, s.interrupt = context.WithCancelCause(context.WithoutCancel(ctx))
	s.who.launched(cfg.Getenv)
	s.tools = listed(s.backend.Tools())
	for _, t := range s.backend.Tools() {
		s.asks[t.Name] = t.Approval == catalog.ApprovalAsk
	}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "toolrun", Version: cfg.Version}, &mcp.ServerOptions{
		Instructions: s.backend.Instructions(),
		Logger:       slog.New(errorsOnly{cfg.Logger.Handler()}),
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	s.mcp.AddReceivingMiddleware(s.middleware)
	s.handshake = connect(s, nil)
	// A state that has InitializeParams lets requests pass that no initialize came before.
	s.stateless = connect(s, &mcp.ServerSessionState{InitializeParams: &mcp.InitializeParams{ProtocolVersion: modernVersion}})
	return s
}

// errorsOnly is the log of the SDK, which else tells of each session that it began.
type errorsOnly struct{ slog.Handler }

// Enabled implements slog.Handler.
func (h errorsOnly) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelError && h.Handler.Enabled(ctx, l)
}

// drain brings everything that was read to its end, and then the sessions. In has ended, or ctx has.
func (s *server) drain(ctx context.Context) {
	drained := s.open.drain()
	close(s.ended)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var grace <-chan time.Time
	if s.cfg.EOFGrace > 0 {
		t := time.NewTimer(s.cfg.EOFGrace)
		defer t.Stop()
		grace = t.C
	}
	var why runner.Interrupted
	select {
	case <-drained:
	case <-ctx.Done():
		why = "toolrun was told to stop"
	case <-grace:
		why = "stdin has ended and the grace period is over"
	case <-s.out.gone:
		why = "stdin has ended and stdout cannot be written to"
	case <-hangup(watching, s.cfg.Out):
		why = "stdin has ended and nobody reads stdout"
	}
	if why != "" {
		s.log.Info("running calls are interrupted", "why", string(why))
		s.interrupt(why)
		select {
		case <-drained:
		case <-time.After(stopWait):
			s.log.Error("calls did not end in time, leaving them", "after", stopWait)
			s.flush(context.Background(), flushWait)
			return
		}
	}
	s.handshake.end()
	s.stateless.end()
	if why != "" {
		s.flush(context.Background(), flushWait)
		return
	}
	s.flushToReader(ctx)
}

// flush waits a while until the client has read everything.
func (s *server) flush(ctx context.Context, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	s.out.flush(ctx)
}

// flushToReader waits until the client has read everything, for as long as there is one.
func (s *server) flushToReader(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.cfg.EOFGrace > 0 {
		ctx, cancel = context.WithTimeout(ctx, s.cfg.EOFGrace)
		defer cancel()
	}
	s.out.flush(ctx)
}

// read reads lines until there are none, and says on ended that there are, nil or why they cannot be read. With
// Config.Refuse it ends after the first request.
//
// A call is served by the goroutine that read its line, while a new one reads on: the call does not wait until another
// thread is awake.
func (s *server) read(ctx context.Context, lines *lineReader, p *parser, ended chan<- error) {
	for {
		s.out.wait(ctx)
		line, long, err := lines.next()
		switch {
		case ctx.Err() != nil || errors.Is(err, io.EOF):
			ended <- nil
			return
		case err != nil:
			s.log.Error("stdin cannot be read", "error", err)
			ended <- err
			return
		case long != nil:
			s.rejectLong(long)
		case blank(line):
		default:
			if r := s.accept(p, line); r != nil {
				go s.read(ctx, lines, p, ended)
				s.serve(r)
				return
			}
		}
		if s.cfg.Refuse != nil && s.refused {
			ended <- nil
			return
		}
	}
}
