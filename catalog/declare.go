package catalog

import (
	"slices"
	"strings"
	"time"
)

// What a tool gets where neither it nor [defaults] says more.
const (
	defaultTimeout      = 2 * time.Minute
	defaultBackoff      = time.Second
	defaultPreviewBytes = 10 << 10
	maxPreviewBytes     = 16 << 20
	maxConcurrency      = 1 << 16
)

// declare reads one tool. Its faults are in l.errs; the tool it returns is used only if there are none.
func (l *loader) declare(name string, t *table) *Tool {
	tool := &Tool{Name: name, declared: t.here(), params: make(map[string]*param)}
	tool.Description = t.str("description", "")
	tool.Title = t.str("title", "")
	tool.Builtin = t.oneOf("builtin", "", BuiltinOutput)
	l.readBehaviour(tool, t)
	tool.Limits = readLimits(t.child("limits"))
	tool.Sandbox = readSandbox(t.child("sandbox"))
	l.readEnv(tool, t)
	l.readRisk(tool, t)
	if tool.Builtin != "" {
		l.readBuiltin(tool, t)
	} else {
		l.readSchema(tool, t)
		l.readCommand(tool, t)
		checkStay(tool, t)
	}
	t.done()
	tool.seal()
	return tool
}

// readDefaults keeps [defaults] and checks it once by itself, so that a fault in it is found without any tool.
func (l *loader) readDefaults(defaults layer) {
	for _, key := range []string{"description", "command", "params"} {
		if _, ok := defaults.values[key]; ok {
			defaults.src.fail(defaults.at.key(key), "belongs to one tool and cannot be a default")
			delete(defaults.values, key)
		}
	}
	l.defaults = &defaults

	probe := newTable(defaults)
	tool := &Tool{}
	for _, key := range []string{"description", "title", "builtin", "command", "params", "schema", "schema_file", "stdin"} {
		probe.known[key] = true
	}
	l.readBehaviour(tool, probe)
	readLimits(probe.child("limits"))
	readSandbox(probe.child("sandbox"))
	l.readEnv(tool, probe)
	probe.oneOf("risk", RiskRead, risks...)
	probe.oneOf("approval", ApprovalAuto, ApprovalAuto, ApprovalAsk, ApprovalDeny)
	probe.done()
}

// readBehaviour reads the keys that say how a call runs.
func (l *loader) readBehaviour(tool *Tool, t *table) {
	tool.Cwd = notEmpty(t, "cwd", ".")
	tool.User = notEmpty(t, "user", "")
	tool.Terminal = readTerminal(tool, t)
	readStderr(tool, t)
	tool.BestEffort = t.oneOf("isolation", "required", "required", "best-effort") == "best-effort"
	readMode(tool, t)
	tool.Concurrency = int(t.integer("concurrency", 0, 1, maxConcurrency))
	tool.Optional = t.boolean("optional", false)
	tool.Redact = t.boolean("redact", true)
	tool.PreviewBytes = t.size("preview", defaultPreviewBytes, 1, maxPreviewBytes)
	tool.OKExitCodes = readExitCodes(t)
	tool.Retry = readRetry(t.child("retry"))
	tool.Toolchains = readToolchains(t)
}

func notEmpty(t *table, key, def string) string {
	s := t.str(key, def)
	if _, at, ok := t.get(key); ok && strings.TrimSpace(s) == "" {
		at.fail("must not be empty")
	}
	return s
}

func readExitCodes(t *table) []int {
	v, at, ok := t.get("ok_exit_codes")
	if !ok {
		return []int{0}
	}
	array, isArray := v.([]any)
	if !isArray || len(array) == 0 {
		at.fail("must be an array of exit codes from 0 to 255 that is not empty")
		return []int{0}
	}
	var codes []int
	for i, element := range array {
		n, isInt := element.(int64)
		if !isInt || n < 0 || n > 255 {
			place{at.src, at.at.index(i)}.fail("must be an integer from 0 to 255")
			continue
		}
		codes = append(codes, int(n))
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

func readRetry(t *table) Retry {
	r := Retry{On: []string{"timeout", "exit:75"}, Backoff: defaultBackoff}
	if t == nil {
		return r
	}
	r.Max = int(t.integer("max", 0, 0, 100))
	r.On = t.list("on", r.On...)
	r.Backoff = t.duration("backoff", r.Backoff, 0)
	if _, at, ok := t.get("on"); ok {
		for i, on := range r.On {
			if !slices.Contains(retryOutcomes, on) && !isExit(on) {
				place{at.src, at.at.index(i)}.fail(`must be "timeout", "signal", "oom", "cpu_limit", "output_limit", "exit" or "exit:N" with N from 0 to 255, not ` + quote(on))
			}
		}
	}
	t.done()
	return r
}

// retryOutcomes are the ends of a tool that another attempt may follow; all else was refused, taken back, or is toolrun's.
var retryOutcomes = []string{"timeout", "signal", "oom", "cpu_limit", "output_limit", "exit"}

func isExit(s string) bool {
	code, ok := strings.CutPrefix(s, "exit:")
	return ok && isDigits(code) && len(code) <= 3 && (len(code) < 3 || code <= "255") && (code == "0" || code[0] != '0')
}

func readToolchains(t *table) Toolchains {
	v, at, ok := t.get("toolchains")
	switch s := v.(type) {
	case nil:
		if !ok {
			return Toolchains{Auto: true}
		}
	case string:
		if s != "auto" && s != "none" {
			at.fail(`must be "auto", "none" or an array of program names and absolute paths, not ` + quote(s))
		}
		return Toolchains{Auto: s == "auto"}
	case []any:
		programs := t.list("toolchains")
		for i, p := range programs {
			if strings.Contains(p, "/") && !strings.HasPrefix(p, "/") {
				place{at.src, at.at.index(i)}.fail("must be a program name or an absolute path, not " + quote(p))
			}
		}
		return Toolchains{Programs: programs}
	}
	at.fail(`must be "auto", "none" or an array of program names and absolute paths, not ` + kindOf(v))
	return Toolchains{Auto: true}
}
