package catalog

import (
	"math"
	"regexp"
	"time"
)

// Bounds of the limits: what the kernel can hold. A CPU quota is at least 1 ms of each 100 ms (cgroup-v2.rst, cpu.max).
const (
	maxPids  = 1 << 22 // PID_MAX_LIMIT
	maxFiles = 1 << 20 // the usual fs.nr_open
	minCPUs  = 0.01
	maxCPUs  = 4096
)

// defaultLimits are the limits of a tool that declares none.
func defaultLimits() Limits {
	return Limits{
		MemoryBytes: 1 << 30, SwapBytes: 0, Pids: 256, CPUs: 2, CPUTime: 10 * time.Minute,
		Files: 1024, FileSizeBytes: 1 << 30, OutputBytes: 64 << 20, OutputTotalBytes: 1 << 30,
	}
}

func readLimits(t *table) Limits {
	l := defaultLimits()
	if t == nil {
		return l
	}
	l.MemoryBytes = t.size("memory", l.MemoryBytes, 1, math.MaxInt64)
	l.SwapBytes = t.size("swap", l.SwapBytes, 0, math.MaxInt64)
	l.Pids = t.integer("pids", l.Pids, 1, maxPids)
	l.CPUs = t.number("cpu", l.CPUs, minCPUs, maxCPUs)
	l.CPUTime = t.duration("cpu_time", l.CPUTime, time.Millisecond)
	l.Files = t.integer("files", l.Files, 1, maxFiles)
	l.FileSizeBytes = t.size("file_size", l.FileSizeBytes, 1, math.MaxInt64)
	l.OutputBytes = t.size("output", l.OutputBytes, 1, math.MaxInt64)
	l.OutputTotalBytes = t.size("output_total", l.OutputTotalBytes, 1, math.MaxInt64)
	t.done()
	return l
}

// cacheName is what a cache may be called: it becomes the name of a folder.
var cacheName = nameForm{64, regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)}

func readSandbox(t *table) Sandbox {
	s := Sandbox{Read: []string{}, Write: []string{"."}, Hide: []string{}, Cache: []string{}, Network: NetworkNone}
	if t == nil {
		return s
	}
	s.Read = t.list("read", s.Read...)
	s.Write = t.list("write", s.Write...)
	s.Hide = t.list("hide", s.Hide...)
	s.Cache = t.list("cache", s.Cache...)
	for i, name := range s.Cache {
		if !cacheName.MatchString(name) {
			_, at, _ := t.get("cache")
			place{at.src, at.at.index(i)}.fail("must be the name of a cache, in a-z 0-9 . _ -, not " + quote(name))
		}
	}
	s.Ptrace = t.boolean("ptrace", false)
	s.Network, s.Hosts = readNetwork(t)
	t.done()
	return s
}
