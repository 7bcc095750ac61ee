package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"toolrun/sandbox/cgroup"
)

// Check is one wall or limit and whether this host can put it up.
type Check struct {
	Name   string // of the ledger's key "enforced"
	OK     bool
	Why    string // where it cannot
	Remedy string // what to do about it
}

// Walls are all names that Result.Enforced may hold, in the order of the documents.
var Walls = []string{
	cgroup.Memory, cgroup.Swap, cgroup.Pids, cgroup.CPU, cgroup.CPUTime, "rlimit.nofile", "rlimit.fsize",
	"ns.user", "ns.pid", "ns.mount", "ns.ipc", "ns.uts", "ns.cgroup", "ns.net", "view", "landlock", "seccomp", "no_new_privs", "caps", "notty", "proxy",
}

// remedies, by the wall that is missing.
var remedies = map[string]string{
	cgroup.Memory:  "mount the memory controller, or start toolrun in a cgroup that it may divide",
	cgroup.Swap:    "boot the kernel with swapaccount=1, or run where there is no swap and declare isolation = \"best-effort\"",
	cgroup.Pids:    "mount the pids controller, or start toolrun in a cgroup that it may divide",
	cgroup.CPU:     "mount the cpu controller, or start toolrun in a cgroup that it may divide",
	cgroup.CPUTime: "mount the cpuacct controller, or start toolrun in a cgroup that it may divide",
	"landlock":     "boot a kernel with CONFIG_SECURITY_LANDLOCK and landlock in its lsm= list (Linux 5.13)",
	"seccomp":      "boot a kernel with CONFIG_SECCOMP_FILTER",
	"proxy":        "allow network namespaces (in a container: --privileged)",
	"ns.net":       "allow network namespaces (in a container: --privileged)",
}

// Doctor tries what this host can enforce, by running a real call in a box.
func Doctor() []Check {
	missing, err := tryHost()
	var checks []Check
	for _, w := range Walls {
		c := Check{Name: w, OK: true}
		if why, ok := missing[w]; ok {
			c = Check{Name: w, Why: why, Remedy: remedies[w]}
			if strings.HasSuffix(why, unix.EACCES.Error()) {
				c.Remedy = "start toolrun as root; as an ordinary user on a host with cgroup v2 and systemd"
			}
		}
		if err != nil {
			c = Check{Name: w, Why: err.Error(), Remedy: "start toolrun as root, on Linux 5.13 or newer (in a container: --privileged)"}
			if refused := (errUserNS{}); errors.As(err, &refused) {
				c.Why, c.Remedy = refused.why(), userNSRemedy(readSwitch)
			}
		}
		checks = append(checks, c)
	}
	return checks
}

// tryHost opens a host and runs one call in a best-effort box.
func tryHost() (missing map[string]string, err error) {
	h, err := Open(Config{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	b, err := h.Box(Profile{Name: "doctor", BestEffort: true, Allow: []string{}, UID: os.Geteuid(), GID: os.Getegid(), Limits: Limits{
		MemoryBytes: 256 << 20, Pids: 64, CPUs: 1, CPUTime: time.Minute, Files: 64, FileSizeBytes: 1 << 20, OutputTotalBytes: 1 << 20}})
	if err != nil {
		return nil, err
	}
	defer b.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r := b.Run(ctx, Command{Argv: []string{"true"}, Exe: "/bin/true", Dir: "/", Stdout: io.Discard})
	if r.Outcome != Exited || r.ExitCode != 0 {
		if r.Err != nil {
			return nil, r.Err
		}
		return nil, fmt.Errorf("/bin/true in a box: exit status %d, signal %d", r.ExitCode, int(r.Signal))
	}
	missing = maps.Clone(h.missing)
	if why, ok := missing["ns.net"]; ok {
		missing["proxy"] = why
	}
	for _, w := range Walls {
		if _, ok := missing[w]; !ok && !slices.Contains(r.Enforced, w) {
			return nil, fmt.Errorf("%s was asked for and is not in force", w)
		}
	}
	return missing, nil
}
