package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"toolrun/sandbox/cgroup"
	"toolrun/sandbox/internal/proxy"
)

// Box runs the calls of one profile, several at a time, each in a room of its own. What the calls share is made once and
// is read-only: the view, and the user namespace.
type Box struct {
	host      *Host
	profile   Profile
	template  int // mount namespace with the view
	userNS    int // the host's
	view      *view
	building  sync.Mutex
	built     bool
	late      []bind // trees that go to the call's own /tmp
	tasks     int    // v1 hierarchies that a call enters
	rlimits   []rlimit
	root      int     // the template's root directory
	allowed   []allow // Landlock's rules
	seccomp   []unix.SockFilter
	procMasks []string
	enforced  []string
	rules     *proxy.Rules // nil: no proxy

	mu       sync.Mutex
	lanes    []*lane         // not in use
	ready    *room           // made ahead, nil: none
	groups   []*cgroup.Group // renewed, for the next calls
	expiry   *time.Timer     // of ready, groups and lanes
	expiring sync.Mutex
	closed   bool
}

type rlimit struct {
	name     string
	resource int
	value    uint64
}

// MissingError says which walls and limits of a profile this host cannot put up.
type MissingError struct {
	Profile string
	Missing map[string]string // wall → why
}

func (e *MissingError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "this host cannot enforce what tool %q asks:", e.Profile)
	for _, wall := range slices.Sorted(maps.Keys(e.Missing)) {
		fmt.Fprintf(&b, " %s (%s);", wall, e.Missing[wall])
	}
	return b.String() + ` see "toolrun doctor", or declare isolation = "best-effort"`
}

// Box prepares the boxes of a profile. A wall or limit that cannot be put up is a *MissingError, unless the profile is
// best-effort and the wall is none of those that hide the host's files.
func (h *Host) Box(p Profile) (_ *Box, err error) {
	if len(h.missing) > 0 && !p.BestEffort {
		missing := maps.Clone(h.missing)
		if p.HostNetwork {
			delete(missing, "ns.net")
		}
		if len(missing) > 0 {
			// Where no box at all can be made, that is the reason to tell: best-effort would not help.
			root, err := h.newRoot()
			if err != nil {
				return nil, err
			}
			unix.Close(root)
			return nil, &MissingError{p.Name, missing}
		}
	}
	b := &Box{host: h, profile: p, template: -1, root: -1, procMasks: h.procMasks, groups: make([]*cgroup.Group, 0, kept)}
	if p.Allow != nil {
		if p.HostNetwork {
			return nil, fmt.Errorf("tool %q: the host's network, or a list of hosts: not both", p.Name)
		}
		if b.rules, err = proxy.Parse(p.Allow); err != nil {
			return nil, fmt.Errorf("tool %q: %w", p.Name, err)
		}
	}
	defer func() {
		if err != nil {
			b.Close()
		}
	}()
	if b.view, err = planView(h.system(), &b.profile, h.cfg.Forbidden); err != nil {
		return nil, err
	}
	for _, bind := range b.view.binds {
		if bind.late {
			b.late = append(b.late, bind)
		}
	}
	if b.seccomp, err = seccompFilter(p.Ptrace); err != nil {
		return nil, err
	}
	if err := b.planLimits(); err != nil {
		return nil, err
	}
	// What a host refuses it refuses for every box: the first one is built now, so that it is known at the start.
	if h.built.CompareAndSwap(false, true) {
		if err := b.build(); err != nil {
			return nil, err
		}
	}
	h.mu.Lock()
	h.boxes = append(h.boxes, b)
	h.mu.Unlock()
	return b, nil
}

// build makes what the calls of the box share, once, before the first of them. What fails is tried again for the next call:
// descriptors or memory may have been short for a moment.
func (b *Box) build() (err error) {
	b.building.Lock()
	defer b.building.Unlock()
	if b.built {
		return nil
	}
	defer func() {
		if err != nil {
			b.unbuild()
		}
	}()
	h := b.host
	if b.root, err = h.newRoot(); err != nil {
		return err
	}
	if b.template, err = h.newTemplate(b.view, b.root); err != nil {
		return fmt.Errorf("build the view of tool %q: %w", b.profile.Name, err)
	}
	if err = b.planAccess(b.view); err != nil {
		return err
	}
	if b.userNS, err = h.userNS(ids{b.profile.UID, b.profile.GID}); err != nil {
		return err
	}
	b.built = true
	return nil
}

