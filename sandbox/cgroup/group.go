package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Group is the cgroup of one call: a directory in each hierarchy.
type Group struct {
	tree    *Tree
	name    string
	members []member
	dir     int     // of the unified hierarchy, -1: none
	base    figures // what the counters had counted before this call
	last    figures // what they had when Usage read them
	read    bool    // last is of this call
	killed  bool    // by cgroup.kill
}

// member is a group's directory in one hierarchy.
type member struct {
	controllers map[string]bool
	path        string
	fd          int
	tasks       int // open for writing on v1, else -1
	counters    []counter
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

// Kill sends SIGKILL to every process of the group: by cgroup.kill (Linux 5.14) where there is a unified hierarchy, else
// one by one. After cgroup.kill nothing can be cloned into the group any more.
func (g *Group) Kill() error {
	for i := range g.members {
		if m := &g.members[i]; m.fd == g.dir {
			g.killed = true
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
	pids, err := listed(path)
	if err != nil {
		return err
	}
	fds := map[int]int{}
	for _, pid := range pids {
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			fds[pid] = fd
		}
	}
	again, err := listed(path)
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

// listed is what cgroup.procs lists.
func listed(path string) (pids []int, err error) {
	b, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	for f := range bytes.FieldsSeq(b) {
		if pid, err := strconv.Atoi(string(f)); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Pids are the group's processes, as far as they can be told.
func (g *Group) Pids() []int {
	for i := range g.members {
		if pids, err := listed(g.members[i].path); err == nil {
			return pids
		}
	}
	return nil
}

func (m *member) close() {
	for _, fd := range []int{m.fd, m.tasks} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	for _, c := range m.counters {
		if c.fd >= 0 {
			unix.Close(c.fd)
		}
	}
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
		m.close()
	}
	g.members = rest
	return errors.Join(errs...)
}
