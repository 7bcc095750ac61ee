// Package cgroup puts each call into a control group of its own, on cgroup v1, v2 and hybrid hosts alike.
//
// A Tree is one directory of ours below toolrun's own cgroup in every hierarchy that is used; a Group is a directory below
// that in each of them. The Tree's directories are held by flock, so that a later process can tell the remains of a dead
// one from the groups of a living one, whatever pid namespace it sees.
//
// Sources: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/{memory,pids,cpusets,cpuacct}.rst of the kernel.
package cgroup

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/containerd/cgroups/v3"
	"golang.org/x/sys/unix"
)

// Names of the limits, as the ledger's key "enforced" has them.
const (
	Memory  = "cgroup.memory"
	Swap    = "cgroup.swap"
	Pids    = "cgroup.pids"
	CPU     = "cgroup.cpu"
	CPUTime = "cpu_time"
)

// Limits of one group.
type Limits struct {
	MemoryBytes int64
	SwapBytes   int64
	Pids        int64   // processes and threads
	CPUs        float64 // cores
}

// Usage of a group, over all processes that were ever in it. What the kernel does not count is Unknown.
type Usage struct {
	CPU             time.Duration
	Throttled       time.Duration // runnable but over the CPU limit
	MemoryPeakBytes int64
	OOMKills        int64
	PidsPeak        int64 // processes and threads
	PidsRefused     int64 // forks
}

// Unknown is a counter that this kernel does not have.
const Unknown = -1

// prefix of the directories that are ours.
const prefix = "toolrun-"

// Tree is toolrun's place in the cgroup hierarchies.
type Tree struct {
	mode    cgroups.CGMode
	roots   []root            // of limits and counters
	unified *root             // of cgroup.kill and clone-into-cgroup; on v2 it is also roots[0]
	missing map[string]string // limit → why it cannot be had
	n       atomic.Int64      // groups made
}

// root is our directory in one hierarchy, held by flock.
type root struct {
	controllers map[string]bool
	path        string
	fd          int
}

// Mode is v1, hybrid, v2 or none.
func (t *Tree) Mode() string {
	switch t.mode {
	case cgroups.Legacy:
		return "v1"
	case cgroups.Hybrid:
		return "hybrid"
	case cgroups.Unified:
		return "v2"
	}
	return "none"
}

// Missing tells for each limit that this host cannot enforce why.
func (t *Tree) Missing() map[string]string { return t.missing }

// Open finds toolrun's own cgroups and makes a directory below each. What cannot be had is in Missing; an error is only
// what leaves no Tree at all.
func Open() (*Tree, error) {
	t := &Tree{mode: cgroups.Mode(), missing: map[string]string{}}
	if t.mode == cgroups.Unavailable {
		for _, l := range []string{Memory, Swap, Pids, CPU, CPUTime} {
			t.missing[l] = "no cgroup file system at /sys/fs/cgroup"
		}
		return t, nil
	}
	hs, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var id [8]byte
	rand.Read(id[:])
	name := prefix + hex.EncodeToString(id[:])
	if t.mode == cgroups.Unified {
		err = t.openV2(hs, name)
	} else {
		err = t.openV1(hs, name)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// makeRoot makes and locks our directory below parent. Between the two a sweep of another process may take it for a dead
// one's and remove it; then it is made again.
func makeRoot(parent, name string, controllers map[string]bool) (r root, err error) {
	for range 1000 {
		if r, err = tryRoot(parent, name, controllers); err != unix.ENOENT && err != unix.EWOULDBLOCK {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		return root{}, &os.PathError{Op: "make cgroup", Path: filepath.Join(parent, name), Err: err}
	}
	return r, nil
}

// same tells whether the path still leads to the directory that fd is. Names are used again when a directory is made anew, so
// a lock says something about the path only if this holds while it is held.
func same(fd int, path string) bool {
	var a, b unix.Stat_t
	return unix.Fstat(fd, &a) == nil && unix.Stat(path, &b) == nil && a.Dev == b.Dev && a.Ino == b.Ino
}

func tryRoot(parent, name string, controllers map[string]bool) (root, error) {
	path := filepath.Join(parent, name)
	if err := unix.Mkdir(path, 0o755); err != nil && err != unix.EEXIST {
		return root{}, err
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return root{}, err
	}
	err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if err == nil && !same(fd, path) {
		err = unix.ENOENT // it was removed, and perhaps made anew, before the lock was ours
	}
	if err != nil {
		unix.Close(fd)
		return root{}, err
	}
	return root{controllers, path, fd}, nil
}

// New makes a group with the limits in force; limits that are Missing are left out.
func (t *Tree) New(l Limits) (_ *Group, err error) {
	if t.mode == cgroups.Unavailable {
		return &Group{dir: -1}, nil
	}
	g := &Group{tree: t, name: fmt.Sprintf("c%d", t.n.Add(1)), dir: -1}
	defer func() {
		if err != nil {
			g.Remove()
		}
	}()
	for _, r := range t.roots {
		m, err := g.enter(r)
		if err != nil {
			return nil, err
		}
		if t.mode == cgroups.Unified {
			err = m.limitV2(t, l)
		} else {
			err = m.limitV1(t, l)
		}
		if err == nil {
			err = m.watch(t.sources())
		}
		if err != nil {
			return nil, err
		}
	}
	if t.unified != nil {
		if t.mode == cgroups.Unified {
			g.dir = g.members[0].fd
		} else {
			m, err := g.enter(*t.unified)
			if err != nil {
				return nil, err
			}
			g.dir = m.fd
		}
	}
	return g, nil
}

// Tasks is how many descriptors Group.Tasks gives.
func (t *Tree) Tasks() int {
	if t.mode == cgroups.Unified {
		return 0
	}
	return len(t.roots)
}

// Close removes what is ours. All groups must have been removed before.
func (t *Tree) Close() error {
	var errs []error
	rs := t.roots
	if t.unified != nil && t.mode != cgroups.Unified {
		rs = append(rs, *t.unified)
	}
	for _, r := range rs {
		if err := unix.Rmdir(r.path); err != nil && err != unix.ENOENT {
			errs = append(errs, &os.PathError{Op: "rmdir", Path: r.path, Err: err})
		}
		unix.Close(r.fd)
	}
	t.roots, t.unified = nil, nil
	return errors.Join(errs...)
}