// unbuild gives back what build made.
func (b *Box) unbuild() {
	for _, a := range b.allowed {
		if a.fd != b.root {
			closeFD(&a.fd)
		}
	}
	b.allowed = nil
	closeFD(&b.template)
	closeFD(&b.root)
}

// newRoot makes the file system that a box's root is.
func (h *Host) newRoot() (int, error) {
	fd, err := h.newTmpfs()
	if err != nil {
		err = fmt.Errorf("make a root directory: %w", err)
		if h.outer >= 0 && refusedUserNS(err) { // the namespace was allowed, and nothing in it
			err = errUserNS{err}
		}
		return -1, err
	}
	return fd, nil
}

// planAccess lists what Landlock lets the tool do where: read all that is shown, use the devices, change its private
// places and what is declared writable.
func (b *Box) planAccess(v *view) error {
	b.allowed = []allow{
		{fd: b.root, rights: readRights},
		{fd: -1, path: "/dev", rights: readRights | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
		{fd: -1, path: "/box", rights: ^uint64(0)},
		{fd: -1, path: TempDir, rights: ^uint64(0)},
	}
	for _, bind := range v.binds {
		if !bind.write {
			continue
		}
		fd, err := openResolved(bind.source)
		if err != nil {
			return fmt.Errorf("show %q: %w", bind.source, err)
		}
		a := allow{fd: fd, rights: ^uint64(0)}
		if !bind.dir {
			a.rights = fileRights
		}
		b.allowed = append(b.allowed, a)
	}
	return nil
}

// Close gives back what the box holds. No call may run.
func (b *Box) Close() {
	b.mu.Lock()
	closed := b.closed
	b.closed = true
	b.mu.Unlock()
	if closed {
		return
	}
	b.expire()
	b.host.janitor.settle() // what it may be making for this box just now
	b.unbuild()
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.lanes) > 0 {
		b.popLane().close()
	}
}

// has tells whether a wall or limit can be put up here.
func (b *Box) has(wall string) bool { return b.host.missing[wall] == "" }

// planLimits decides the rlimits, and lists what a call will be under.
func (b *Box) planLimits() error {
	for _, r := range []rlimit{
		{"rlimit.nofile", unix.RLIMIT_NOFILE, uint64(b.profile.Limits.Files)},
		{"rlimit.fsize", unix.RLIMIT_FSIZE, uint64(b.profile.Limits.FileSizeBytes)},
		// Not 0, which keeps files away, but not the program that core_pattern names: it would run on the host, as root, and
		// a crash reporter keeps the environment with its secrets. 1 keeps away both (core(5), fs/coredump.c).
		{"rlimit.core", unix.RLIMIT_CORE, 1},
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(r.resource, &now); err != nil {
			return fmt.Errorf("read %s: %w", r.name, err)
		}
		r.value = min(r.value, now.Max) // a hard limit can only be lowered
		b.rlimits = append(b.rlimits, r)
	}
	for _, l := range []string{cgroup.Memory, cgroup.Swap, cgroup.Pids, cgroup.CPU, cgroup.CPUTime} {
		if b.has(l) {
			b.enforced = append(b.enforced, l)
		}
	}
	b.enforced = append(b.enforced, "rlimit.nofile", "rlimit.fsize", "ns.user", "ns.pid", "ns.mount", "ns.ipc", "ns.uts", "ns.cgroup")
	if !b.profile.HostNetwork && b.has("ns.net") {
		b.enforced = append(b.enforced, "ns.net")
	}
	b.enforced = append(b.enforced, "view")
	for _, w := range []string{"landlock", "seccomp"} {
		if b.has(w) {
			b.enforced = append(b.enforced, w)
		}
	}
	b.enforced = append(b.enforced, "no_new_privs", "caps")
	if !b.terminal() {
		b.enforced = append(b.enforced, "notty")
	}
	if b.proxied() {
		b.enforced = append(b.enforced, "proxy")
	}
	b.tasks = b.host.tree.Tasks()
	return nil
}

func (b *Box) limits() cgroup.Limits {
	l := b.profile.Limits
	return cgroup.Limits{MemoryBytes: l.MemoryBytes, SwapBytes: l.SwapBytes, Pids: l.Pids, CPUs: l.CPUs}
}

// newGroup returns a group for one call: one of an earlier call that is as new, or a new one.
func (b *Box) newGroup() (*cgroup.Group, error) {
	b.mu.Lock()
	if k := len(b.groups); k > 0 {
		g := b.groups[k-1]
		b.groups = b.groups[:k-1]
		b.host.unkeep(1)
		b.mu.Unlock()
		return g, nil
	}
	b.mu.Unlock()
	return b.host.tree.New(b.limits())
}

