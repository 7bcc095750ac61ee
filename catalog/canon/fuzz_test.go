package canon

import (
	"bytes"
	"encoding/json"
	"testing"
)

// Canonical bytes are a fixed point, stay JSON, and do not depend on white space around the value.
func FuzzCanonicalizeTwiceGivesTheSameBytes(f *testing.F) {
	f.Add([]byte(rfcSample))
	for _, s := range []string{`{"b":1,"a":[1e2,-0,9007199254740993]}`, `"\ud83d\ude00"`, `1e-400`, `{"":{}}`, `[0.1e1,1E+3]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		once, err := Canonicalize(in)
		if err != nil {
			return
		}
		if !json.Valid(once) {
			t.Fatalf("%q became %q, which is not JSON", in, once)
		}
		twice, err := Canonicalize(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q became %q, then %q, %v", in, once, twice, err)
		}
		spaced, err := Canonicalize(append(append([]byte(" \n"), in...), '\t'))
		if err != nil || !bytes.Equal(once, spaced) {
			t.Fatalf("%q with white space around it became %q, %v", in, spaced, err)
		}
	})
}
