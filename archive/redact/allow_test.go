package redact

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// The allowlist for all rules is looked at only where distinct does not rule it out.
func TestDistinctAgreesWithTheAllowlist(t *testing.T) {
	const known = 13
	if len(allowedAnywhere.exprs) != known || len(strings.Fields(allowedAnywhere.words)) != 2 {
		t.Fatalf("%d expressions, %d words: look whether distinct still holds", len(allowedAnywhere.exprs), len(strings.Fields(allowedAnywhere.words)))
	}
	for _, e := range allowedAnywhere.exprs[2:] {
		if !regexp.MustCompile(`^\^(\\[${]|[/%@])`).MatchString(e) {
			t.Errorf("%s may begin with a letter", e)
		}
	}
	parts := []string{"true", "false", "null", "TRUE", "a", "aaaa", "A", "x1", "$", "${", "}", "{{", "%", "@", "/home/", "014df517-39d1-4453-b7b3-9930c563627c", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "9", "_", "-"}
	r := rand.New(rand.NewPCG(1, 2))
	both := 0
	for range 20000 {
		var b strings.Builder
		for range 1 + r.IntN(4) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		s := []byte(b.String())
		if has := allowedAnywhere.has(s, 0, len(s), s); has && distinct(s) {
			t.Fatalf("%q is allowed, but distinct", s)
		} else if has {
			both++
		}
	}
	if both < 100 {
		t.Error("hardly anything was allowed")
	}
}
