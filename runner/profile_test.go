package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"toolrun/archive/ledger"
	"toolrun/sandbox"
)

// lastCommand is a box that remembers what it was told to run.
type lastCommand struct{ sandbox.Command }

func (l *lastCommand) Run(ctx context.Context, cmd sandbox.Command) sandbox.Result {
	l.Command = cmd
	return exits(0, "", "")(ctx, cmd)
}

func script(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), mode))
	must(t, os.Chmod(path, mode))
}

func TestTheEnvironmentIsMadeAndNotInherited(t *testing.T) {
	t.Setenv("FAKE_API_KEY", "sentinel-7731")
	t.Setenv("PASSED", "through")
	box := &lastCommand{}
	g := newRig(t, `
[tools.bare]
description = "bare"
command = ["/bin/env"]
risk = "READ"
[tools.full]
description = "full"
command = ["/bin/env"]
risk = "READ"
env = { A = "1", LANG = "de_DE.UTF-8" }
env_pass = ["PASSED", "NOT_SET_ANYWHERE"]
sandbox = { cache = ["go-build", "other"] }
`, box)
	must(t, g.Call(t.Context(), Request{Name: "bare"}).Err)
	if got, want := strings.Join(box.Env, " "), "HOME=/box/home LANG=C.UTF-8 PATH=/usr/bin:/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin TMPDIR=/tmp XDG_CACHE_HOME=/box/home/.cache"; got != want {
		t.Errorf("bare: %s\nwant  %s", got, want)
	}
	if box.Stdin != nil || box.Dir != g.cfg.Workspace {
		t.Errorf("stdin %q, dir %q", box.Stdin, box.Dir)
	}
	must(t, g.Call(t.Context(), Request{Name: "full"}).Err)
	for _, want := range []string{"A=1", "LANG=de_DE.UTF-8", "PASSED=through", "XDG_CACHE_HOME=/cache", "GOCACHE=/cache/go-build"} {
		if !slices.Contains(box.Env, want) {
			t.Errorf("full lacks %s: %v", want, box.Env)
		}
	}
	if strings.Contains(strings.Join(box.Env, " "), "sentinel") || strings.Contains(strings.Join(box.Env, " "), "NOT_SET") {
		t.Errorf("full: %v", box.Env)
	}
	caches := filepath.Join(g.cfg.CacheDir, fmt.Sprint(os.Geteuid()))
	for _, m := range []sandbox.Mount{
		{Source: filepath.Join(caches, "tools/full"), Target: "/cache", Write: true},
		{Source: filepath.Join(caches, "shared/go-build"), Target: "/cache/go-build", Write: true},
		{Source: filepath.Join(caches, "shared/other"), Target: "/cache/other", Write: true},
	} {
		if info, err := os.Stat(m.Source); !slices.Contains(g.profiles["full"].Mounts, m) || err != nil || !info.IsDir() {
			t.Errorf("no mount %v in %v", m, g.profiles["full"].Mounts)
		}
		if _, err := os.Stat(filepath.Join(caches, "tools/full", strings.TrimPrefix(m.Target, "/cache"))); err != nil {
			t.Errorf("no place to mount %s on: %v", m.Target, err)
		}
	}
	g.end()
}

// TestABareNameIsLookedUpInTheBoxsPath is the fault of a runner that searched its own PATH and ran another program.
func TestABareNameIsLookedUpInTheBoxsPath(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	script(t, a+"/mytool", "#!/bin/sh\necho A\n", 0o755)
	script(t, b+"/mytool", "#!/bin/sh\necho B\n", 0o755)
	box := &lastCommand{}
	g := newRig(t, fmt.Sprintf(`
[tools.own]
description = "by the PATH of toolrun"
command = ["mytool"]
risk = "READ"
[tools.declared]
description = "by its own PATH"
command = ["mytool"]
risk = "READ"
env = { PATH = %q }
`, b), box, func(c *Config) { c.Path = a + ":/usr/bin:/nowhere" })
	for tool, want := range map[string]string{"own": a + "/mytool", "declared": b + "/mytool"} {
		must(t, g.Call(t.Context(), Request{Name: tool}).Err)
		if box.Exe != want || box.Argv[0] != "mytool" {
			t.Errorf("%s: %s as %s, want %s", tool, box.Exe, box.Argv[0], want)
		}
		if !slices.ContainsFunc(g.profiles[tool].Mounts, func(m sandbox.Mount) bool { return within(m.Target, want) && !m.Write }) {
			t.Errorf("%s: its program is not shown: %v", tool, g.profiles[tool].Mounts)
		}
	}
	if path := strings.Join(box.Env, " "); strings.Contains(path, "/nowhere") {
		t.Errorf("an entry that no box shows is in %s", path)
	}
	g.end()
}

