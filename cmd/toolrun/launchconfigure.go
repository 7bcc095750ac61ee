package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toolrun/catalog"
)

// serveEnv is what serve finds in its environment, whatever of it the agent passes on by itself.
func (a *app) serveEnv(l *launching, args []string) {
	env := l.run.Env
	env[launchVariable] = l.run.Dir
	env["TOOLRUN_DATA"] = l.data
	if path, explicit := a.catalogPath(); explicit { // one that was found is found again, and trusted again
		if abs, err := filepath.Abs(path); err == nil {
			path = abs
		}
		env["TOOLRUN_CATALOG"] = path
	}
	if role := a.role(); role != "" {
		env["TOOLRUN_ROLE"] = role
	}
	for _, name := range []string{"TOOLRUN_MODEL", "TOOLRUN_PROVIDER"} {
		if v := a.getenv(name); v != "" {
			env[name] = v
		}
	}
	own := a.launchEnv(sessionVariable)
	if own == "" && l.agent != nil && l.agent.NamesSession && (len(l.agent.SessionArgs) == 0 || l.continues(args)) {
		return // the agent alone knows it, and tells it
	}
	env[sessionVariable] = cmp.Or(own, l.run.Session)
	if l.agent == nil || len(l.agent.SessionArgs) > 0 || !l.agent.NamesSession { // else the agent's own word in each call goes first
		l.session = env[sessionVariable]
	}
}

// continues says whether the user's arguments make the agent go on with an earlier session.
func (l *launching) continues(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return slices.Contains(l.agent.Continues, name)
	})
}

// envNames are the variables that are set and that the catalog asks for: some agents pass on only what they are told.
func envNames(c *catalog.Catalog, lookup func(string) (string, bool)) []string {
	names := map[string]bool{"XDG_CACHE_HOME": true}
	for _, s := range c.Secrets() {
		names[s.Env] = true
	}
	for _, t := range c.Tools() {
		for _, name := range t.EnvPass {
			names[name] = true
		}
	}
	maps.DeleteFunc(names, func(name string, _ bool) bool {
		_, set := lookup(name)
		return !set
	})
	return append([]string{}, slices.Sorted(maps.Keys(names))...) // [] and not null
}

// callWait is what an agent waits for a call beyond the tool's own limit: a free place, somebody's yes or no.
const callWait = 10 * time.Minute

// defaultCallSeconds is callSeconds of a catalog with nothing but defaults.
const defaultCallSeconds = int((2*time.Minute + callWait) / time.Second)

// callSeconds is how long an agent should wait for a call: longer than any may take, so that toolrun's limit ends it.
func callSeconds(c *catalog.Catalog) int {
	longest := time.Duration(defaultCallSeconds)*time.Second - callWait
	for _, t := range c.Tools() {
		longest = max(longest, t.LongestCall())
	}
	return int((longest + callWait) / time.Second)
}

// configureCommand gives a command that nothing is known of everything in its environment.
func (a *app) configureCommand(l *launching) error {
	path := filepath.Join(l.run.Dir, "mcp.json")
	box := map[string]any{"type": "stdio", "command": l.run.Command, "args": []string{"serve"}, "env": l.run.Env}
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"box": box}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	l.env = append(append(os.Environ(), pairs(l.run.Env)...), configVariable+"="+path)
	l.notes = append(l.notes, "not switched off: whatever tools the command has of its own")
	return nil
}

// pairs are variables as a process takes them.
func pairs(env map[string]string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// configureAgent carries out the agent's description.
func (a *app) configureAgent(l *launching, args []string) error {
	g := l.agent
	for _, name := range g.Builtins {
		if _, taken := l.catalog.Lookup(name); taken && g.ByBareName {
			l.notes = append(l.notes, fmt.Sprintf("not switched off: its own %s; it would take the catalog's tool of that name with it", name))
			continue
		}
		l.run.Off = append(l.run.Off, name)
	}
	for _, keep := range g.Keeps {
		l.notes = append(l.notes, "not switched off: "+keep)
	}
	l.env = os.Environ()
	if g.RootOnly != "" && os.Geteuid() != 0 { // a server that its own settings start is told by what it inherits
		l.env = append(l.env, pairs(l.run.Env)...)
		l.notes = append(l.notes, fmt.Sprintf("%s %s: it has no tools of toolrun unless your own settings attach it; 'toolrun launch --print %s' says how", g.Title, g.RootOnly, g.Name))
	}
	for _, name := range slices.Sorted(maps.Keys(g.Files)) {
		text, err := g.Files[name].Of(l.run)
		if err != nil {
			return fmt.Errorf("the description of %s: %w", g.Name, err)
		}
		if err := os.WriteFile(filepath.Join(l.run.Dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	flags := g.Args
	if !l.continues(args) {
		flags = slices.Concat(flags, g.SessionArgs)
	}
	for _, flag := range flags {
		text, err := flag.Of(l.run)
		if err != nil {
			return fmt.Errorf("the description of %s: %w", g.Name, err)
		}
		l.args = append(l.args, text)
	}
	for _, name := range slices.Sorted(maps.Keys(g.Env)) {
		value, err := g.Env[name].Of(l.run)
		if err != nil {
			return fmt.Errorf("the description of %s: %w", g.Name, err)
		}
		if before := a.getenv(name); before != "" && before != value {
			l.notes = append(l.notes, "the "+name+" of your environment is not in force in this run")
		}
		l.env = append(l.env, name+"="+value)
	}
	return nil
}
