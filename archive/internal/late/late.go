// Package late makes what a process may need when it first needs it: every command starts, and most judge no transcript.
package late

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression that is compiled when it is first used; it panics then where regexp.MustCompile would.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
