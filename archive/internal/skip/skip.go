// Package skip is how the tests of the record pass over what a host cannot do.
package skip

import (
	"os"
	"testing"
)

// For skips a test where the host lacks what it is about; with TOOLRUN_REQUIRE_SANDBOX=1, as in CI, it fails instead.
func For(t testing.TB, why ...any) {
	t.Helper()
	if os.Getenv("TOOLRUN_REQUIRE_SANDBOX") == "1" {
		t.Fatal(why...)
	}
	t.Skip(why...)
}
