package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"toolrun/archive/query"
)

// flags are the flags that every command takes.
type flags struct {
	json      bool
	data      string
	catalog   string
	workspace string
	session   string
	role      string
	sinceText string
	untilText string
	hot       bool
	logFile   string
	logLevel  string

	since, until time.Time // half-open; zero: no bound
	level        slog.Level
}

func (f *flags) register(root *cobra.Command) {
	p := root.PersistentFlags()
	p.SortFlags = false
	p.BoolVar(&f.json, "json", false, "print one JSON object a line")
	p.StringVar(&f.data, "data", "", "data directory (default $TOOLRUN_DATA, $XDG_STATE_HOME/toolrun, ~/.local/state/toolrun)")
	p.StringVar(&f.catalog, "catalog", "", "catalog (default $TOOLRUN_CATALOG, then tools.toml here or above, up to the repository root)")
	p.StringVar(&f.workspace, "workspace", "", "folder that the tools work in (default: this one)")
	p.StringVar(&f.session, "session", "", "only this session; for serve and call, the one to record under")
	p.StringVar(&f.sinceText, "since", "", "from this time on: RFC 3339, a date (midnight UTC), or an age such as 7d, 12h")
	p.StringVar(&f.untilText, "until", "", "before this time, written as for --since")
	p.BoolVar(&f.hot, "hot", false, "only what is not sealed in a month")
	p.StringVar(&f.role, "role", "", "role of the agent (default $TOOLRUN_ROLE)")
	p.StringVar(&f.logFile, "log", "", "write the log to this file instead of stderr")
	p.StringVar(&f.logLevel, "log-level", "warn", "debug, info, warn or error")
}

// check reads the values that flags alone cannot.
func (f *flags) check(now time.Time) error {
	for _, end := range []struct {
		flag, text string
		at         *time.Time
	}{{"--since", f.sinceText, &f.since}, {"--until", f.untilText, &f.until}} {
		if end.text == "" {
			continue
		}
		at, err := query.ParseTime(end.text, now)
		if err != nil {
			return fmt.Errorf("%s: %w", end.flag, err)
		}
		*end.at = at
	}
	if !f.until.IsZero() && f.until.Before(f.since) {
		return fmt.Errorf("--until %s is before --since %s", f.untilText, f.sinceText)
	}
	switch f.logLevel {
	case "debug", "info", "warn", "error":
		return f.level.UnmarshalText([]byte(f.logLevel))
	}
	return fmt.Errorf("--log-level %q: not one of debug, info, warn, error", f.logLevel)
}

// catalogPath is the catalog that was named, by flag or environment; explicit is false where toolrun has to look.
func (a *app) catalogPath() (path string, explicit bool) {
	if a.flags.catalog != "" {
		return a.flags.catalog, true
	}
	path = a.getenv("TOOLRUN_CATALOG")
	return path, path != ""
}

// role is --role, else $TOOLRUN_ROLE, else nothing.
func (a *app) role() string {
	if a.flags.role != "" {
		return a.flags.role
	}
	return a.getenv("TOOLRUN_ROLE")
}

// workspace is the folder that the tools work in, absolute and without symbolic links. Folders that would show a tool
// the whole machine, the whole home or toolrun's own data are refused (contract: `/`, $HOME, their parents and those of
// the data directory).
func (a *app) workspace(dataDir string) (string, error) {
	dir := a.flags.workspace
	if dir == "" {
		dir = "."
	}
	dir, err := realPath(dir)
	if err != nil {
		return "", &usageError{err: fmt.Errorf("workspace: %w", err)}
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", &usageError{err: fmt.Errorf("workspace %q: not a folder", dir)}
	}
	for _, k := range []struct{ what, path string }{
		{"the root of the file system", "/"}, {"the home folder", a.getenv("HOME")}, {"the data directory", dataDir},
	} {
		if k.path == "" {
			continue
		}
		path, err := realPath(k.path)
		if err != nil {
			continue // does not exist: nothing to protect
		}
		if within(dir, path) || k.path == dataDir && within(path, dir) {
			return "", &usageError{err: fmt.Errorf("workspace %q: it is %s, holds it or lies in it; start toolrun in the project's folder or name that with --workspace", dir, k.what)}
		}
	}
	return dir, nil
}

// realPath is path absolute and with its links resolved; of a path that does not exist yet, as far as it exists.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, os.ErrNotExist) || dir == filepath.Dir(dir) {
			return "", err
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// within says whether path is dir or below it; both are absolute and clean.
func within(dir, path string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
