package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// soakCalls is how many calls in a row the soak test makes: a thousand, or TOOLRUN_SOAK_CALLS.
func soakCalls(t *testing.T) int {
	n := 1000
	if v := os.Getenv("TOOLRUN_SOAK_CALLS"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil || n < 1000 {
			t.Fatalf("TOOLRUN_SOAK_CALLS=%s: a number from 1000 on", v)
		}
	}
	return n
}

// footprint is what a server holds of the host.
type footprint struct{ rssKiB, descriptors, threads, groups, mounts int }

func footprintOf(t *testing.T, pid int) (f footprint) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		switch fields[0] {
		case "VmRSS:":
			f.rssKiB, _ = strconv.Atoi(fields[1])
		case "Threads:":
			f.threads, _ = strconv.Atoi(fields[1])
		}
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	f.descriptors = len(open)
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		t.Fatal(err)
	}
	f.mounts = strings.Count(string(mounts), "\n")
	for _, fd := range open { // the trees of groups that it holds open
		tree, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name()))
		if err != nil || !strings.HasPrefix(filepath.Base(tree), "toolrun-") {
			continue
		}
		groups, err := filepath.Glob(filepath.Join(tree, "*", "cgroup.procs"))
		if err != nil {
			t.Fatal(err)
		}
		f.groups += len(groups)
	}
	return f
}

// idle is the footprint when what is kept ready for the next call has been given back: the least of three seconds.
func idle(t *testing.T, pid int) footprint {
	least := footprintOf(t, pid)
	within(3*time.Second, func() bool {
		now := footprintOf(t, pid)
		least = footprint{min(least.rssKiB, now.rssKiB), min(least.descriptors, now.descriptors), min(least.threads, now.threads), min(least.groups, now.groups), now.mounts}
		return false
	})
	return least
}

// pace makes n calls of each server in turn, with a bare exec of the same program, and returns the medians: of the bare exec
// first. A busy machine is so for all of them alike.
func pace(t *testing.T, n int, servers ...*server) (medians []time.Duration) {
	t.Helper()
	times := make([][]time.Duration, 1+len(servers))
	for range n {
		began := time.Now()
		if err := exec.Command("true").Run(); err != nil {
			t.Fatal(err)
		}
		times[0] = append(times[0], time.Since(began))
		for i, s := range servers {
			began = time.Now()
			if f := s.call("true", object{}); f.Status != "success" {
				t.Fatalf("call: %+v", f)
			}
			times[1+i] = append(times[1+i], time.Since(began))
		}
	}
	for _, all := range times {
		slices.Sort(all)
		medians = append(medians, all[n/2])
	}
	return medians
}

// TestManyCallsInARowLeaveTheServerAsItWas is not parallel: others would be part of what it measures.
func TestManyCallsInARowLeaveTheServerAsItWas(t *testing.T) {
	n := soakCalls(t)
	window := min(n/5, 1000)
	const catalog = "[tools.true]\ndescription = \"Does nothing.\"\ncommand = [\"true\"]\nrisk = \"READ\"\n"
	s := newPlace(t, catalog).serve()
	pid := s.cmd.Process.Pid
	row := func(s *server, n int) {
		for range n {
			if f := s.call("true", object{}); f.Status != "success" {
				t.Fatalf("call: %+v", f)
			}
		}
	}
	row(s, window) // warm: what calls in a row need is made and kept
	first := pace(t, window, s)
	if footprintOf(t, pid).groups == 0 {
		t.Error("no control group is seen right after a call: what is measured is not what there is")
	}
	before := idle(t, pid)
	row(s, n-3*window)
	fresh := newPlace(t, catalog).serve() // it is now what the other was then
	row(fresh, window)
	last := pace(t, window, s, fresh)
	fresh.stop()
	after := idle(t, pid)
	slower := float64(last[1]) / float64(last[2])
	t.Logf("%d calls: %+v, then %+v; bare exec and call took %v, at the end %v, where a fresh server's call took %v: %.2f of that", n, before, after, first, last[:2], last[2], slower)

	if after.rssKiB > before.rssKiB+before.rssKiB/4+8<<10 {
		t.Errorf("memory grew from %d to %d KiB", before.rssKiB, after.rssKiB)
	}
	// What the box keeps for the next calls may not have been used up to its bound when the server was warm: some 8 pipes
	// and 8 network namespaces, two descriptors each.
	if after.descriptors > before.descriptors+32 {
		t.Errorf("descriptors grew from %d to %d", before.descriptors, after.descriptors)
	}
	if after.groups > before.groups+8 {
		t.Errorf("control groups grew from %d to %d", before.groups, after.groups)
	}
	if after.mounts > before.mounts {
		t.Errorf("mounts grew from %d to %d", before.mounts, after.mounts)
	}
	if after.threads > before.threads+16 {
		t.Errorf("threads grew from %d to %d", before.threads, after.threads)
	}
	// The soak proper holds the limit of 1.2; a short run on a busy machine only finds what grows with each call.
	limit := 1.2
	if n < 20000 {
		limit = 1.5
	}
	if slower > limit {
		t.Errorf("the last %d calls took %.2f times as long as the first of a fresh server; limit %.1f", window, slower, limit)
	}
}
