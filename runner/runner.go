// Package runner is one call from request to reply.
//
// Life of a call: message → frozen tool → arguments checked → policy → tool_call line written → sandboxed process → output
// redacted into the store → row written (the commit point) → reply. Each arrow goes forward once. Promised: no tool starts
// before its tool_call line is in its file; no reply without its row; one row for every attempt and every refusal, also
// when the runner itself panics. Not promised: that a row survives a power failure before the archive's durability says so.
package runner

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"toolrun/archive"
	"toolrun/archive/held"
	"toolrun/archive/redact"
	"toolrun/archive/trace"
	"toolrun/archive/watch"
	"toolrun/catalog"
	"toolrun/catalog/prices"
	"toolrun/sandbox"
)

// Defaults of Config.
const (
	DefaultJobs  = 16
	DefaultQueue = 256
)

// PayloadsHash makes a run keep hashes and flags and drop arguments, summaries and content.
const PayloadsHash = "hash"

// Config is what a Runner needs. Catalog, Archive, Run, Rules, MakeBox, Workspace and LookupEnv must be set.
type Config struct {
	Catalog *catalog.Catalog
	Archive *archive.Dir
	Run     *trace.Run        // begun: its catalog line is in the file
	Rules   *redact.Rules     // of the catalog's secrets
	Secrets map[string]string // their values, for the tools' env
	Prices  prices.Table      // what tokens cost; nil: only what the catalog says

	// MakeBox makes the box of one tool; its error says what the host cannot enforce.
	MakeBox   func(sandbox.Profile) (Box, error)
	Workspace string // absolute
	DataDir   string // absolute; no path in arguments may lead into it
	CacheDir  string // absolute: where the tools' caches of this project are kept
	Path      string // toolrun's own PATH
	LookupEnv func(string) (string, bool)

	Jobs  int // calls at a time; 0: DefaultJobs
	Queue int // calls that wait for a place, and again calls that wait for approval; 0: DefaultQueue

	AllowCommand func(toolCallID string) string // what a person types to allow a held call

	Autonomous []string // risk classes, SEND or DESTRUCTIVE, whose tools run unasked where they would ask
	Role       string
	Payloads   string           // "" or PayloadsHash
	Now        func() time.Time // nil: time.Now
	Logger     *slog.Logger     // nil: silent; it is told no arguments
}

// Runner runs the calls of one run. Its methods may be called from any goroutine.
type Runner struct {
	cfg          Config
	now          func() time.Time
	log          *slog.Logger
	gate         *gate
	ids          *ids
	sessions     *sessions
	handles      *handles
	watched      watched
	watchers     *watch.Listener // nil: nobody can look
	exes         *exeHashes
	plans        map[string]*plan // by tool, builtins excepted
	onlyDeclared *redact.Rules    // for tools with redact = false

	life   sync.RWMutex // read-held by every call; Close takes it
	closed bool         // owned by life
	debts  debts

	desk      *held.Desk
	heldCalls atomic.Int64            // calls that wait for approval
	used      map[string]*atomic.Bool // by tool: it was called
}

