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

// Group is the cgroup of one call: a directory in each hierarchy.
type Group struct {
	tree    *Tree
	name    string
	members []member
	dir     int // of the unified hierarchy, -1: none
}

// member is a group's directory in one hierarchy.
type member struct {
	controllers map[string]bool
	path        string
	fd          int
	tasks       int // open for writing on v1, else -1
	counters    []counter
}

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

var sourcesV1 = []source{
	{"cpuacct", "cpuacct.usage", "", 1, toCPU},
	{"cpu", "cpu.stat", "throttled_time", 1, toThrottled},
	{"memory", "memory.max_usage_in_bytes", "", 1, toPeak},
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
	if m.controllers["pids"] {
		files = append(files, "pids.current")
	}
	for _, s := range sources {
		if m.controllers[s.controller] && !slices.Contains(files, s.file) {
			files = append(files, s.file)
		}
	}
	for _, f := range files {
		fd, err := unix.Openat(m.fd, f, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == unix.ENOENT {
			fd = -1
		} else if err != nil {
			return &os.PathError{Op: "open", Path: filepath.Join(m.path, f), Err: err}
		}
		m.counters = append(m.counters, counter{f, fd})
	}
	return nil
}

func (g *Group) enter(r root) (*member, error) {
	if err := unix.Mkdirat(r.fd, g.name, 0o755); err != nil {
		return nil, &os.PathError{Op: "mkdir", Path: filepath.Join(r.path, g.name), Err: err}
	}
	g.members = append(g.members, member{r.controllers, filepath.Join(r.path, g.name), -1, -1, nil})
	m := &g.members[len(g.members)-1]
	fd, err := unix.Openat(r.fd, g.name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: m.path, Err: err}
	}
	m.fd = fd
	return m, nil
}

// Dir is the descriptor for CLONE_INTO_CGROUP, -1 where the host has no unified hierarchy.
func (g *Group) Dir() int { return g.dir }

// Tasks are descriptors into which the new process writes "0" to enter the group, besides Dir.
func (g *Group) Tasks() []int {
	var fds []int
	for _, m := range g.members {
		if m.tasks >= 0 {
			fds = append(fds, m.tasks)
		}
	}
	return fds
}

// write sets one file of the group.
func (m *member) write(file, value string) error {
	fd, err := unix.Openat(m.fd, file, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_, err = unix.Write(fd, []byte(value))
		for err == unix.EINTR { // setting a memory limit waits for reclaim, and gives way to any signal
			_, err = unix.Write(fd, []byte(value))
		}
		unix.Close(fd)
	}
	if err != nil {
		return fmt.Errorf("write %q to %s: %w", value, filepath.Join(m.path, file), err)
	}
	return nil
}

// read returns a counter file, at most 4 KiB; errNoCounter where this kernel has none.
func (m *member) read(file string) ([]byte, error) {
	for _, c := range m.counters {
		if c.file != file {
			continue
		}
		if c.fd < 0 {
			return nil, errNoCounter
		}
		b := make([]byte, 4096)
		n, err := unix.Pread(c.fd, b, 0)
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: filepath.Join(m.path, file), Err: err}
		}
		return b[:n], nil
	}
	return nil, errNoCounter
}

var errNoCounter = errors.New("this kernel has no such counter")

// figure returns the number in a counter file, or the one behind key in a file of "key number" lines.
func (m *member) figure(file, key string) (int64, error) {
	b, err := m.read(file)
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
	return Usage{time.Duration(f.cpu), time.Duration(f.throttled), f.peak, f.kills, f.pids, f.hits}, errors.Join(errs...)
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

// Kill sends SIGKILL to every process of the group: by cgroup.kill (Linux 5.14) where there is a unified hierarchy, else
// one by one. After cgroup.kill nothing can be cloned into the group any more.
func (g *Group) Kill() error {
	for i := range g.members {
		if m := &g.members[i]; m.fd == g.dir {
			err := m.write("cgroup.kill", "1")
			if err == nil || !errors.Is(err, unix.ENOENT) {
				return err
			}
		}
	}
	var errs []error
	for i := range g.members {
		errs = append(errs, killAll(g.members[i].path))
	}
	return errors.Join(errs...)
}

// killAll kills what cgroup.procs lists. A pid is held by a pidfd and looked up again before the signal, so that a pid
// that was reused meanwhile is not hit.
func killAll(path string) error {
	list := func() ([]int, error) {
		b, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		if err != nil {
			return nil, err
		}
		var pids []int
		for f := range bytes.FieldsSeq(b) {
			if pid, err := strconv.Atoi(string(f)); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return pids, nil
	}
	pids, err := list()
	if err != nil {
		return err
	}
	fds := map[int]int{}
	for _, pid := range pids {
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			fds[pid] = fd
		}
	}
	again, err := list()
	for _, pid := range again {
		if fd, ok := fds[pid]; ok {
			unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
	}
	for _, fd := range fds {
		unix.Close(fd)
	}
	return err
}

// Remove deletes the group. Its processes must have ended; EBUSY means that they have not.
func (g *Group) Remove() error {
	var errs []error
	rest := g.members[:0]
	for _, m := range g.members {
		if err := unix.Rmdir(m.path); err != nil && err != unix.ENOENT {
			errs = append(errs, &os.PathError{Op: "rmdir", Path: m.path, Err: err})
			rest = append(rest, m)
			continue
		}
		if m.fd >= 0 {
			unix.Close(m.fd)
		}
		if m.tasks >= 0 {
			unix.Close(m.tasks)
		}
		for _, c := range m.counters {
			if c.fd >= 0 {
				unix.Close(c.fd)
			}
		}
	}
	g.members = rest
	return errors.Join(errs...)
}
