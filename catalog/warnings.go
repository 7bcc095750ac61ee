package catalog

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	validName = nameForm{128, regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)}        // MCP, tool names
	safeName  = nameForm{40, regexp.MustCompile(`^[a-z][a-z0-9_]*$`)}         // what no known client renames or drops
	paramName = nameForm{64, regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)} // what model APIs take as the name of a property
)

// nameForm is what names of a kind look like. How long they may be is counted: a bound in a regular expression is as many copies
// of what it bounds, and each start would make them.
type nameForm struct {
	most int // bytes; the forms are of ASCII
	form *regexp.Regexp
}

func (n nameForm) MatchString(s string) bool { return len(s) <= n.most && n.form.MatchString(s) }

func checkName(name string) string {
	if validName.MatchString(name) {
		return ""
	}
	return "the name of a tool is 1 to 128 of A-Z a-z 0-9 _ . -"
}

// warn keeps a sentence about what was written at a place. One of the root of a file has no key.
func (l *loader) warn(at place, format string, args ...any) {
	l.warnings = append(l.warnings, at.says(fmt.Sprintf(format, args...)))
}

// warnNames tells of names that some client would rename, drop, or take for each other.
func (l *loader) warnNames(names []string) {
	folded := make(map[string]string)
	for _, name := range names {
		if !safeName.MatchString(name) {
			l.warn(l.declared[name], "some clients rename or drop the name %s; [a-z][a-z0-9_]{0,39} is safe everywhere", name)
		}
		key := strings.ToLower(strings.NewReplacer("-", "_", ".", "_").Replace(name))
		if other, ok := folded[key]; ok {
			l.warn(l.declared[name], "some clients take the two names %s and %s for one", other, name)
		}
		folded[key] = name
	}
}

// minRuntimePids is the number of threads under which Go, Node and JVM programs fail to start: the kernel counts each
// thread against limits.pids.
const minRuntimePids = 20

// notECMA finds what RE2 reads in a pattern and the regular expressions of JSON Schema, which clients check with, do not.
var notECMA = regexp.MustCompile(`\(\?[a-zA-Z-]*[:)]|\(\?P<|\\[AzQEpPC]|\[\[:`)

// warnTool tells of what is allowed in one tool and will still surprise. used is the parameters that command and stdin
// refer to.
func (l *loader) warnTool(tool *Tool, t *table, used map[string]bool) {
	here := t.here()
	for _, name := range tool.names {
		at := here.key("params", name)
		if !t.has("params") {
			at = here // a schema, perhaps of another file
		}
		if !used[name] {
			l.warn(at, "the parameter %s is used by neither command nor stdin", name)
		}
		p := tool.compiled.Properties[name]
		if p.Pattern != nil && notECMA.MatchString(strings.ReplaceAll(p.Pattern.String(), "(?:", "(")) {
			l.warn(at, "the pattern of %s is RE2's own; clients that check the schema themselves may not read it", name)
		}
		if declared := tool.params[name]; declared.required && declared.def != nil {
			l.warn(at, "the default of %s is never used, as the parameter is required: take one of the two out", name)
		}
	}
	if tool.Description == "" {
		l.warn(here, "the tool has no description, by which a model chooses it")
	}
	if tool.Limits.Pids < minRuntimePids {
		_, at, _ := t.get("limits")
		l.warn(at.key("pids"), "pids = %d counts threads too; Go, Node and Java programs need about %d", tool.Limits.Pids, minRuntimePids)
	}
	if _, at, ok := t.get("command"); ok {
		if advice := scriptAdvice(tool.command); advice != "" {
			l.warn(at, "%s", advice)
		}
	}
}
