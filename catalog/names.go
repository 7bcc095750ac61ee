package catalog

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	validName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)        // MCP, tool names
	safeName  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)         // what no known client renames or drops
	paramName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`) // what model APIs take as the name of a property
)

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
