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

// nameWarnings tells of names that some client would rename, drop, or take for each other.
func nameWarnings(names []string) []string {
	var warnings []string
	folded := make(map[string]string)
	for _, name := range names {
		if !safeName.MatchString(name) {
			warnings = append(warnings, fmt.Sprintf(
				"tool %s: some clients rename or drop this name; [a-z][a-z0-9_]{0,39} is safe everywhere", name))
		}
		key := strings.ToLower(strings.NewReplacer("-", "_", ".", "_").Replace(name))
		if other, ok := folded[key]; ok {
			warnings = append(warnings, fmt.Sprintf("tools %s and %s: some clients take these two names for one", other, name))
		}
		folded[key] = name
	}
	return warnings
}

// minRuntimePids is the number of threads under which Go, Node and JVM programs fail to start: the kernel counts each
// thread against limits.pids.
const minRuntimePids = 20

// notECMA finds what RE2 reads in a pattern and the regular expressions of JSON Schema, which clients check with, do not.
var notECMA = regexp.MustCompile(`\(\?[a-zA-Z-]*[:)]|\(\?P<|\\[AzQEpPC]|\[\[:`)

// toolWarnings tells of what is allowed in one tool and will still surprise. used is the parameters that command and
// stdin refer to.
func toolWarnings(t *Tool, used map[string]bool) []string {
	var warnings []string
	warn := func(format string, args ...any) {
		warnings = append(warnings, "tool "+t.Name+": "+fmt.Sprintf(format, args...))
	}
	for _, name := range t.names {
		if !used[name] {
			warn("the parameter %s is used by neither command nor stdin", name)
		}
		if s := t.compiled.Properties[name]; s.Pattern != nil && notECMA.MatchString(strings.ReplaceAll(s.Pattern.String(), "(?:", "(")) {
			warn("the pattern of %s is RE2's own; clients that check the schema themselves may not read it", name)
		}
	}
	if t.Description == "" {
		warn("it has no description, by which a model chooses it")
	}
	if t.Limits.Pids < minRuntimePids {
		warn("limits.pids = %d counts threads too; Go, Node and Java programs need about %d", t.Limits.Pids, minRuntimePids)
	}
	return warnings
}
