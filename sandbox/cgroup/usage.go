package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/containerd/cgroups/v3"
	"golang.org/x/sys/unix"
)

// counter is a file that is read at the end of a call, opened ahead: reading is then one system call. fd is -1 where this
// kernel has no such file (memory.peak came with Linux 5.19).
type counter struct {
	file string
	fd   int
}

// source says where a figure of Usage is read: the number in file, or the one behind key in it.
type source struct {
	controller string
	file, key  string
	unit       int64 // the kernel's, in ours
	to         func(*figures) *int64
}

// figures are Usage's numbers as they are counted: times in nanoseconds.
type figures struct{ cpu, throttled, peak, kills, pids, hits int64 }

var (
	toCPU       = func(f *figures) *int64 { return &f.cpu }
	toThrottled = func(f *figures) *int64 { return &f.throttled }
	toPeak      = func(f *figures) *int64 { return &f.peak }
	toKills     = func(f *figures) *int64 { return &f.kills }
	toPids      = func(f *figures) *int64 { return &f.pids }
	toHits      = func(f *figures) *int64 { return &f.hits }
)

// peakFile of v1 can be set back by a write.
const peakFile = "memory.max_usage_in_bytes"

var sourcesV1 = []source{
	{"cpuacct", "cpuacct.usage", "", 1, toCPU},
	{"cpu", "cpu.stat", "throttled_time", 1, toThrottled},
	{"memory", peakFile, "", 1, toPeak},
	{"memory", "memory.oom_control", "oom_kill", 1, toKills},
	{"pids", "pids.peak", "", 1, toPids},
	{"pids", "pids.events", "max", 1, toHits},
}

var sourcesV2 = []source{
	{"cpu", "cpu.stat", "usage_usec", 1000, toCPU},
	{"cpu", "cpu.stat", "throttled_usec", 1000, toThrottled},
	{"memory", "memory.peak", "", 1, toPeak},
	{"memory", "memory.events", "oom_kill", 1, toKills},
	{"pids", "pids.peak", "", 1, toPids},
	{"pids", "pids.events", "max", 1, toHits},
}

func (t *Tree) sources() []source {
	if t != nil && t.mode == cgroups.Unified {
		return sourcesV2
	}
	return sourcesV1
}

// watch opens the counters.
func (m *member) watch(sources []source) error {
	files := []string{}
	for c, f := range map[string]string{"pids": "pids.current", "memory": "memory.usage_in_bytes"} {
		if m.controllers[c] {
			files = append(files, f)
		}
	}
	for _, s := range sources {
		if m.controllers[s.controller] && !slices.Contains(files, s.file) {
			files = append(files, s.file)
		}
	}
	for _, f := range files {
		mode := unix.O_RDONLY
		if f == peakFile {
			mode = unix.O_RDWR // Renew sets it back
		}
		fd, err := unix.Openat(m.fd, f, mode|unix.O_CLOEXEC, 0)
		if err == unix.ENOENT {
			fd = -1
		} else if err != nil {
			return &os.PathError{Op: "open", Path: filepath.Join(m.path, f), Err: err}
		}
		m.counters = append(m.counters, counter{f, fd})
	}
	return nil
}

// read reads a counter file into buf; errNoCounter where this kernel has none.
func (m *member) read(file string, buf []byte) ([]byte, error) {
	for _, c := range m.counters {
		if c.file != file {
			continue
		}
		if c.fd < 0 {
			return nil, errNoCounter
		}
		n, err := unix.Pread(c.fd, buf, 0)
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: filepath.Join(m.path, file), Err: err}
		}
		return buf[:n], nil
	}
	return nil, errNoCounter
}

var errNoCounter = errors.New("this kernel has no such counter")

