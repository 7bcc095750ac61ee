package tests

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// markTool leaves a mark in the workspace, and tells what it sees of the data directory.
func markTool(p *place, isolation string) string {
	return "[catalog]\nname = \"tests\"\n" + fixed("mark", "touch ran; cat "+p.data+"/ledger.jsonl; ls "+p.data+"; echo end", `isolation = "`+isolation+`"`)
}

// doctor gives the remedies of the walls that the host lacks.
func (p *place) doctor() (lacks map[string]string, got ran) {
	p.t.Helper()
	cmd := p.command("doctor", "--json")
	cmd.Args = slices.DeleteFunc(cmd.Args, func(a string) bool { // it takes neither
		return strings.HasPrefix(a, "--catalog") || strings.HasPrefix(a, "--workspace") || strings.HasPrefix(a, "--data") || a == p.catalog || a == p.work || a == p.data
	})
	got = finish(p.t, cmd)
	lacks = map[string]string{}
	for line := range strings.Lines(got.stdout) {
		var c struct {
			Wall        string
			OK          bool
			Why, Remedy string
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			p.t.Fatalf("%v in %q, stderr %s", err, line, got.stderr)
		}
		if !c.OK {
			lacks[c.Wall] = c.Remedy
			if c.Why == "" || c.Remedy == "" {
				p.t.Errorf("%s is missing without a reason or a remedy: %q", c.Wall, line)
			}
		}
	}
	return lacks, got
}

// refuses holds that serve tells the first request why it cannot, ends with status 6, and that nothing ran.
func (p *place) refuses(why string) {
	p.t.Helper()
	s := p.serve()
	s.trySend(callLine(1, "mark", nil))
	a, err := s.tryAnswer("1", patience)
	if err != nil {
		p.t.Fatalf("%v\n%s", err, s.stderr)
	}
	if a.Error == nil || !strings.Contains(a.Error.Message, why) {
		p.t.Errorf("the first request got %s %+v, want an error with %q in it", a.Result, a.Error, why)
	}
	if code := s.wait(20 * time.Second); code != 6 {
		p.t.Errorf("serve ended with %d\n%s", code, s.stderr)
	}
	if _, err := os.Stat(filepath.Join(p.work, "ran")); err == nil {
		p.t.Error("the tool ran")
	}
}

// runsWithLess holds that a best-effort tool runs without these walls, which its row shows, and never without those that
// hide the data directory.
func (p *place) runsWithLess(lacks map[string]string) {
	p.t.Helper()
	s := p.serve()
	f := s.call("mark", nil)
	if f.Status != "success" {
		p.t.Fatalf("outcome %s\n%s", f.Outcome, f.Text)
	}
	if f.Stdout != "end\n" {
		p.t.Errorf("the tool sees of the data directory: %q", f.Stdout)
	}
	enforced := p.rows()[0].Enforced
	for wall := range lacks {
		if wall != "proxy" && slices.Contains(enforced, wall) {
			p.t.Errorf("%s cannot be put up here, and the row says it was: %v", wall, enforced)
		}
	}
	for _, wall := range []string{"view", "ns.mount", "ns.pid", "ns.user", "caps", "no_new_privs"} {
		if !slices.Contains(enforced, wall) {
			p.t.Errorf("it ran without %s: %v", wall, enforced)
		}
	}
	if _, err := os.Stat(filepath.Join(p.work, "ran")); err != nil {
		p.t.Errorf("the tool did not run: %v", err)
	}
}

func TestAHostThatCanMakeNoBoxRunsNothing(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for _, c := range []struct {
		host   string
		uid    int
		remedy string
	}{
		{"docker", 0, "--privileged"},
		{"docker", 1000, "--privileged"},
		{"apparmor", 1000, "kernel.apparmor_restrict_unprivileged_userns=0"},
		{"no user namespaces", 0, "sysctl user.max_user_namespaces="},
	} {
		for _, isolation := range []string{"required", "best-effort"} {
			p := userPlace(t, c.uid, "")
			p.host = c.host
			p.writeCatalog(markTool(p, isolation))
			if isolation == "required" {
				lacks, got := p.doctor()
				if got.code != 6 || len(lacks) < 20 || !strings.Contains(lacks["view"], c.remedy) {
					t.Errorf("%s, uid %d: doctor ended with %d, %v\n%s", c.host, c.uid, got.code, lacks, got.stderr)
				}
			}
			p.refuses(c.remedy)
		}
	}
}

func TestAHostThatLacksAWallSaysSoAndRunsOnlyBestEffort(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for _, c := range []struct {
		host, wall, remedy string
		uid                int
	}{
		{"no landlock", "landlock", "CONFIG_SECURITY_LANDLOCK", 0},
		{"no landlock", "landlock", "CONFIG_SECURITY_LANDLOCK", 1000},
		{"no cgroups", "cgroup.memory", "mount the memory controller", 0},
		{"", "cgroup.memory", "", 1000}, // where an ordinary user has no cgroup to divide
	} {
		p := userPlace(t, c.uid, "")
		p.host = c.host
		lacks, got := p.doctor()
		if c.host == "" && got.code == 0 {
			continue // he has: a delegated one
		}
		if remedy, ok := lacks[c.wall]; got.code != 6 || !ok || !strings.Contains(remedy, c.remedy) || lacks["view"] != "" {
			t.Errorf("%s, uid %d: doctor ended with %d, %v\n%s", c.host, c.uid, got.code, lacks, got.stderr)
			continue
		}
		p.writeCatalog(markTool(p, "required"))
		p.refuses(c.wall)
		q := userPlace(t, c.uid, "")
		q.host = c.host
		q.writeCatalog(markTool(q, "best-effort"))
		q.runsWithLess(lacks)
	}
}
