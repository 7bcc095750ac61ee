package redact

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// Each rule looks at a bounded window. Runs that end at its bound, and inputs that do, one byte after the other.
func TestRunsAtTheBoundOfAWindow(t *testing.T) {
	rules := New(nil)
	for _, lit := range []string{"eyJ", "password=", `password="`, "Authorization: Basic ", "Authorization: ", "basic ", "https://u:", "https://", "Cookie: a=", "curl -u ", "LS0tLS1CRUdJTi", "X-Amz-Signature=",
		"kind: Secret\ndata:\n  a: ", "data:\n", `"data": {"a": "`, `"data": {`, "sk-", "twitter_key = ", "ops_eyJ", "fm2_", "xapp-1-", "facebook ", "key", "secret ", "token\t", "12345678:AA", "1Q~", "abcdef_", "--user "} {
		for _, fill := range []string{"a", "1", "aB3", " ", "=", "\\", "aB3.", "a: b\n  ", "a-"} {
			in := lit + strings.Repeat(fill, (kubeWindow+64)/len(fill))
			want := rules.Text(in)
			for _, step := range []int{1, 7} {
				if step == 1 && len(lit) > 6 && fill != "aB3" {
					continue
				}
				if got, n := streamed(t, rules, in, every(len(in), step)); got != want.String() || n != want.Redactions() {
					t.Fatalf("%q and %q by %d: %d marks, want %d", lit, fill, step, n, want.Redactions())
				}
			}
		}
	}
}

// Whatever the input ends with, no rule may look behind it.
func TestEveryBeginningOfTheSamples(t *testing.T) {
	rules := New(declared)
	r := rand.New(rand.NewPCG(3, rand.Uint64()))
	list := allSamples(t)
	for range 300 {
		in := []byte(list[r.IntN(len(list))].Text)
		for n := range min(len(in), 600) {
			whole := bytes.Clone(in[:n:n])
			apply(rules.index(), whole)
			s := scanner{index: rules.index(), buf: whole}
			if err := s.pass(0, func([]byte) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
}