func TestWhatCannotBeStartedSaysWhichFileAndWhy(t *testing.T) {
	hidden := t.TempDir()
	script(t, hidden+"/tool", "#!/bin/sh\n", 0o755)
	g := newRig(t, fmt.Sprintf(`
[defaults]
risk = "READ"
toolchains = "none"
[tools.missing]
description = "x"
command = ["/no/such"]
[tools.unfound]
description = "x"
command = ["no-such-program"]
[tools.directory]
description = "x"
command = ["./sub"]
[tools.plain]
description = "x"
command = ["./plain.sh"]
[tools.hidden]
description = "x"
command = [%q]
[tools.led-out]
description = "x"
command = ["./out/tool"]
[tools.led-nowhere]
description = "x"
command = ["./out/nothing"]
`, hidden+"/tool"), mustNotRun(t))
	must(t, os.Symlink(hidden, g.workspace+"/out"))
	must(t, os.Mkdir(g.workspace+"/sub", 0o755))
	script(t, g.workspace+"/plain.sh", "#!/bin/sh\n", 0o644)
	for tool, want := range map[string][]string{
		"missing":   {"/no/such", "ENOENT"},
		"unfound":   {"no-such-program", "ENOENT", "PATH"},
		"directory": {"/sub", "EACCES", "directory"},
		"plain":     {"/plain.sh", "EACCES", "not executable"},
		"hidden":    {hidden + "/tool", "ENOENT", "not shown"},
		// One cannot be told from the other.
		"led-out":     {"/out/tool", "ENOENT", "not shown"},
		"led-nowhere": {"/out/nothing", "ENOENT", "not shown"},
	} {
		reply := g.Call(t.Context(), Request{Name: tool})
		must(t, reply.Err)
		row := reply.Row
		if row.Outcome != ledger.OutcomeSpawnFailed || row.Status != "error" || row.ExitCode != nil || row.OutputHash != "" || row.Argv.IsNull() {
			t.Errorf("%s: %s %s %v %q", tool, row.Outcome, row.Status, row.ExitCode, row.OutputHash)
		}
		for _, part := range want {
			if !strings.Contains(row.ErrorMessage.String(), part) {
				t.Errorf("%s: %q does not name %s", tool, row.ErrorMessage, part)
			}
		}
	}
	g.end()
}

func TestTheProfileShowsWhatIsDeclaredAndProtectsWhatOthersObey(t *testing.T) {
	outside := t.TempDir()
	var log lockedBuffer
	g := newRig(t, fmt.Sprintf(`
[tools.reader]
command = ["/bin/sh"]
description = "x"
risk = "READ"
sandbox = { read = [%q, "absent"], write = [], hide = [".env"] }
[tools.writer]
command = ["/bin/sh"]
description = "x"
risk = "DRAFT"
limits = { memory = "64MiB", pids = 32, output_total = "2MiB" }
sandbox = { write = [".", ".vscode"], network = "host", ptrace = true }
isolation = "best-effort"
`, outside), mustNotRun(t), func(c *Config) { c.Logger = newLogger(&log) })
	w := g.cfg.Workspace
	reader, writer := g.profiles["reader"], g.profiles["writer"]
	for _, c := range []struct {
		p    sandbox.Profile
		m    sandbox.Mount
		want bool
	}{
		{reader, sandbox.Mount{Source: w, Target: w}, true},
		{reader, sandbox.Mount{Source: outside, Target: outside}, true},
		{writer, sandbox.Mount{Source: w, Target: w, Write: true}, true},
		{writer, sandbox.Mount{Source: outside, Target: outside}, false},
	} {
		if slices.Contains(c.p.Mounts, c.m) != c.want {
			t.Errorf("%s: %v in %v is not %v", c.p.Name, c.m, c.p.Mounts, c.want)
		}
	}
	if !strings.Contains(log.String(), "absent") {
		t.Error("nobody is told that a declared place does not exist")
	}
	if !slices.Equal(reader.Hide, []string{w + "/.env"}) || reader.HostNetwork || reader.Ptrace || reader.BestEffort {
		t.Errorf("reader: %+v", reader)
	}
	if !writer.HostNetwork || !writer.Ptrace || !writer.BestEffort || writer.Limits.MemoryBytes != 64<<20 || writer.Limits.Pids != 32 || writer.Limits.OutputTotalBytes != 2<<20 {
		t.Errorf("writer: %+v", writer)
	}
	for _, path := range []string{"tools.toml", ".git/hooks", ".git/config", ".mcp.json", ".envrc"} {
		if !slices.Contains(writer.Protect, w+"/"+path) {
			t.Errorf("%s is not protected: %v", path, writer.Protect)
		}
	}
	if slices.Contains(writer.Protect, w+"/.vscode") {
		t.Error(".vscode is named in write and protected")
	}
	g.end()
}

func TestASymlinkAmongDeclaredPlacesIsShownUnderBothNames(t *testing.T) {
	real, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(real, link))
	g := newRig(t, fmt.Sprintf(`
[tools.t]
description = "x"
command = ["/bin/sh"]
risk = "READ"
sandbox = { read = [%q] }
`, link), mustNotRun(t))
	for _, target := range []string{real, link} {
		if m := (sandbox.Mount{Source: real, Target: target}); !slices.Contains(g.profiles["t"].Mounts, m) {
			t.Errorf("no %v in %v", m, g.profiles["t"].Mounts)
		}
	}
	g.end()
}

