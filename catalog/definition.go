package catalog

import (
	"encoding/json"
	"maps"
	"slices"
)

// definition returns the canonical JSON of a tool's effective declaration, whose SHA-256 is definition_sha256. The name
// is not in it: catalog_definition_sha256 is over {name: definition_sha256}. Each key is always there:
//
//	approval, builtin ("" where none), command (as written: strings and nested arrays; [] for a builtin), concurrency
//	(0 is none), cwd, dash (sorted names of the parameters with dash = true), description, env ({variable: value or
//	"$secret:NAME"}, never a secret's value), env_pass, isolation, limits {cpu, cpu_time_ms, file_size_bytes, files,
//	memory_bytes, output_bytes, output_total_bytes, pids, swap_bytes}, mode, ok_exit_codes (sorted), optional,
//	path (sorted names of the parameters with format = "path"), preview_bytes, pty (false or {cols, rows}), redact, retry
//	{backoff_ms, max, on}, risk, sandbox {cache, hide, network ("none", "host" or a sorted array), ptrace, read, write}, schema
//	(Tool.Schema, in place of params, schema and schema_file), stderr ("merge" with a pty), stdin (null where none), timeout_ms, title,
//	toolchains ("auto", "none" or an array), user ("" is toolrun's own)
//
// The tools that a mode makes have two keys more: idle_ms (0 where none) and verb.
//
// Paths stand as the catalog writes them; nothing that was looked up on the host is in it.
func definition(t *Tool) json.RawMessage {
	env := make(map[string]string, len(t.Env))
	for name, v := range t.Env {
		env[name] = v.Value
		if v.Secret != "" {
			env[name] = secretPrefix + v.Secret
		}
	}
	var stdin any
	if t.stdin != nil {
		stdin = t.stdin.source()
	}
	d := map[string]any{
		"approval": t.Approval, "builtin": t.Builtin, "command": commandSource(t.command), "concurrency": t.Concurrency,
		"cwd": t.Cwd, "dash": t.paramsThat(func(p *param) bool { return p.dash }), "description": t.Description, "env": env,
		"env_pass": some(t.EnvPass), "isolation": choose(t.BestEffort, "best-effort", "required"),
		"limits": limitsObject(t.Limits), "mode": t.Mode, "ok_exit_codes": t.OKExitCodes, "optional": t.Optional,
		"path": t.paramsThat(func(p *param) bool { return p.path }), "preview_bytes": t.PreviewBytes, "pty": t.Terminal.object(),
		"redact": t.Redact,
		"retry":  map[string]any{"backoff_ms": t.Retry.Backoff.Milliseconds(), "max": t.Retry.Max, "on": some(t.Retry.On)},
		"risk":   t.Risk,
		"sandbox": map[string]any{
			"cache": some(t.Sandbox.Cache), "hide": some(t.Sandbox.Hide), "network": t.Sandbox.network(), "ptrace": t.Sandbox.Ptrace,
			"read": some(t.Sandbox.Read), "write": some(t.Sandbox.Write),
		},
		"schema": t.Schema, "stderr": choose(t.StderrMerge, "merge", "separate"), "stdin": stdin,
		"timeout_ms": t.Timeout.Milliseconds(), "title": t.Title, "toolchains": t.Toolchains.object(), "user": t.User,
	}
	if t.Verb != "" {
		d["idle_ms"], d["verb"] = t.Idle.Milliseconds(), t.Verb
	}
	return canonical(d)
}

func limitsObject(l Limits) map[string]any {
	return map[string]any{
		"cpu": l.CPUs, "cpu_time_ms": l.CPUTime.Milliseconds(), "file_size_bytes": l.FileSizeBytes, "files": l.Files,
		"memory_bytes": l.MemoryBytes, "output_bytes": l.OutputBytes, "output_total_bytes": l.OutputTotalBytes,
		"pids": l.Pids, "swap_bytes": l.SwapBytes,
	}
}

// network is the array of hosts where there is one.
func (s Sandbox) network() any {
	if s.Network == NetworkHosts {
		return s.Hosts
	}
	return s.Network
}

func (c Toolchains) object() any {
	switch {
	case c.Auto:
		return "auto"
	case len(c.Programs) == 0:
		return "none"
	}
	return c.Programs
}

// commandSource writes a command again as the catalog does.
func commandSource(command []argument) []any {
	source := []any{}
	for _, a := range command {
		if a.group != nil {
			source = append(source, commandSource(a.group))
		} else {
			source = append(source, a.text.source())
		}
	}
	return source
}

func (t *Tool) paramsThat(is func(*param) bool) []string {
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(t.params)) {
		if is(t.params[name]) {
			names = append(names, name)
		}
	}
	return names
}

// some makes a nil list an empty one, which JSON writes as [].
func some(list []string) []string { return append([]string{}, list...) }

func choose(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}
