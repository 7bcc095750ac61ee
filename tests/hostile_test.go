package tests

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// hostileTool is a script that tries to get out of its box, to take the host's means or to leave something behind. What
// needs system calls is in sandbox/hostile_test.go; here it is seen from outside how each call ends and what its row says.
type hostileTool struct {
	script   string // $DATA, $HOME_, $SERVER and $NAP are replaced
	keys     string
	outcomes []string
	stdout   string // of a call that ended as ok
	needs    string // a limit that the host must have: else the machine of whoever runs the tests would pay
}

var hostileTools = map[string]hostileTool{
	"fork_bomb":   {script: "b() { b | b & }; b; wait; sleep 1", keys: "timeout = \"3s\"\n" + `limits = { pids = 32 }`, outcomes: []string{"ok", "exit", "timeout"}, needs: "cgroup.pids"},
	"fork_storm":  {script: "while :; do (sleep $NAP &) ; done", keys: "timeout = \"2s\"\n" + `limits = { pids = 64 }`, outcomes: []string{"exit", "timeout"}, needs: "cgroup.pids"},
	"daemons":     {script: "setsid sleep $NAP & (setsid sh -c '(sleep $NAP &) &' &); (trap '' TERM HUP INT; exec sleep $NAP) & echo left", outcomes: []string{"ok"}, stdout: "left\n"},
	"four_gib":    {script: "exec dd if=/dev/zero of=/dev/null bs=4G count=1", keys: `limits = { memory = "64MiB" }`, outcomes: []string{"oom", "exit"}, needs: "cgroup.memory"},
	"hundred_gib": {script: "exec head -c 107374182400 /dev/zero", keys: `limits = { output = "1MiB", output_total = "8MiB" }`, outcomes: []string{"output_limit"}},
	"fill_tmp":    {script: "head -c 4294967296 /dev/zero >/tmp/x; exit 9", keys: `limits = { memory = "24MiB" }`, outcomes: []string{"oom", "exit"}},
	"huge_file":   {script: "head -c 4294967296 /dev/zero >huge; exit 9", keys: `limits = { file_size = "1MiB" }`, outcomes: []string{"exit", "signal"}},
	"ledger":      {script: "echo gone >>$DATA/ledger.jsonl; rm -rf $DATA; mv $DATA $DATA.old; mkdir -p $DATA 2>&1 | wc -l; echo tried", outcomes: []string{"ok"}},
	"home":        {script: "cat $HOME_/secret $HOME_/.ssh/id /root/secret; ls $HOME_ /root /home; ln -s $HOME_/secret soft && cat soft; ln $HOME_/secret hard && cat hard; echo tried", outcomes: []string{"ok"}},
	"server":      {script: "kill -9 $SERVER; kill -9 1; kill -TERM $SERVER; cat /proc/$SERVER/environ /proc/1/environ /proc/$PPID/environ; ls /proc/$SERVER/fd /proc/1/fd; kill -9 -1; echo alive", outcomes: []string{"ok"}, stdout: "alive\n"},
	"mounts":      {script: "mkdir /tmp/m; mount -t cgroup2 x /tmp/m; mount -t tmpfs x /tmp/m; mount -o remount,rw /usr; mount -o bind / /tmp/m; umount /proc; mknod /tmp/sda b 254 0; echo $$ >/sys/fs/cgroup/cgroup.procs; touch /usr/x /etc/x /x; (ls -A /tmp/m; ls -A /sys) | wc -w", outcomes: []string{"ok"}, stdout: "0\n"},
	"limits":      {script: "(ulimit -n 100000) && echo raised; (ulimit -f unlimited) && echo raised; (ulimit -c unlimited; ulimit -c | grep -v ^0) && echo raised; echo -900 >/proc/self/oom_score_adj; cat /proc/self/oom_score_adj", outcomes: []string{"ok"}, stdout: "500\n"},
	"terminal":    {script: "(: </dev/tty) && echo a terminal; (: >/dev/console) && echo a console; echo none", outcomes: []string{"ok"}, stdout: "none\n"},
	"setuid":      {script: "cp /bin/sh ./root; chmod 4755 root; chmod 2755 root; ls -l root | cut -c1-10 | tr -d '\\n' | tr rw- '   ' | tr -d ' x'", outcomes: []string{"ok"}},
	"killed":      {script: "kill -9 $$", outcomes: []string{"signal"}},
}

