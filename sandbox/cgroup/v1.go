package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// openV1 makes our directories in the hierarchies that have a controller we use, and in the unified one of a hybrid host.
func (t *Tree) openV1(hs []hierarchy, name string) error {
	why := map[string]string{}
	for _, h := range hs {
		used := h.controllers == nil
		for _, c := range []string{"memory", "pids", "cpu", "cpuacct"} {
			used = used || h.controllers[c]
		}
		if !used {
			continue
		}
		r, err := makeRoot(h.own, name, h.controllers)
		if err != nil {
			for c := range h.controllers {
				why[c] = err.Error()
			}
			continue
		}
		if h.controllers == nil {
			t.unified = &r
		} else {
			t.roots = append(t.roots, r)
		}
	}
	have := func(c string) bool {
		for _, r := range t.roots {
			if r.controllers[c] {
				return true
			}
		}
		if why[c] == "" {
			why[c] = "the kernel has no v1 controller " + strconv.Quote(c) + " mounted"
		}
		return false
	}
	for limit, c := range map[string]string{Memory: "memory", Swap: "memory", Pids: "pids", CPU: "cpu", CPUTime: "cpuacct"} {
		if !have(c) {
			t.missing[limit] = why[c]
		}
	}
	for _, r := range t.roots {
		if r.controllers["memory"] {
			if _, err := os.Stat(filepath.Join(r.path, "memory.memsw.limit_in_bytes")); err != nil {
				t.missing[Swap] = "the kernel does not account swap (boot it with swapaccount=1)"
			}
		}
	}
	return nil
}

// limitV1 sets the limits of one v1 directory, and opens its tasks file for the child to enter.
func (m *member) limitV1(t *Tree, l Limits) error {
	var errs []error
	set := func(file string, n int64) { errs = append(errs, m.write(file, strconv.FormatInt(n, 10))) }
	if m.controllers["memory"] {
		set("memory.limit_in_bytes", l.MemoryBytes)
		if t.missing[Swap] == "" {
			// The limit is of memory and swap together, and must not be below that of memory: it is set second.
			set("memory.memsw.limit_in_bytes", l.MemoryBytes+l.SwapBytes)
		}
	}
	if m.controllers["pids"] {
		set("pids.max", l.Pids)
	}
	if m.controllers["cpu"] {
		set("cpu.cfs_period_us", cpuPeriodUS)
		set("cpu.cfs_quota_us", int64(l.CPUs*cpuPeriodUS))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fd, err := unix.Openat(m.fd, "tasks", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", filepath.Join(m.path, "tasks"), err)
	}
	m.tasks = fd
	return nil
}

// cpuPeriodUS is the kernel's default period of CPU bandwidth control, in microseconds.
const cpuPeriodUS = 100_000
