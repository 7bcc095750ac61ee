package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// v2Controllers are those that limits need.
var v2Controllers = []string{"memory", "pids", "cpu"}

// openV2 makes our directory in the unified hierarchy: below toolrun's own cgroup where that is ours to divide, on a systemd
// host in a scope that it gives us, else, for root, in the hierarchy's root.
func (t *Tree) openV2(hs []hierarchy, name string) error {
	own := unifiedDir(hs)
	if own == "" {
		return fmt.Errorf("find the unified hierarchy: /proc/self/cgroup names no directory of it")
	}
	var err error
	if systemdRuns() && !delegated(own) {
		if err = enterScope(name); err == nil {
			if hs, err = hierarchies(); err == nil {
				err = t.below(unifiedDir(hs), name)
			}
		}
	} else {
		err = t.below(own, name)
		if err != nil && own != unifiedRoot && os.Geteuid() == 0 {
			err = t.below(unifiedRoot, name)
		}
	}
	if err != nil {
		for _, l := range []string{Memory, Swap, Pids, CPU, CPUTime} {
			t.missing[l] = err.Error()
		}
	}
	return nil
}

func unifiedDir(hs []hierarchy) string {
	for _, h := range hs {
		if h.controllers == nil {
			return h.own
		}
	}
	return ""
}

const unifiedRoot = "/sys/fs/cgroup"

// supervisors is the leaf into which the processes of a delegated cgroup move: one with controllers for its children may
// have no process itself ("no internal processes"). Several toolrun processes in one cgroup share it.
const supervisors = "toolrun.supervisors"

// below makes our directory below parent, with the controllers on.
func (t *Tree) below(parent, name string) error {
	// A later toolrun of the same scope finds itself in the leaf that the first one made.
	if filepath.Base(parent) == supervisors {
		parent = filepath.Dir(parent)
	}
	if err := enable(parent); errors.Is(err, unix.EBUSY) && parent != unifiedRoot {
		if err := vacate(parent); err != nil {
			return err
		}
		if err := enable(parent); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	r, err := makeRoot(parent, name, map[string]bool{"memory": true, "pids": true, "cpu": true, "cpuacct": true})
	if err != nil {
		return err
	}
	t.roots, t.unified = []root{r}, &r
	if err := enable(r.path); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(r.path, "memory.swap.max")); err != nil {
		t.missing[Swap] = "the kernel does not account swap (boot it with swapaccount=1)"
	}
	return nil
}

// vacate moves every process of a cgroup into a leaf below it. A process that is born meanwhile is moved in a later round.
func vacate(dir string) error {
	leaf := filepath.Join(dir, supervisors)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for range 100 {
		b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			return err
		}
		if len(b) == 0 {
			return nil
		}
		for pid := range bytes.FieldsSeq(b) {
			err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), pid, 0)
			if err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("move process %s to %s: %w", pid, leaf, err)
			}
		}
	}
	return fmt.Errorf("%s does not get empty of processes", dir)
}

// enable makes the controllers available to the children of a cgroup.
func enable(dir string) error {
	file := filepath.Join(dir, "cgroup.subtree_control")
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	on := map[string]bool{}
	for f := range bytes.FieldsSeq(b) {
		on[string(f)] = true
	}
	var add []string
	for _, c := range v2Controllers {
		if !on[c] {
			add = append(add, "+"+c)
		}
	}
	if len(add) == 0 {
		return nil
	}
	if err := os.WriteFile(file, []byte(strings.Join(add, " ")), 0); err != nil {
		return fmt.Errorf("enable controllers: %w", err)
	}
	return nil
}

// limitV2 sets the limits of the group.
func (m *member) limitV2(t *Tree, l Limits) error {
	if t.missing[Memory] != "" {
		return nil
	}
	errs := []error{
		m.write("memory.max", strconv.FormatInt(l.MemoryBytes, 10)),
		m.write("pids.max", strconv.FormatInt(l.Pids, 10)),
		m.write("cpu.max", fmt.Sprintf("%d %d", int64(l.CPUs*cpuPeriodUS), cpuPeriodUS)),
	}
	if t.missing[Swap] == "" {
		errs = append(errs, m.write("memory.swap.max", strconv.FormatInt(l.SwapBytes, 10)))
	}
	return errors.Join(errs...)
}
