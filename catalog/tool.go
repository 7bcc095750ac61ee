package catalog

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The four risk classes, from what only looks to what cannot be undone.
const (
	RiskRead        = "READ"
	RiskDraft       = "DRAFT"
	RiskSend        = "SEND"
	RiskDestructive = "DESTRUCTIVE"
)

// What happens before a call of the tool runs.
const (
	ApprovalAuto = "auto"
	ApprovalAsk  = "ask" // a person is asked
	ApprovalDeny = "deny"
)

// BuiltinOutput names the builtin that reads a stored output of its own session by hash, offset and length.
const BuiltinOutput = "output"

// Networks that a tool may ask for.
const (
	NetworkNone  = "none"
	NetworkHost  = "host"
	NetworkHosts = "hosts" // those of Sandbox.Hosts; written as a list
)

// Tool is one declared tool with every default applied. It is frozen: whoever reads it never writes to it, nor to a
// slice or map that it holds.
type Tool struct {
	Name        string
	Title       string // "" where none is declared
	Description string
	Risk        string // RiskRead, RiskDraft, RiskSend or RiskDestructive
	Approval    string // ApprovalAuto, ApprovalAsk or ApprovalDeny
	Builtin     string // "" or BuiltinOutput
	Mode        string // ModeCall, ModeSession or ModeBackground
	Verb        string // what it does with a program that stays, VerbStart, …; "" with ModeCall
	Base        string // with a Verb: the declared name

	Cwd         string              // as written: "." is the workspace
	Env         map[string]EnvValue // by variable name
	EnvPass     []string            // variables of toolrun's own environment that the tool gets too
	StderrMerge bool                // stderr goes where stdout goes; always so at a terminal
	Terminal    Terminal            // of the program, in place of pipes
	User        string              // "" is the owner of the workspace

	Timeout     time.Duration // whole milliseconds, > 0; of the program, where it stays
	Idle        time.Duration // of a session that no call uses; 0 with another mode
	OKExitCodes []int         // sorted, never empty
	Retry       Retry
	Concurrency int // calls of this tool at a time; 0 is no bound of its own
	Optional    bool
	Redact      bool // false lifts the shapes, never the declared secrets

	Limits       Limits
	PreviewBytes int64 // of stdout and stderr together in the reply, head and tail of each
	Sandbox      Sandbox
	Toolchains   Toolchains
	BestEffort   bool // isolation = "best-effort"

	Schema           json.RawMessage // canonical JSON Schema of the arguments, the one tools/list shows and Check applies
	SchemaSHA256     string          // of Schema
	Definition       json.RawMessage // canonical effective declaration, see definition
	DefinitionSHA256 string          // of Definition

	declared place      // [tools.NAME]
	command  []argument // empty for a builtin
	stdin    text       // nil where none is declared
	params   map[string]*param
	names    []string // of params, sorted
	compiled *jsonschema.Schema
}

// At is a sentence about the tool, or about a key of it, at the place where that was written.
func (t *Tool) At(problem string, keys ...string) *Error {
	return t.declared.key(keys...).says(problem)
}

// EnvValue is the value of one variable of a tool's env: either Value, or the value of the declared secret Secret.
type EnvValue struct {
	Value  string
	Secret string // name of a secret; "" where Value counts
}

// Retry says when a failed attempt is followed by another.
type Retry struct {
	Max     int           // attempts after the first
	On      []string      // outcomes ("timeout", "signal", …) and exit codes ("exit:75")
	Backoff time.Duration // between two attempts; no part of a timeout
}

// After says whether an attempt that ended so is followed by another, where one is left; exitCode is nil where no process
// exited by itself.
func (r Retry) After(outcome string, exitCode *int) bool {
	return slices.Contains(r.On, outcome) || outcome == "exit" && exitCode != nil && slices.Contains(r.On, "exit:"+strconv.Itoa(*exitCode))
}

// Limits bound one call. Every field is above zero, except SwapBytes, which may be zero.
type Limits struct {
	MemoryBytes      int64
	SwapBytes        int64
	Pids             int64
	CPUs             float64
	CPUTime          time.Duration
	Files            int64 // open descriptors of a process
	FileSizeBytes    int64 // of one written file
	OutputBytes      int64 // stored of each stream
	OutputTotalBytes int64 // written, before the call is ended
}

// Sandbox is what a tool may see and change, as written: relative to the workspace, or absolute.
type Sandbox struct {
	Read    []string
	Write   []string
	Hide    []string
	Cache   []string // names, not paths
	Network string   // NetworkNone, NetworkHost or NetworkHosts
	Hosts   []string // "host" (ports 443 and 80), "host:port", "*.domain"; nil unless Network is NetworkHosts
	Ptrace  bool
}

// Toolchains says whose installation roots are shown in the box.
type Toolchains struct {
	Auto     bool     // those of command[0] and of its interpreter
	Programs []string // program names or absolute paths; empty with Auto false is none
}

// Program is command[0], as declared; "" for a tool that starts none: a builtin, and each verb but VerbStart.
func (t *Tool) Program() string {
	if len(t.command) == 0 {
		return ""
	}
	return t.command[0].text.literal()
}

// HasStdin says whether the tool declares stdin; otherwise it reads from the null device.
func (t *Tool) HasStdin() bool { return t.stdin != nil }

// StdinParams returns the names of the parameters that stdin is made of, in its order.
func (t *Tool) StdinParams() (names []string) {
	for _, p := range t.stdin {
		if p.param != "" {
			names = append(names, p.param)
		}
	}
	return names
}

// LongestCall is how long one call of the tool may take, retries and waiting for a place aside.
func (t *Tool) LongestCall() time.Duration {
	if t.Verb != "" {
		return maxWaitMS * time.Millisecond
	}
	return t.Timeout
}

// Params returns the names of the declared parameters, sorted.
func (t *Tool) Params() []string { return append([]string(nil), t.names...) }

// Annotations returns the hints of MCP for this tool: readOnly only for READ with nothing writable and no network,
// destructive for DESTRUCTIVE, openWorld where there is a network.
func (t *Tool) Annotations() (readOnly, destructive, openWorld bool) {
	openWorld = t.Sandbox.Network != NetworkNone
	writable := len(t.Sandbox.Write) > 0 || len(t.Sandbox.Cache) > 0
	if t.Program() == "" && t.Verb != VerbSend { // does nothing out there
		openWorld, writable = false, false
	}
	return t.Risk == RiskRead && !writable && !openWorld, t.Risk == RiskDestructive, openWorld
}
