package claims

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled when it is first used: they are many, and few commands judge sentences.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
