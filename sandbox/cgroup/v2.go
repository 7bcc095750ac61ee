package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// v2Controllers are those that limits need.
var v2Controllers = []string{"memory", "pids", "cpu"}

// openV2 makes our directory in the unified hierarchy: below toolrun's own cgroup where that may have children with
// controllers, which it may not while it has processes of its own ("no internal processes"), else, for root, in the
// hierarchy's root.
func (t *Tree) openV2(hs []hierarchy, name string) error {
	var own string
	for _, h := range hs {
		if h.controllers == nil {
			own = h.own
		}
	}
	if own == "" {
		return fmt.Errorf("find the unified hierarchy: /proc/self/cgroup names no directory of it")
	}
	var err error
	for _, parent := range []string{own, "/sys/fs/cgroup"} {
		if err = enable(parent); err != nil {
			continue
		}
		var r root
		if r, err = makeRoot(parent, name, map[string]bool{"memory": true, "pids": true, "cpu": true, "cpuacct": true}); err != nil {
			continue
		}
		t.roots, t.unified = []root{r}, &r
		if err = enable(r.path); err != nil {
			return err
		}
		if _, e := os.Stat(filepath.Join(parent, "memory.swap.max")); e != nil {
			if _, e := os.Stat(filepath.Join(r.path, "memory.swap.max")); e != nil {
				t.missing[Swap] = "the kernel does not account swap (boot it with swapaccount=1)"
			}
		}
		return nil
	}
	for _, l := range []string{Memory, Swap, Pids, CPU, CPUTime} {
		t.missing[l] = err.Error()
	}
	return nil
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
