// Package sandbox runs one process tree in a box: a Profile says what all calls of one tool share, a Command is one call,
// a Result is how it ended. It knows no tools and no JSON, and can be used alone.
//
// What is promised: a limit or a wall that a profile asks for is in force, or nothing runs; when Run has returned, every
// process of the call is dead. What is not: see THREATS.md.
package sandbox

import (
	"io"
	"syscall"
	"time"
)

// Places inside every box that are private to one call and gone after it.
const (
	HomeDir = "/box/home" // $HOME, empty at the start
	TempDir = "/tmp"      // $TMPDIR, empty at the start
)

// Mount shows one file or directory of the host inside the box. Paths are absolute.
type Mount struct {
	Source string // on the host, symlinks are resolved once when the Box is made
	Target string // in the box
	Write  bool
}

// Limits of one call. All are positive, except that SwapBytes may be 0.
type Limits struct {
	MemoryBytes      int64
	SwapBytes        int64
	Pids             int64         // processes and threads
	CPUs             float64       // cores
	CPUTime          time.Duration // of the whole tree
	Files            int64         // RLIMIT_NOFILE
	FileSizeBytes    int64         // RLIMIT_FSIZE
	OutputTotalBytes int64         // stdout and stderr together; over it the call ends as OutputLimit
}

// Profile is what all calls of one declaration share. A Box is never shared between different profiles.
type Profile struct {
	Name        string // in messages only
	Mounts      []Mount
	Protect     []string // paths in the box that stay read-only although a mount above them is writable; those that do not exist are passed over
	Hide        []string // paths in the box that read as empty
	HostNetwork bool     // false: an own network namespace with loopback only
	Allow       []string // hosts that are reached by a proxy in that namespace, as proxy.Parse reads them; nil: none
	Ptrace      bool     // true: processes of the call may trace each other
	Terminal    Terminal // size of the pseudoterminal that the program has for stdin, stdout and stderr; zero: pipes
	Limits      Limits
	UID, GID    int  // who the tool is, inside and outside
	BestEffort  bool // true: run with the walls that this host has; Result.Enforced says which
}

// Command is one call.
type Command struct {
	Argv    []string
	Exe     string        // path in the box of the program to execute
	Env     []string      // the whole environment, KEY=VALUE
	Dir     string        // working directory in the box
	Stdin   []byte        // nil, and no Input: /dev/null, or a terminal at which nobody types
	Input   *Input        // instead of Stdin: what is written to it while the program runs
	Stdout  io.Writer     // receives the bytes as they come; an error from it ends the call as CaptureFailed
	Stderr  io.Writer     // nil: stderr goes to Stdout, as it does at a terminal
	Timeout time.Duration // of the wall clock, from the start of the program; 0: none
	Started func()        // called once the program runs, before its first byte is read; nil: nobody is told
}

// Outcome says how a call ended.
type Outcome int

const (
	Exited        Outcome = iota // by itself: ExitCode is set
	Signaled                     // by a signal that toolrun did not send: Signal is set
	TimedOut                     // killed at Command.Timeout
	Cancelled                    // killed because the context ended; context.Cause tells why
	OutOfMemory                  // the kernel killed the main process, or all, at Limits.MemoryBytes
	CPULimit                     // killed at Limits.CPUTime
	OutputLimit                  // killed at Limits.OutputTotalBytes
	CaptureFailed                // killed because a writer failed: Err is its error
	SpawnFailed                  // the program could not be executed: Err names path and cause, nothing of it ran
	Unavailable                  // a wall or limit could not be put up: Err names it, nothing ran
)

// Usage is what the whole process tree of a call used. What was not measured is negative, as in Unmeasured.
type Usage struct {
	CPU             time.Duration // user and system
	Throttled       time.Duration // runnable but over Limits.CPUs
	MemoryPeakBytes int64
	OOMKills        int64 // processes of the call that the kernel killed for memory
	PidsPeak        int64 // processes and threads at a time
	PidsRefused     int64 // forks that failed at Limits.Pids
}

// Unmeasured is the usage of a call that did not run, or whose counters the host does not have.
var Unmeasured = Usage{-1, -1, -1, -1, -1, -1}

// Result is how a call ended and what it used.
type Result struct {
	Outcome  Outcome
	ExitCode int            // when the program exited by itself, also when Outcome is CPULimit, …: see Exited field
	HasExit  bool           // ExitCode is valid: the program exited by itself
	Signal   syscall.Signal // when a signal ended the program, whoever sent it; else 0
	Err      error

	Started  time.Time     // wall clock and monotonic, just before the program was started
	Duration time.Duration // until the program's end, or the failure

	Usage
	Enforced []string // the walls and limits that were in force, by the names of the ledger's key
	Leftover []int    // host pids that the kernel could not kill

	Connections        []Connection // that were asked of the proxy, in this order; nil: the call had none
	ConnectionsOmitted int          // further ones
}

// Connection is one connection that a call asked the proxy for.
type Connection struct {
	Host     string // the name or address as the call gave it: any valid UTF-8, at most 255 bytes
	Port     int    // 0: what the call gave is no port
	Sent     int64  // bytes to the host
	Received int64  // bytes from the host
	Allowed  bool   // Profile.Allow admits it
	Why      string // why it was refused, or what failed; "": it came about
}