// figure returns the number in a counter file, or the one behind key in a file of "key number" lines.
func (m *member) figure(file, key string) (int64, error) {
	var buf [1024]byte
	b, err := m.read(file, buf[:])
	if err != nil {
		return 0, err
	}
	number := string(bytes.TrimSpace(b))
	if key != "" {
		number = ""
		for line := range bytes.Lines(b) {
			if f := bytes.Fields(line); len(f) == 2 && string(f[0]) == key {
				number = string(f[1])
			}
		}
		if number == "" {
			return 0, errNoCounter
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", filepath.Join(m.path, file), err)
	}
	return n, nil
}

// Usage reads the group's counters; what this kernel does not count is Unknown. It must be called before Remove.
func (g *Group) Usage() (Usage, error) {
	f, err := g.figures()
	g.last, g.read = f, err == nil
	for _, s := range g.tree.sources() {
		if n := s.to(&f); *n != Unknown {
			*n -= *s.to(&g.base)
		}
	}
	return Usage{time.Duration(f.cpu), time.Duration(f.throttled), f.peak, f.kills, f.pids, f.hits}, err
}

func (g *Group) figures() (figures, error) {
	f := figures{Unknown, Unknown, Unknown, Unknown, Unknown, Unknown}
	var errs []error
	for i := range g.members {
		m := &g.members[i]
		for _, s := range g.tree.sources() {
			if !m.controllers[s.controller] {
				continue
			}
			n, err := m.figure(s.file, s.key)
			if err == nil {
				*s.to(&f) = n * s.unit
			} else if err != errNoCounter {
				errs = append(errs, err)
			}
		}
	}
	return f, errors.Join(errs...)
}

// leftCharge is how much memory the last call may leave charged to a group that is used again: it counts in the next
// call's peak.
const leftCharge = 512 << 10

// Renew makes an empty group as new, for another call with the same limits; false means that it is to be removed. Making
// and removing the directories of v1 costs a third of a short call; on v2 there is only one, and its peak cannot be reset.
func (g *Group) Renew(l Limits) bool {
	if g.tree.mode == cgroups.Unified || g.killed {
		return false
	}
	for i := range g.members {
		m := &g.members[i]
		switch {
		case m.controllers["pids"]: // pids.peak cannot be reset
			if !g.replace(m, l) {
				return false
			}
		case m.controllers["memory"]:
			if left, err := m.figure("memory.usage_in_bytes", ""); err != nil || left > leftCharge {
				return false
			}
			for _, c := range m.counters {
				if c.file == peakFile {
					if _, err := unix.Pwrite(c.fd, []byte("0"), 0); err != nil {
						return false
					}
				}
			}
		}
	}
	if !g.read {
		var err error
		if g.last, err = g.figures(); err != nil {
			return false
		}
	}
	g.base, g.read = figures{}, false
	for _, s := range g.tree.sources() {
		if n := *s.to(&g.last); n != Unknown && s.controller != "pids" && s.file != peakFile {
			*s.to(&g.base) = n
		}
	}
	return true
}

// replace puts a new directory in the place of a member's.
func (g *Group) replace(m *member, l Limits) bool {
	path, controllers := m.path, m.controllers
	if unix.Rmdir(path) != nil {
		return false
	}
	m.close()
	*m = member{controllers, path, -1, -1, nil}
	if unix.Mkdir(path, 0o755) != nil {
		return false
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	m.fd = fd
	return err == nil && m.limitV1(g.tree, l) == nil && m.watch(g.tree.sources()) == nil
}

// CPU is the time that all processes of the group have used so far.
func (g *Group) CPU() (time.Duration, error) {
	u, err := g.Usage()
	if err == nil && u.CPU == Unknown {
		err = errNoCounter
	}
	return u.CPU, err
}

// Processes is how many processes and threads are in the group now; ok is false where no pids controller counts them.
func (g *Group) Processes() (n int64, ok bool) {
	for i := range g.members {
		if m := &g.members[i]; m.controllers["pids"] {
			n, err := m.figure("pids.current", "")
			return n, err == nil
		}
	}
	return 0, false
}
