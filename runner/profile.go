package runner

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"toolrun/catalog"
	"toolrun/sandbox"
)

// Box runs the calls of one tool. *sandbox.Box is the real one.
type Box interface {
	Run(ctx context.Context, c sandbox.Command) sandbox.Result
}

// plan is how the calls of one tool run: all that follows from the catalog and the host and not from the call.
type plan struct {
	box    Box
	env    []string
	path   string // PATH in the box
	dir    string // working directory
	user   string // "uid:gid"
	view   view
	writes []string // places of the host that it may change
	shown  []string // places of the host that the box shows under their own names, as written and resolved
}

// command makes the box's command of checked arguments, without its writers. The error is a *spawnError.
func (p *plan) command(t *catalog.Tool, args *catalog.Args) (sandbox.Command, error) {
	argv := args.Argv()
	exe, err := findProgram(argv[0], p.path, p.dir, p.visible)
	return sandbox.Command{
		Argv:    argv,
		Exe:     exe,
		Env:     p.env,
		Dir:     p.dir,
		Stdin:   args.Stdin(),
		Timeout: t.Timeout,
	}, err
}

// visible tells whether the box shows a path of the host, and what it leads to: a link that a tool left must not make
// toolrun tell what is elsewhere.
func (p *plan) visible(path string) bool {
	shows := func(path string) bool {
		return slices.ContainsFunc(p.shown, func(place string) bool { return within(place, path) })
	}
	if !shows(path) || slices.ContainsFunc(boxSystemDirs, func(place string) bool { return within(place, path) }) {
		return shows(path)
	}
	real, err := resolve(path)
	return err == nil && shows(real)
}

// protected are the files of a workspace that other programs take orders from: a tool that may write the workspace may
// still not change them, unless its write names them.
var protected = []string{".git/hooks", ".git/config", ".mcp.json", ".envrc", ".vscode"}

// newPlan turns a declaration into a plan and the profile of its box. warn is told of declared places that do not exist.
func newPlan(cfg *Config, t *catalog.Tool, warn func(string)) (*plan, sandbox.Profile, error) {
	uid, gid, err := userOf(t.User, cfg.Workspace)
	if err != nil {
		return nil, sandbox.Profile{}, err
	}
	v := &viewMaker{cfg: cfg, warn: warn, writable: make(map[string]bool), anybodys: WritablePlaces(cfg.Catalog, cfg.Workspace)}
	v.add(cfg.Workspace, false)
	v.addAll(t.Sandbox.Read, t.Sandbox.Write)
	declared := v.resolved()
	roots, env := toolchains(cfg, t, v.anybodys, warn)
	for _, root := range roots {
		v.add(root, false)
	}
	caches, cacheEnv, err := cachesOf(cfg, t, uid, gid)
	if err != nil {
		return nil, sandbox.Profile{}, err
	}
	hide, err := v.hidden(t.Sandbox.Hide)
	if err != nil {
		return nil, sandbox.Profile{}, err
	}
	data, err := resolve(cfg.DataDir)
	if err != nil {
		return nil, sandbox.Profile{}, fmt.Errorf("data directory %q %w", cfg.DataDir, err)
	}
	p := &plan{user: fmt.Sprintf("%d:%d", uid, gid)}
	p.dir, err = resolve(v.absolute(t.Cwd))
	if err != nil {
		return nil, sandbox.Profile{}, fmt.Errorf("cwd %q %w", t.Cwd, err)
	}
	p.view = view{dir: p.dir, roots: declared, hidden: append(slices.Clone(hide), data)}
	if err := p.view.check(p.dir); err != nil {
		return nil, sandbox.Profile{}, fmt.Errorf("cwd %q %w", t.Cwd, err)
	}
	p.shown = append(v.targets(), boxSystemDirs...)
	maps.Copy(env, cacheEnv)
	p.env, p.path = environment(cfg, t, env, p.shown)
	profile := sandbox.Profile{
		Name:        t.Name,
		Mounts:      append(v.mounts(), caches...),
		Protect:     v.protect(t.Sandbox.Write),
		Hide:        hide,
		HostNetwork: t.Sandbox.Network == catalog.NetworkHost,
		Allow:       t.Sandbox.Hosts,
		Ptrace:      t.Sandbox.Ptrace,
		Terminal:    sandbox.Terminal{Rows: uint16(t.Terminal.Rows), Cols: uint16(t.Terminal.Cols)},
		Limits: sandbox.Limits{
			MemoryBytes:      t.Limits.MemoryBytes,
			SwapBytes:        t.Limits.SwapBytes,
			Pids:             t.Limits.Pids,
			CPUs:             t.Limits.CPUs,
			CPUTime:          t.Limits.CPUTime,
			Files:            t.Limits.Files,
			FileSizeBytes:    t.Limits.FileSizeBytes,
			OutputTotalBytes: t.Limits.OutputTotalBytes,
		},
		UID:        uid,
		GID:        gid,
		BestEffort: t.BestEffort,
	}
	for _, m := range profile.Mounts {
		if m.Write {
			p.writes = append(p.writes, m.Target)
		}
	}
	return p, profile, nil
}

// toolchains finds the installations that a tool's programs need: the places to show, and variables that they need where
// HOME is another one. A program that is not found has none; a call of the tool will say so. Tools may write the places in
// writable.
func toolchains(cfg *Config, t *catalog.Tool, writable []string, warn func(string)) (roots []string, env map[string]string) {
	programs := t.Toolchains.Programs
	if t.Toolchains.Auto {
		programs = append([]string{t.Program()}, programs...)
	}
	path, home := cfg.Path, ""
	if declared, ok := t.Env["PATH"]; ok {
		path = declared.Value
	}
	if h, ok := cfg.LookupEnv("HOME"); ok {
		home = h
	}
	env = make(map[string]string)
	for _, program := range programs {
		found, err := sandbox.FindToolchain(program, filepath.SplitList(path), home, writable)
		if err != nil {
			continue
		}
		for _, left := range found.Left {
			warn(fmt.Sprintf("%q leads to %q by a link or a first line that tools may change, and that is no installation of PATH: declare it in read", program, left))
		}
		for _, root := range found.Roots {
			if !slices.Contains(roots, root) {
				roots = append(roots, root)
			}
		}
		for _, variable := range found.Env {
			name, value, _ := strings.Cut(variable, "=")
			env[name] = value
		}
	}
	return roots, env
}