func TestALinkThatToolsMayChangeIsNotFollowedOutOfTheirReach(t *testing.T) {
	outside, named := t.TempDir(), t.TempDir()
	must(t, os.Mkdir(filepath.Join(named, "in"), 0o755))
	g := newRig(t, fmt.Sprintf(`
[tools.t]
description = "x"
command = ["/bin/sh"]
risk = "READ"
sandbox = { read = ["reads", "way/%[2]s", "inside", "in-named", %[1]q], write = [".", "writes", "writes-named"] }
`, named, filepath.Base(outside)), mustNotRun(t), func(c *Config) {
		workspace := c.Workspace
		must(t, os.MkdirAll(filepath.Join(workspace, "real"), 0o755))
		for link, target := range map[string]string{
			"reads": outside, "writes": outside, "way": filepath.Dir(outside), "inside": "real", "in-named": filepath.Join(named, "in"), "writes-named": named,
		} {
			must(t, os.Symlink(target, filepath.Join(workspace, link)))
		}
	})
	for _, m := range g.profiles["t"].Mounts {
		if m.Source != g.cfg.Workspace && m.Source != filepath.Join(g.cfg.Workspace, "real") && !within(named, m.Source) || m.Write && m.Source == named {
			t.Errorf("shown: %v", m)
		}
	}
	for _, source := range []string{named, filepath.Join(named, "in")} {
		if !slices.ContainsFunc(g.profiles["t"].Mounts, func(m sandbox.Mount) bool { return m.Source == source && !m.Write }) {
			t.Errorf("%s, which is declared itself, is not shown: %v", source, g.profiles["t"].Mounts)
		}
	}
	g.end()
}

func TestACatalogThatTheHostCannotEnforceFailsAtTheStart(t *testing.T) {
	cannot := errors.New("no cgroup here")
	var err error
	g := newRig(t, testCatalog, mustNotRun(t))
	cfg := g.cfg
	cfg.MakeBox = func(sandbox.Profile) (Box, error) { return nil, cannot }
	if _, err = New(cfg); !errors.Is(err, cannot) || !strings.Contains(err.Error(), "echo") {
		t.Errorf("New: %v", err)
	}
	cfg.MakeBox = g.cfg.MakeBox
	cfg.Payloads = "some"
	if _, err = New(cfg); err == nil {
		t.Error("payloads = some was accepted")
	}
	g.end()
}

func TestACwdOutsideTheViewIsRefusedAtTheStart(t *testing.T) {
	g := newRig(t, testCatalog, mustNotRun(t))
	cfg := g.cfg
	tool, _ := cfg.Catalog.Lookup("echo")
	for cwd, ok := range map[string]bool{".": true, "..": false, "/etc": false} {
		changed := *tool
		changed.Cwd = cwd
		if _, _, err := newPlan(&cfg, &changed, func(string) {}); (err == nil) != ok {
			t.Errorf("cwd %q: %v", cwd, err)
		}
	}
	g.end()
}

func TestUsers(t *testing.T) {
	for declared, want := range map[string]string{
		"root": "0:0", "1000": "1000:1000", "1000:50": "1000:50",
		"no-such-user-here": "", "-1": "", "5:": "", "5:x": "",
	} {
		uid, gid, err := userOf(declared, "/")
		if got := fmt.Sprintf("%d:%d", uid, gid); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("user %q: %s, %v; want %q", declared, got, err, want)
		}
	}
}

// TestAToolRunsAsTheOwnerOfTheWorkspace, and so do its caches belong to him; only root can be anybody else.
func TestAToolRunsAsTheOwnerOfTheWorkspace(t *testing.T) {
	const tools = `
[tools.own]
description = "nobody is declared"
command = ["/bin/sh"]
risk = "READ"
sandbox = { cache = ["c"] }
[tools.other]
description = "somebody is"
command = ["/bin/sh"]
risk = "READ"
user = "1235:1236"
sandbox = { cache = ["c"] }
`
	want := fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid())
	g := newRig(t, tools, exits(0, "", ""), func(c *Config) {
		if os.Geteuid() == 0 {
			must(t, os.Chown(c.Workspace, 1234, 1233))
			want = "1234:1233"
		}
	})
	for name, want := range map[string]string{"own": want, "other": "1235:1236"} {
		p := g.profiles[name]
		if got := fmt.Sprintf("%d:%d", p.UID, p.GID); got != want {
			t.Errorf("%s runs as %s, want %s", name, got, want)
		}
		reply := g.Call(t.Context(), Request{Name: name})
		must(t, reply.Err)
		if string(reply.Row.User) != want {
			t.Errorf("the row of %s says %q", name, reply.Row.User)
		}
		if os.Geteuid() != 0 {
			continue
		}
		for _, dir := range []string{"tools/" + name, "tools/" + name + "/c", "shared/c"} {
			info, err := os.Stat(filepath.Join(g.cfg.CacheDir, fmt.Sprint(p.UID), dir))
			must(t, err)
			if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != p.UID || int(st.Gid) != p.GID {
				t.Errorf("cache %s of %s belongs to %d:%d", dir, name, st.Uid, st.Gid)
			}
		}
	}
	g.end()
}