// New makes the plans and boxes of all tools: a catalog that the host cannot enforce fails here and not at a call.
func New(cfg Config) (*Runner, error) {
	if cfg.Payloads != "" && cfg.Payloads != PayloadsHash {
		return nil, fmt.Errorf("payloads %q: must be empty or %q", cfg.Payloads, PayloadsHash)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Prices == nil {
		cfg.Prices = prices.Table{cfg.Catalog.Prices()}
	}
	if cfg.Jobs <= 0 {
		cfg.Jobs = DefaultJobs
	}
	if cfg.Queue <= 0 {
		cfg.Queue = DefaultQueue
	}
	workspace, err := resolve(cfg.Workspace)
	if err != nil {
		return nil, fmt.Errorf("workspace %q %w", cfg.Workspace, err)
	}
	cfg.Workspace = workspace
	r := &Runner{
		cfg:          cfg,
		now:          cfg.Now,
		log:          cfg.Logger,
		gate:         newGate(cfg.Jobs, cfg.Queue),
		ids:          newIDs(cfg.Run.ID(), cfg.Rules, cfg.Archive.Ledger.Claim),
		sessions:     newSessions(),
		handles:      newHandles(openPrograms(cfg.Queue, cfg.Jobs)),
		exes:         newExeHashes(),
		plans:        make(map[string]*plan),
		onlyDeclared: cfg.Rules.Shapes(false),
		desk:         held.NewDesk(cfg.Archive.Path(), cfg.Run.ID(), cfg.Now),
		used:         make(map[string]*atomic.Bool),
	}
	var errs []error
	for _, t := range cfg.Catalog.Tools() {
		r.used[t.Name] = new(atomic.Bool)
		if t.Program() == "" {
			continue
		}
		if err := r.prepare(t); err != nil {
			errs = append(errs, fmt.Errorf("tool %s: %w", t.Name, err))
		}
	}
	return r, errors.Join(errs...)
}

// Watch lets toolrun tail see what running calls print, until Close. It comes before the first call. Where nobody can look
// the calls run all the same.
func (r *Runner) Watch() {
	l, err := watch.Listen(r.cfg.Archive.Path(), r.cfg.Run.ID(), &r.watched)
	if err != nil {
		r.log.Warn("toolrun tail cannot see what running calls print", "err", err)
		return
	}
	r.watchers = l
}

func (r *Runner) prepare(t *catalog.Tool) error {
	p, profile, err := newPlan(&r.cfg, t, func(what string) { r.log.Warn("a box shows less than declared", "tool", t.Name, "what", what) })
	if err != nil {
		return err
	}
	if p.box, err = r.cfg.MakeBox(profile); err != nil {
		return err
	}
	r.plans[t.Name] = p
	if t.Mode == catalog.ModeSession {
		r.plans[t.Base+"_"+catalog.VerbSend] = p // what is typed runs there
	}
	return nil
}

// Tools are the tools of the frozen catalog, sorted by name.
func (r *Runner) Tools() []*catalog.Tool { return r.cfg.Catalog.Tools() }

// Instructions tells a model what it is dealing with.
func (r *Runner) Instructions() string {
	var b strings.Builder
	fmt.Fprintf(&b, "These tools run in sandboxes on the project %s; every call is on the record. ", r.cfg.Catalog.Name())
	b.WriteString("Only the listed tools exist: a call of any other name is refused. ")
	b.WriteString("The first and the last line of a result say whether the call succeeded. ")
	b.WriteString("Secrets are shown as " + redact.Mark + "; text that holds this mark is not accepted as an argument.")
	for _, t := range r.cfg.Catalog.Tools() {
		if decide(question{Tool: t, Autonomous: r.cfg.Autonomous}).Ask {
			fmt.Fprintf(&b, " A call of %s waits until a person allows it.", t.Name)
		}
		if t.Builtin == catalog.BuiltinOutput {
			fmt.Fprintf(&b, " Where a result leaves bytes out, %s reads them by output_hash or stderr_hash.", t.Name)
		}
	}
	return b.String()
}

// Session puts a session on the record when it is first seen: at initialize, tools/list or the first call.
func (r *Runner) Session(o Origin) error {
	id, _ := r.sessionID(o)
	return r.announce(r.sessions.get(id.String()), id, o)
}

// RejectedLine puts a line of input on the record that named no tool: its JSON-RPC error code, length and hash.
func (r *Runner) RejectedLine(code int, n int64, sha256 string) {
	if err := r.cfg.Run.RejectedLine(code, n, sha256); err != nil {
		r.log.Error("a rejected line is not on the record", "err", err)
	}
}

// Close waits for the calls that run, ends the programs that stay open, and ends the run: its last line names the tools
// that nobody called. The caller ends the calls first, by their contexts, if it cannot wait. Later calls find the ledger
// unavailable.
func (r *Runner) Close() error {
	r.life.Lock()
	defer r.life.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	r.handles.close()
	err := errors.Join(r.settle(), r.desk.Close())
	err = errors.Join(err, r.cfg.Archive.End(r.cfg.Run, r.unused()))
	if r.watchers != nil { // nobody's record: it comes last
		if err := r.watchers.Close(); err != nil {
			r.log.Debug("the socket of watchers is left", "err", err)
		}
	}
	return err
}

// unused are the tools that no call named, but for those that are declared optional.
func (r *Runner) unused() []string {
	names := []string{}
	for _, t := range r.cfg.Catalog.Tools() {
		if !t.Optional && !r.used[t.Name].Load() {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return names
}
