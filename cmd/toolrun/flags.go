package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
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
	p.StringVar(&f.session, "session", "", "only this session")
	p.StringVar(&f.sinceText, "since", "", "from this time on: RFC 3339, a date (midnight UTC), or an age such as 7d, 12h")
	p.StringVar(&f.untilText, "until", "", "before this time, written as for --since")
	p.StringVar(&f.role, "role", "", "role of the agent (default $TOOLRUN_ROLE)")
	p.StringVar(&f.logFile, "log", "", "write the log to this file instead of stderr")
	p.StringVar(&f.logLevel, "log-level", "warn", "debug, info, warn or error")
}

// check reads the values that flags alone cannot.
func (f *flags) check(now time.Time) error {
	var err error
	if f.since, err = parseTime(f.sinceText, now); err != nil {
		return fmt.Errorf("--since %q: %w", f.sinceText, err)
	}
	if f.until, err = parseTime(f.untilText, now); err != nil {
		return fmt.Errorf("--until %q: %w", f.untilText, err)
	}
	switch f.logLevel {
	case "debug", "info", "warn", "error":
		return f.level.UnmarshalText([]byte(f.logLevel))
	}
	return fmt.Errorf("--log-level %q: not one of debug, info, warn, error", f.logLevel)
}

var errTime = errors.New("not a time: want 2026-11-30T18:05:12.123Z, 2026-11-30 or 7d")

// parseTime reads RFC 3339, a date at midnight UTC, or an age before now in weeks, days, hours, minutes or seconds.
func parseTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	units := map[byte]time.Duration{'w': 7 * 24 * time.Hour, 'd': 24 * time.Hour, 'h': time.Hour, 'm': time.Minute, 's': time.Second}
	unit, ok := units[text[len(text)-1]]
	n, err := strconv.ParseInt(text[:len(text)-1], 10, 32)
	if !ok || err != nil || n < 0 || n > int64(1<<63-1)/int64(unit) {
		return time.Time{}, errTime
	}
	return now.Add(-time.Duration(n) * unit).UTC(), nil
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
	kept := []struct{ what, path string }{{"the root of the file system", "/"}, {"the home folder", a.getenv("HOME")}, {"the data directory", dataDir}}
	for _, k := range kept {
		if k.path == "" {
			continue
		}
		path, err := realPath(k.path)
		if err != nil {
			continue // does not exist: nothing to protect
		}
		if within(dir, path) {
			return "", &usageError{err: fmt.Errorf("workspace %q: is or contains %s; start toolrun in the project's folder or name it with --workspace", dir, k.what)}
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