// giveGroup takes the group of a call back whose processes have ended.
func (b *Box) giveGroup(g *cgroup.Group) {
	if !g.Renew(b.limits()) {
		removeGroup(g, b)
		return
	}
	b.mu.Lock()
	keep := !b.closed && len(b.groups) < cap(b.groups) && b.host.mayKeep()
	if keep {
		b.groups = append(b.groups, g)
		b.touch()
	}
	b.mu.Unlock()
	if !keep {
		removeGroup(g, b)
	}
}

// terminal tells whether calls have a terminal of their own.
func (b *Box) terminal() bool { return b.profile.Terminal != Terminal{} }

// ownNetwork tells whether calls have a network namespace of their own.
func (b *Box) ownNetwork() bool { return !b.profile.HostNetwork && b.has("ns.net") }

// readyFor is how long a room and groups are kept for the next call.
const readyFor = time.Second

// kept is how many of each thing that is used again are kept: groups and lanes of a box, networks of the host. What more
// calls at a time had is given back, so that a busy minute leaves nothing behind.
const kept = 8

// keptInAll is how many rooms, groups and lanes all boxes keep together, a box's only lane aside: with many tools in use
// each box's own would take thousands of descriptors. Where few files may be open it is fewer: one for each keptFiles.
const (
	keptInAll = 32
	keptFiles = 128
)

// mayKeep takes a place of keptInAll; whoever got one owes unkeep.
func (h *Host) mayKeep() bool {
	if h.kept.Add(1) > h.mostKept {
		h.kept.Add(-1)
		return false
	}
	return true
}

func (h *Host) unkeep(n int) { h.kept.Add(int64(-n)) }

// touch puts off the expiry. b.mu is held.
func (b *Box) touch() {
	if b.expiry == nil {
		b.expiry = time.AfterFunc(readyFor, b.expire)
	} else {
		b.expiry.Reset(readyFor)
	}
}

// takeRoom returns the room that was made ahead, or makes one now.
func (b *Box) takeRoom() (r *room, ahead bool, err error) {
	b.mu.Lock()
	if r = b.ready; r != nil {
		b.ready = nil
		b.host.unkeep(1)
	}
	b.mu.Unlock()
	if r != nil {
		return r, true, nil
	}
	r, err = b.newRoom()
	return r, false, err
}

// refill makes a room ahead: calls of one tool often come in rows. One that no call comes for is removed.
func (b *Box) refill() {
	b.mu.Lock()
	full := b.ready != nil || b.closed
	b.mu.Unlock()
	if full || !b.host.mayKeep() {
		return
	}
	r, err := b.newRoom()
	if err != nil {
		b.host.unkeep(1)
		return // the next call makes its own, and reports what is wrong
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ready != nil || b.closed {
		b.host.unkeep(1)
		b.host.janitor.later(r.remove)
		return
	}
	b.ready = r
	b.touch()
}

// expire removes the room that was made ahead, the groups, and the lanes but for one.
func (b *Box) expire() {
	b.expiring.Lock() // Close waits for one that is under way
	defer b.expiring.Unlock()
	b.mu.Lock()
	r, groups := b.ready, b.groups
	b.ready, b.groups = nil, make([]*cgroup.Group, 0, kept)
	b.host.unkeep(len(groups))
	if r != nil {
		b.host.unkeep(1)
	}
	for len(b.lanes) > 1 {
		b.popLane().close()
	}
	b.mu.Unlock()
	if r != nil {
		r.kill()
		if r.reap() {
			groups = append(groups, r.group)
			r.group = nil
			r.close()
		}
	}
	for _, g := range groups {
		removeGroup(g, b)
	}
}

func (b *Box) takeLane() (*lane, error) {
	b.mu.Lock()
	if len(b.lanes) > 0 {
		defer b.mu.Unlock()
		return b.popLane(), nil
	}
	b.mu.Unlock()
	return b.newLane()
}

// popLane takes a lane of those that are kept. b.mu is held.
func (b *Box) popLane() *lane {
	last := len(b.lanes) - 1
	l := b.lanes[last]
	b.lanes = b.lanes[:last]
	if last > 0 {
		b.host.unkeep(1)
	}
	return l
}

func (b *Box) giveLane(l *lane) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := len(b.lanes) == 0
	if b.closed || len(b.lanes) >= kept || !first && !b.host.mayKeep() {
		l.close()
		return
	}
	b.lanes = append(b.lanes, l)
	if !first {
		b.touch()
	}
}
