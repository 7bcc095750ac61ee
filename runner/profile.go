package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
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
	box   Box
	env   []string
	path  string // PATH in the box
	dir   string // working directory
	user  string // "uid:gid"
	view  view
	shown []string // places of the host that the box shows under their own names, as written and resolved
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

func (p *plan) visible(path string) bool {
	return slices.ContainsFunc(p.shown, func(place string) bool { return within(place, path) })
}

// protected are the files of a workspace that other programs take orders from: a tool that may write the workspace may
// still not change them, unless its write names them.
var protected = []string{".git/hooks", ".git/config", ".mcp.json", ".envrc", ".vscode"}

// newPlan turns a declaration into a plan and the profile of its box. warn is told of declared places that do not exist.
func newPlan(cfg *Config, t *catalog.Tool, warn func(string)) (*plan, sandbox.Profile, error) {
	uid, gid, err := userOf(t.User)
	if err != nil {
		return nil, sandbox.Profile{}, err
	}
	v := &viewMaker{cfg: cfg, warn: warn, writable: make(map[string]bool)}
	v.add(cfg.Workspace, false)
	for _, place := range t.Sandbox.Read {
		v.add(v.absolute(place), false)
	}
	for _, place := range t.Sandbox.Write {
		v.add(v.absolute(place), true)
	}
	declared := v.resolved()
	roots, env := toolchains(cfg, t)
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
	return p, sandbox.Profile{
		Name:        t.Name,
		Mounts:      append(v.mounts(), caches...),
		Protect:     v.protect(t.Sandbox.Write),
		Hide:        hide,
		HostNetwork: t.Sandbox.Network == catalog.NetworkHost,
		Ptrace:      t.Sandbox.Ptrace,
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
	}, nil
}

// viewMaker collects the places of the host that a box shows.
type viewMaker struct {
	cfg      *Config
	warn     func(string)
	places   []place
	writable map[string]bool // by resolved source
}

// place is a file or directory of the host and what it is called in the box.
type place struct{ source, target string }

func (v *viewMaker) absolute(declared string) string {
	if filepath.IsAbs(declared) {
		return filepath.Clean(declared)
	}
	return filepath.Join(v.cfg.Workspace, declared)
}

// add shows a place under its real name and, where a symlink leads to it that the box would not have, under that name
// too. A place that does not exist is passed over with a warning: less is shown, no wall is missing.
func (v *viewMaker) add(written string, write bool) {
	source, err := filepath.EvalSymlinks(written)
	if err != nil {
		v.warn(fmt.Sprintf("%q is not shown: %v", written, errors.Unwrap(err)))
		return
	}
	v.writable[source] = v.writable[source] || write
	for _, target := range []string{source, written} {
		inside := func(p place) bool { return p.target == target || target != source && within(p.target, target) }
		if !slices.ContainsFunc(v.places, inside) {
			v.places = append(v.places, place{source: source, target: target})
		}
	}
}

func (v *viewMaker) mounts() []sandbox.Mount {
	mounts := make([]sandbox.Mount, len(v.places))
	for i, p := range v.places {
		mounts[i] = sandbox.Mount{Source: p.source, Target: p.target, Write: v.writable[p.source]}
	}
	return mounts
}

func (v *viewMaker) targets() (list []string) {
	for _, p := range v.places {
		list = append(list, p.target)
	}
	return list
}

func (v *viewMaker) resolved() (list []string) {
	for _, p := range v.places {
		if !slices.Contains(list, p.source) {
			list = append(list, p.source)
		}
	}
	return list
}

// hidden gives the declared places, resolved. The data directory is the sandbox's to keep out.
func (v *viewMaker) hidden(declared []string) (list []string, err error) {
	for _, d := range declared {
		path, err := resolve(v.absolute(d))
		if err != nil {
			return nil, fmt.Errorf("hide %q %w", d, err)
		}
		list = append(list, path)
	}
	return list, nil
}

// protect gives what stays read-only although a place around it is writable: the catalog's files and the files that
// others take orders from, unless write names them or something inside them.
func (v *viewMaker) protect(write []string) (list []string) {
	named := make([]string, len(write))
	for i, w := range write {
		named[i] = v.absolute(w)
	}
	var candidates []string
	for _, f := range v.cfg.Catalog.Files() {
		candidates = append(candidates, f.Path)
	}
	for _, p := range protected {
		candidates = append(candidates, filepath.Join(v.cfg.Workspace, p))
	}
	for _, path := range candidates {
		if !slices.Contains(named, path) {
			list = append(list, path)
		}
	}
	return list
}

// toolchains finds the installations that a tool's programs need: the places to show, and variables that they need where
// HOME is another one. A program that is not found has none; a call of the tool will say so.
func toolchains(cfg *Config, t *catalog.Tool) (roots []string, env map[string]string) {
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
		found, err := sandbox.FindToolchain(program, filepath.SplitList(path), home)
		if err != nil {
			continue
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

// userOf gives the ids of a declared user: a name, "uid" or "uid:gid"; empty is toolrun's own.
func userOf(declared string) (uid, gid int, err error) {
	if declared == "" {
		return os.Getuid(), os.Getgid(), nil
	}
	name, group, both := strings.Cut(declared, ":")
	if uid, err = strconv.Atoi(name); err == nil && uid >= 0 {
		if !both {
			return uid, uid, nil
		}
		if gid, err = strconv.Atoi(group); err == nil && gid >= 0 {
			return uid, gid, nil
		}
	}
	u, err := user.Lookup(declared)
	if err != nil {
		return 0, 0, fmt.Errorf("user %q: no such user on this host", declared)
	}
	if uid, err = strconv.Atoi(u.Uid); err == nil {
		gid, err = strconv.Atoi(u.Gid)
	}
	return uid, gid, err
}