func TestEveryHostileToolIsContainedAndOnTheRecord(t *testing.T) {
	t.Parallel()
	users := []int{0}
	if os.Getuid() == 0 {
		users = append(users, 1000)
	}
	for _, uid := range users {
		t.Run(fmt.Sprintf("uid %d", uid), func(t *testing.T) {
			t.Parallel()
			if uid == 0 {
				needSandbox(t)
			}
			hostileSet(t, userPlaceOr(t, uid))
		})
	}
}

// userPlaceOr is a place of an ordinary user, or of whoever runs the tests.
func userPlaceOr(t *testing.T, uid int) *place {
	if uid == 0 {
		return barePlace(t, "")
	}
	return userPlace(t, uid, "")
}

func hostileSet(t *testing.T, p *place) {
	canary := exec.Command("sleep", "1066.9")
	if err := canary.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { canary.Process.Kill(); canary.Wait() }()
	home := filepath.Join(p.root, "home")
	for _, name := range []string{"secret", ".ssh/id"} {
		os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o755)
		if err := os.WriteFile(filepath.Join(home, name), []byte("sentinel-6601"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.env = append(p.env, "FAKE_API_KEY=sentinel-6602")
	lacks, _ := p.doctor()
	isolation := "required"
	if len(lacks) > 0 {
		isolation = "best-effort"
	}
	if lacks["view"] != "" {
		skipFor(t, "no box can be made: "+lacks["view"])
	}
	// The scripts come as arguments, so that they may name the server.
	catalog := "[catalog]\nname = \"tests\"\n"
	for name, h := range hostileTools {
		catalog += fmt.Sprintf("[tools.%s]\ndescription = \"A test.\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\nrisk = \"DESTRUCTIVE\"\napproval = \"auto\"\nisolation = %q\n%s\n[tools.%s.params.script]\ntype = \"string\"\nrequired = true\n", name, isolation, h.keys, name)
	}
	p.writeCatalog(catalog)
	s := p.serve()
	nap := fmt.Sprintf("66.%d", p.uid+101) // seconds, and a mark in /proc
	words := strings.NewReplacer("$NAP", nap, "$DATA", p.data, "$HOME_", home, "$SERVER", fmt.Sprint(s.cmd.Process.Pid))
	calls := 0
	for _, name := range slices.Sorted(maps.Keys(hostileTools)) {
		h := hostileTools[name]
		if h.needs != "" && lacks[h.needs] != "" {
			continue
		}
		f := s.call(name, sh(words.Replace(h.script)))
		rows := p.rows()
		if calls++; len(rows) != calls {
			t.Fatalf("%s: %d rows after %d calls", name, len(rows), calls)
		}
		r := rows[len(rows)-1]
		if !slices.Contains(h.outcomes, f.Outcome) || r.Outcome != f.Outcome || r.ToolName != name || !slices.Contains(r.Enforced, "view") {
			t.Errorf("%s: outcome %s, row %s, want one of %v\n%s", name, f.Outcome, r.raw, h.outcomes, f.Text)
		}
		t.Logf("%s: %s after %d ms", name, f.Outcome, f.DurationMS)
		if h.stdout != "" && f.Stdout != h.stdout {
			t.Errorf("%s: stdout %q, stderr %q", name, f.Stdout, f.Stderr)
		}
		if f.DurationMS > 10000 && strings.Contains(h.keys, "timeout") {
			t.Errorf("%s: %d ms", name, f.DurationMS)
		}
		switch name {
		case "fork_bomb":
			if r.PidsLimitHit == nil || !*r.PidsLimitHit {
				t.Error("fork_bomb: the row does not say that the limit of processes was hit")
			}
		case "setuid":
			if st, err := os.Stat(filepath.Join(p.work, "root")); err == nil && st.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
				t.Errorf("setuid: a program with mode %v is left in the workspace", st.Mode())
			}
		case "huge_file":
			if st, err := os.Stat(filepath.Join(p.work, "huge")); err != nil || st.Size() > 1<<20 {
				t.Errorf("huge_file: %v, %v", st, err)
			}
		}
		noProcess(t, "sleep "+nap)
	}
	if len(processes("sleep 1066.9")) == 0 {
		t.Error("the canary outside is dead")
	}
	s.send(request(1, "ping", nil))
	s.answer(1, 5*time.Second)
	for _, sentinel := range []string{"sentinel-6601", "sentinel-6602"} {
		if files := grep(p.data, sentinel); len(files) > 0 {
			t.Errorf("%s is in %v", sentinel, files)
		}
	}
}
