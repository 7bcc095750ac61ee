package ledger

import (
	"slices"
	"strings"
	"testing"

	"toolrun/archive/redact"
)

func TestObjectsOfARow(t *testing.T) {
	in, out, errs, argv := strings.Repeat("1", 64), strings.Repeat("2", 64), strings.Repeat("3", 64), strings.Repeat("4", 64)
	all := Row{InputHash: in, OutputHash: OrNull(out), StderrHash: OrNull(errs), Argv: ArgvHash(argv)}
	if got := all.Objects(); !slices.Equal(got, []string{in, out, errs, argv}) {
		t.Errorf("%v", got)
	}
	all.Payloads = "hash"
	if got := all.Objects(); got != nil {
		t.Errorf("a row without content names %v", got)
	}
	refused := Row{InputHash: in, Argv: redact.New(nil).Strings([]string{`{"sha256":"`, argv})}
	if got := refused.Objects(); !slices.Equal(got, []string{in}) {
		t.Errorf("%v", got)
	}
	if parsed, err := ParseRow(all.Append(nil)); err != nil || parsed.Argv.String() != `{"sha256":"`+argv+`"}` {
		t.Errorf("%v, argv %s", err, parsed.Argv)
	}
}
