package sandbox

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"toolrun/sandbox/cgroup"
)

// Config of a Host.
type Config struct {
	Forbidden []string // directories of the host that no box may show, whatever its profile says
	Logger    *slog.Logger

	// Of the proxy that serves Profile.Allow.
	Resolve Resolver // nil: the host's /etc/hosts and name servers
	Dial    Dialer   // nil: net.Dialer
}

// Host is what one process needs to make boxes: its place among the cgroups, the namespaces that boxes may use again, and
// the lifeline that ends every box when the process dies.
type Host struct {
	cfg     Config
	tree    *cgroup.Tree
	missing map[string]string // wall → why this host cannot put it up

	landlock  unix.LandlockRulesetAttr
	procMasks []string // dangerous files of /proc that this kernel has
	outer     int      // user namespace in which an unprivileged process makes its boxes; -1: it is privileged
	ownPidNS  int      // to come back after a clone into another pid namespace
	// The init of every box reads from lifeline until its end; only this process holds the other end.
	lifeline [2]int

	system func() *view // what boxes show of the system, planned once
	built  atomic.Bool  // a box has been built

	mu    sync.Mutex
	users map[ids]int // user namespaces that map one uid and gid
	boxes []*Box
	nets  []*network // empty network namespaces, ready for one call
	sweep sync.WaitGroup

	kept     atomic.Int64 // rooms, groups and lanes that boxes keep for their next calls
	mostKept int64

	lingering sync.WaitGroup // rooms whose init takes long to end

	janitor *janitor
}

type ids struct{ uid, gid int }

// Open prepares the host. What it cannot enforce is told by Missing and refused by Box; an error means that no box at all
// can be made here.
func Open(cfg Config) (*Host, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Host{cfg: cfg, missing: map[string]string{}, users: map[ids]int{}, outer: -1, ownPidNS: -1, lifeline: [2]int{-1, -1}, janitor: newJanitor()}
	h.system = sync.OnceValue(func() *view { return planSystem(h.outer >= 0) })
	if err := h.open(); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func (h *Host) open() (err error) {
	if h.outer, err = outerUserNS(); err != nil {
		return err
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("read rlimit.nofile: %w", err)
	}
	h.mostKept = int64(min(keptInAll, files.Cur/keptFiles))
	if h.ownPidNS, err = unix.Open("/proc/self/ns/pid", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return fmt.Errorf("open own pid namespace: %w", err)
	}
	if err := unix.Pipe2(h.lifeline[:], unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("make lifeline: %w", err)
	}
	if h.tree, err = cgroup.Open(); err != nil {
		return fmt.Errorf("find cgroups: %w", err)
	}
	for limit, why := range h.tree.Missing() {
		h.missing[limit] = why
	}
	h.sweep.Go(h.tree.Sweep)
	if h.landlock, err = landlockRuleset(); err != nil {
		h.missing["landlock"] = err.Error()
	}
	if err := seccompAvailable(); err != nil {
		h.missing["seccomp"] = err.Error()
	}
	for _, f := range procMasks {
		if _, err := os.Stat(f); err == nil {
			h.procMasks = append(h.procMasks, f)
		}
	}
	n, err := h.newNetwork()
	if err != nil {
		h.missing["ns.net"] = err.Error()
	} else {
		h.nets = append(h.nets, n)
	}
	return nil
}

// procMasks are files of /proc that tell of the host, or of other calls' keys, to whoever may read them by uid alone.
var procMasks = []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug", "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup", "/proc/sysrq-trigger", "/proc/latency_stats"}

// Close closes the boxes, waits until what ended calls left is gone, and gives back what the host holds. No call may run.
func (h *Host) Close() error {
	h.mu.Lock()
	boxes := h.boxes
	h.mu.Unlock()
	for _, b := range boxes {
		b.Close()
	}
	h.janitor.close()
	h.linger()
	h.sweep.Wait()
	for _, fd := range h.users {
		unix.Close(fd)
	}
	for _, n := range h.nets {
		n.close()
	}
	for _, fd := range []int{h.outer, h.ownPidNS, h.lifeline[0], h.lifeline[1]} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	if h.tree != nil {
		return h.tree.Close()
	}
	return nil
}

// linger gives rooms whose init takes long to end a last while; what then still is there the next start sweeps.
func (h *Host) linger() {
	gone := make(chan struct{})
	go func() {
		h.lingering.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(killGrace):
	}
}

// wait reaps a child of ours.
func wait(pid int) (ws unix.WaitStatus, err error) {
	for {
		if _, err = unix.Wait4(pid, &ws, 0, nil); err != unix.EINTR {
			return ws, err
		}
	}
}
