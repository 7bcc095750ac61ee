package anomaly

import (
	"slices"
	"strings"

	"toolrun/archive/ledger"
)

// tool is what the rules remember of one.
type tool struct {
	programs map[string]string // SHA-256 by path
	walls    map[string]bool   // definition and missing walls that were told

	durations, outputs samples
	ran, failures      int
}

// walls are in force for every process whatever its tool declares; ns.net, notty and proxy depend on that.
var walls = []string{"cgroup.memory", "cgroup.swap", "cgroup.pids", "cgroup.cpu", "cpu_time", "rlimit.nofile", "rlimit.fsize",
	"ns.user", "ns.pid", "ns.mount", "ns.ipc", "ns.uts", "ns.cgroup", "view", "landlock", "seccomp", "no_new_privs", "caps"}

// witness are the rules over what the row says of the program and its box.
func (c *Checker) witness(t *tool, row *ledger.Row) {
	if row.ExePath != nil && row.ExeSHA256 != "" {
		path, hash := row.ExePath.String(), string(row.ExeSHA256)
		if before := t.programs[path]; before != "" && before != hash {
			c.report(ProgramChanged, row, 1, 0, "%s is another program than before: %.12s, before %.12s", path, hash, before)
		}
		t.programs[path] = hash
	}
	if !started(row) || row.ExitCode == nil && row.Signal == "" || row.ExePath == nil {
		return // no process
	}
	var missing []string
	for _, wall := range walls {
		if !slices.Contains(row.Enforced, wall) {
			missing = append(missing, wall)
		}
	}
	key := string(row.DefinitionSHA256) + " " + strings.Join(missing, " ")
	if len(missing) > 0 && !t.walls[key] {
		t.walls[key] = true
		c.report(WallMissing, row, float64(len(missing)), 0, "it ran without %s", strings.Join(missing, ", "))
	}
}

// history are the rules against the tool's own past.
func (c *Checker) history(t *tool, row *ledger.Row) {
	if row.Outcome == ledger.OutcomeInterrupted || row.Outcome == ledger.OutcomeCancelled {
		return // ended from outside
	}
	l := c.limits
	took, wrote := float64(row.DurationMS), float64(row.OutputBytes)
	if score, mid, ok := t.durations.score(took, minSpreadMS, l.Samples); ok && score > l.Score {
		c.report(UnusualDuration, row, score, l.Score, "took %.0f ms, of a tool that takes %.0f", took, mid)
	}
	if score, mid, ok := t.outputs.score(wrote, minSpreadBytes, l.Samples); ok && score > l.Score {
		c.report(UnusualOutput, row, score, l.Score, "wrote %.0f bytes, of a tool that writes %.0f", wrote, mid)
	}
	t.durations.add(took)
	t.outputs.add(wrote)

	t.ran++
	if !failed(row) {
		return
	}
	// Laplace's estimate, which is not 0 for what has never happened.
	if rate := float64(t.failures+1) / float64(t.ran+1); t.ran > l.Samples && rate < l.UnusualFailure {
		c.report(UnusualFailure, row, rate, l.UnusualFailure, "%s, of a tool that failed %d times in %d", row.Outcome, t.failures, t.ran-1)
	}
	t.failures++
}

// What a flat history is taken to vary by at least, so that its scores are finite and a millisecond more is nothing.
const (
	minSpreadMS    = 50
	minSpreadBytes = 1024
	minSpreadPart  = 0.05 // of the median
)
