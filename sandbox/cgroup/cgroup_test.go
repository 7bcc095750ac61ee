package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func testTree(t testing.TB) *Tree {
	t.Helper()
	tree, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	if missing := tree.Missing(); len(missing) > 0 && os.Getenv("TOOLRUN_REQUIRE_SANDBOX") == "1" {
		t.Fatal(missing)
	} else if len(missing) > 0 {
		t.Skip(missing)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
	return tree
}

func TestAGroupHasItsLimits(t *testing.T) {
	tree := testTree(t)
	for _, mib := range []int64{64, 128, 64} {
		g, err := tree.New(Limits{MemoryBytes: mib << 20, Pids: 20, CPUs: 0.5})
		if err != nil {
			t.Fatal(err)
		}
		var memory, pids int64
		read := func(m *member, file string, to *int64) {
			b, err := os.ReadFile(filepath.Join(m.path, file))
			if err == nil {
				*to, err = strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
			}
			if err != nil {
				t.Error(err)
			}
		}
		for i := range g.members {
			m := &g.members[i]
			if m.controllers["memory"] {
				file := "memory.limit_in_bytes"
				if tree.Mode() == "v2" {
					file = "memory.max"
				}
				read(m, file, &memory)
			}
			if m.controllers["pids"] {
				read(m, "pids.max", &pids)
			}
		}
		if memory != mib<<20 || pids != 20 {
			t.Errorf("memory %d, pids %d", memory, pids)
		}
		if u, err := g.Usage(); err != nil || u.CPU == Unknown || u.OOMKills != 0 || u.PidsRefused != 0 {
			t.Errorf("usage %+v, %v", u, err)
		}
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	}
}

// On v2 a cgroup with controllers for its children may hold no process: the delegated cgroup's own move into a leaf beside
// the groups of calls, and a second toolrun there finds its way back.
func TestOnV2TheSupervisorsStandBesideTheirGroups(t *testing.T) {
	tree := testTree(t)
	if tree.Mode() != "v2" {
		t.Skip("not v2") // the kernel of this host was started so
	}
	second := testTree(t)
	hs, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	own := unifiedDir(hs)
	for _, tr := range []*Tree{tree, second} {
		if parent := filepath.Dir(tr.roots[0].path); parent != unifiedRoot && filepath.Join(parent, supervisors) != own {
			t.Errorf("this process is in %s, its groups are below %s", own, tr.roots[0].path)
		}
	}
	g, err := second.New(Limits{MemoryBytes: 64 << 20, Pids: 20, CPUs: 1})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(second.roots[0].path, g.name, "memory.max"))
	if err != nil || string(b) != "67108864\n" {
		t.Errorf("memory.max %q, %v", b, err)
	}
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
}

func TestALimitThatCannotBeSetIsAnError(t *testing.T) {
	tree := testTree(t)
	if g, err := tree.New(Limits{MemoryBytes: 64 << 20, Pids: -5, CPUs: 1}); err == nil {
		g.Remove()
		t.Error("a group without its limit")
	}
}

// Sweeps of processes that start together must not take each other's directories.
func TestTreesThatStartTogetherDoNotSweepEachOther(t *testing.T) {
	testTree(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				tree, err := Open()
				if err != nil {
					t.Error(err)
					return
				}
				if len(tree.Missing()) > 0 {
					t.Error(tree.Missing())
				}
				tree.Sweep()
				g, err := tree.New(Limits{MemoryBytes: 64 << 20, Pids: 20, CPUs: 1})
				if err != nil {
					t.Error(err)
				} else if err := g.Remove(); err != nil {
					t.Error(err)
				}
				if err := tree.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestHierarchiesAreFoundByTheirMounts(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"/memory/a/b", "/cpu", "/unified/x", "/odd name/job"} {
		if err := os.MkdirAll(dir+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	own := "5:memory:/a/b\n4:cpu,cpuacct:/\n3:pids:/docker/42/job\n2:name=systemd:/\n0::/x\n"
	info := "30 29 0:26 / " + dir + "/memory rw - cgroup cgroup rw,memory\n" +
		"31 29 0:27 / " + dir + "/cpu rw - cgroup cgroup rw,cpu,cpuacct\n" +
		"32 29 0:28 /docker/42 " + dir + `/odd\040name rw - cgroup cgroup rw,pids` + "\n" +
		"33 29 0:29 / " + dir + "/systemd rw - cgroup cgroup rw,name=systemd\n" +
		"34 29 0:30 / " + dir + "/unified rw - cgroup2 cgroup2 rw\n35 29 0:31 / /proc rw - proc proc rw\n"
	got := map[string]string{}
	for _, h := range parseHierarchies(own, info) {
		name := "unified"
		for c := range h.controllers {
			name = c
			if c == "cpuacct" {
				name = "cpu"
			}
		}
		got[name] = h.own
	}
	want := map[string]string{"memory": dir + "/memory/a/b", "cpu": dir + "/cpu", "pids": dir + "/odd name/job", "unified": dir + "/unified/x"}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: %q, want %q", k, got[k], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
}

func TestARenewedGroupCountsFromNothing(t *testing.T) {
	tree := testTree(t)
	l := Limits{MemoryBytes: 256 << 20, Pids: 20, CPUs: 1}
	g, err := tree.New(l)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	}()
	// A process that enters the group by itself, uses some of everything and ends.
	use := func(script string) Usage {
		t.Helper()
		enter := ""
		for i := range g.members {
			enter += "echo 0 >" + g.members[i].path + "/cgroup.procs; "
		}
		if out, err := exec.Command("sh", "-c", enter+script).CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
		u, err := g.Usage()
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	big := use("dd if=/dev/zero of=/dev/null bs=64M count=3 2>/dev/null; sh -c 'sleep 0.01 & sleep 0.01 & sleep 0.01 & wait'")
	if big.MemoryPeakBytes < 64<<20 || big.CPU <= 0 {
		t.Fatalf("the first use: %+v", big)
	}
	// What a process leaves charged when it has ended goes a moment later.
	renewed := g.Renew(l)
	for end := time.Now().Add(2 * time.Second); !renewed && time.Now().Before(end) && tree.Mode() != "v2"; {
		renewed = g.Renew(l)
	}
	if !renewed {
		if tree.Mode() == "v2" {
			t.Skip("groups of v2 are made anew")
		}
		t.Fatal("it cannot be renewed")
	}
	if u, err := g.Usage(); err != nil || u.CPU > time.Millisecond || u.MemoryPeakBytes > 1<<20 || u.OOMKills != 0 || u.PidsPeak > 0 {
		t.Errorf("renewed: %+v, %v", u, err)
	}
	small := use("true")
	if small.MemoryPeakBytes > 16<<20 || small.CPU >= big.CPU || small.PidsPeak != Unknown && small.PidsPeak >= big.PidsPeak {
		t.Errorf("the second use: %+v, after %+v", small, big)
	}
}
