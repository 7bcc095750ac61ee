package transcript

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Places finds transcripts where the agents keep them.
type Places struct {
	Getenv func(string) string // HOME, and the variables by which agents are told another place
}

// formats of clients as they name themselves to a server.
var formats = []struct{ client, format string }{
	{"claude", Claude}, {"codex", Codex}, {"gemini", Gemini}, {"opencode", OpenCode}, {"qwen", Qwen},
}

// FormatOf is the form of the client with this name/version, "" where none is known.
func FormatOf(client string) string {
	for _, f := range formats {
		if strings.HasPrefix(strings.ToLower(client), f.client) {
			return f.format
		}
	}
	return ""
}

// Find returns the files that may be of a session, sorted: those that are named for it, with those of its subagents; of
// clients that tell a server no session, those that were written after its first call. format "" is any.
func (p Places) Find(format, session string, first time.Time) []string {
	var list []string
	add := func(only string, since time.Time, parts ...string) {
		if format != "" && format != only || parts[0] == "" {
			return
		}
		found, err := filepath.Glob(filepath.Join(parts...))
		if err != nil {
			return // a session with the signs of a pattern in it
		}
		for _, path := range found {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && !info.ModTime().Before(since) {
				list = append(list, path)
			}
		}
	}
	home := p.Getenv("HOME")
	any := time.Time{}
	if session != "" && !strings.ContainsAny(session, `*?[\/`) {
		claude := p.in("CLAUDE_CONFIG_DIR", home, ".claude")
		add(Claude, any, claude, "projects", "*", session+".jsonl")
		add(Claude, any, claude, "projects", "*", session, "subagents", "*.jsonl")
		add(Codex, any, p.in("CODEX_HOME", home, ".codex"), "sessions", "*", "*", "*", "rollout-*-"+session+".jsonl")
		add(Qwen, any, under(home, ".qwen"), "projects", "*", "chats", session+".jsonl")
	}
	since := first.Add(-time.Minute)
	if !first.IsZero() && len(list) == 0 {
		add(Gemini, since, under(home, ".gemini"), "tmp", "*", "chats", "session-*.json*")
		data := p.in("XDG_DATA_HOME", home, ".local/share")
		for _, name := range []string{"opencode*.db", "opencode*.db-wal"} { // of other channels than latest opencode-CHANNEL.db
			add(OpenCode, since, data, "opencode", name)
		}
		add(OpenCode, since, data, "opencode", "storage", "session", "*", "ses_*.json")
		if db := p.Getenv("OPENCODE_DB"); filepath.IsAbs(db) {
			add(OpenCode, since, db)
			add(OpenCode, since, db+"-wal")
		}
		if format != "" { // a launch may have chosen the session of these
			add(Claude, since, p.in("CLAUDE_CONFIG_DIR", home, ".claude"), "projects", "*", "*.jsonl")
			add(Codex, since, p.in("CODEX_HOME", home, ".codex"), "sessions", "*", "*", "*", "rollout-*.jsonl")
			add(Qwen, since, under(home, ".qwen"), "projects", "*", "chats", "*.jsonl")
		}
	}
	for i, path := range list {
		list[i] = strings.TrimSuffix(path, "-wal") // newer than the database that it belongs to
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Written is when a transcript was written to last; zero where that cannot be told.
func Written(path string) (last time.Time) {
	for _, name := range []string{path, path + "-wal"} {
		if info, err := os.Stat(name); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

// in is the folder that a variable names, else name in the home folder; "" where neither is known.
func (p Places) in(variable, home, name string) string {
	if dir := p.Getenv(variable); filepath.IsAbs(dir) {
		return dir
	}
	return under(home, name)
}

func under(home, name string) string {
	if home == "" {
		return ""
	}
	return filepath.Join(home, name)
}
