package tests

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// eat is a script that needs so many MiB of memory: tail keeps what it may have to print.
func eat(mib int) string {
	return fmt.Sprintf("head -c %d /dev/zero | tail -c %d > /dev/null", mib<<20, mib<<20)
}

func TestOutOfMemoryIsToldFromOtherDeaths(t *testing.T) {
	t.Parallel()
	const small = `limits = { memory = "64MiB" }`
	p := newPlace(t, fixed("oom", "exec tail /dev/zero", small)+fixed("killed", "kill -9 $$", small)+
		fixed("code", "exit 137", small)+fixed("slow", "sleep 62.3", small, `timeout = "1s"`)+fixed("child", eat(256)+"; echo rc=$?; exit 0", small))
	s := p.serve()
	for _, want := range []struct {
		tool, outcome string
		kills         bool
	}{{"oom", "oom", true}, {"killed", "signal", false}, {"code", "exit", false}, {"slow", "timeout", false}} {
		f := s.call(want.tool, nil)
		expect(t, f, want.outcome)
		rows := p.rows()
		r := rows[len(rows)-1]
		if r.OOMKills == nil || *r.OOMKills > 0 != want.kills {
			t.Errorf("%s: oom_kills %s", want.tool, show(r.OOMKills))
		}
	}
	f := s.call("child", nil)
	r := p.rows()[4]
	if r.OOMKills == nil || *r.OOMKills == 0 {
		t.Errorf("a child was killed, the row says oom_kills %s", show(r.OOMKills))
	}
	if f.Outcome != "oom" && (f.Stdout != "rc=137\n" || show(f.ExitCode) != "0") {
		t.Errorf("outcome %s, exit_code %s, stdout %q", f.Outcome, show(f.ExitCode), f.Stdout)
	}
	noProcess(t, "sleep 62.3")
}

func TestMemoryLimitHoldsFromTheFirstCallAndPerTool(t *testing.T) {
	t.Parallel()
	p := newPlace(t, fixed("small", eat(96), `limits = { memory = "64MiB" }`)+fixed("large", eat(96), `limits = { memory = "256MiB" }`))
	s := p.serve()
	for i, tool := range []string{"small", "large", "small"} {
		f := s.call(tool, nil)
		r := p.rows()[i]
		if killed := r.OOMKills != nil && *r.OOMKills > 0; killed != (tool == "small") {
			t.Errorf("call %d, %s: outcome %s, oom_kills %s", i, tool, f.Outcome, show(r.OOMKills))
		}
		if !strings.Contains(fmt.Sprint(r.Enforced), "cgroup.memory") {
			t.Errorf("enforced: %v", r.Enforced)
		}
	}
}

func TestForkStormEndsWithItsCall(t *testing.T) {
	t.Parallel()
	canary := exec.Command("sleep", "64.9")
	if err := canary.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { canary.Process.Kill(); canary.Wait() }()
	p := newPlace(t, fixed("storm", "while :; do (sleep 64.2 &) ; done", `timeout = "1s"`, "limits = { pids = 64 }")+shTool)
	s := p.serve()
	f := s.facts(s.begin("storm", nil), 10*time.Second)
	if f.Outcome != "timeout" && f.Outcome != "exit" { // dash gives up when it cannot fork
		t.Errorf("outcome %s", f.Outcome)
	}
	if f.DurationMS > 4000 {
		t.Errorf("%d ms", f.DurationMS)
	}
	noProcess(t, "sleep 64.2")
	if len(processes("sleep 64.9")) != 1 {
		t.Error("the canary outside is dead")
	}
	expect(t, s.call("sh", sh("true")), 0)
}

func TestPidsLimitIsToldAndHurtsNobodyElse(t *testing.T) {
	t.Parallel()
	p := newPlace(t, fixed("bomb", "b() { b | b & }; b; wait; sleep 1", `timeout = "3s"`, "limits = { pids = 32 }")+shTool)
	s := p.serve()
	bomb := s.begin("bomb", nil)
	f := s.facts(s.begin("sh", sh("echo fine")), 5*time.Second)
	if f.Stdout != "fine\n" || f.DurationMS > 2000 {
		t.Errorf("stdout %q in %d ms", f.Stdout, f.DurationMS)
	}
	s.facts(bomb, 10*time.Second)
	for _, r := range p.rows() {
		if hit := r.PidsLimitHit != nil && *r.PidsLimitHit; hit != (r.ToolName == "bomb") {
			t.Errorf("%s: pids_limit_hit %s", r.ToolName, show(r.PidsLimitHit))
		}
	}
}

func TestCPUTimeIsLimitedApartFromTheClock(t *testing.T) {
	t.Parallel()
	const limit = `limits = { cpu_time = "1s", cpu = 4.0 }`
	busy := "while :; do :; done"
	p := newPlace(t, fixed("busy", busy, `timeout = "20s"`, limit)+fixed("idle", "sleep 3", `timeout = "20s"`, limit)+
		fixed("four", strings.Repeat("("+busy+") & ", 4)+"wait", `timeout = "20s"`, limit))
	s := p.serve()
	cpu := func(i int) int64 {
		r := p.rows()[i]
		if r.CPUMS == nil {
			t.Fatalf("cpu_ms is null: %s", r.raw)
		}
		return *r.CPUMS
	}
	expect(t, s.call("busy", nil), "cpu_limit")
	if ms := cpu(0); ms < 900 || ms > 2000 {
		t.Errorf("busy loop: cpu_ms %d", ms)
	}
	expect(t, s.call("idle", nil), 0)
	if ms := cpu(1); ms > 200 {
		t.Errorf("sleeper: cpu_ms %d", ms)
	}
	expect(t, s.call("four", nil), "cpu_limit")
	if ms := cpu(2); ms < 900 || ms > 2500 {
		t.Errorf("four children: cpu_ms %d", ms)
	}
}
