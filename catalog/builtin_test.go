package catalog

import (
	"errors"
	"strings"
	"testing"
)

func TestBuiltinOutputBringsItsOwnParameters(t *testing.T) {
	out := tool(t, lines(`[tools.fetch]`, `builtin = "output"`, `preview = "20KiB"`))
	readOnly, destructive, openWorld := out.Annotations()
	if out.Builtin != BuiltinOutput || out.Risk != RiskRead || out.Program() != "" || out.Description == "" || !readOnly || destructive || openWorld {
		t.Errorf("%+v", out)
	}
	hash := strings.Repeat("0a", 32)
	a, err := out.Check([]byte(`{"hash":"` + hash + `"}`))
	if err != nil || a.Text(OutputHash) != hash || a.Int(OutputOffset) != 0 || a.Int(OutputLength) != 20<<10 || a.Argv() != nil || a.Stdin() != nil {
		t.Errorf("defaults: %+v, %v", a, err)
	}
	a, err = out.Check([]byte(`{"hash":"` + hash + `","offset":9007199254740991,"length":1.0e3}`))
	if err != nil || a.Int(OutputOffset) != 9007199254740991 || a.Int(OutputLength) != 1000 || a.Int(OutputHash) != 0 || a.Text(OutputOffset) != "" {
		t.Errorf("given: %+v, %v", a, err)
	}
	for args, field := range map[string]string{
		`{}`: OutputHash, `{"hash":"` + hash[1:] + `"}`: OutputHash, `{"hash":"../../etc/passwd"}`: OutputHash, `{"hash":"` + strings.ToUpper(hash) + `"}`: OutputHash,
		`{"hash":"` + hash + `","offset":-1}`: OutputOffset, `{"hash":"` + hash + `","offset":9007199254740992}`: OutputOffset,
		`{"hash":"` + hash + `","length":0}`: OutputLength, `{"hash":"` + hash + `","length":1048577}`: OutputLength,
		`{"hash":"` + hash + `","length":1.5}`: OutputLength,
	} {
		_, err := out.Check([]byte(args))
		var refused *ArgumentError
		if !errors.As(err, &refused) || refused.Field != field {
			t.Errorf("%s: %v, want a fault of %s", args, err, field)
		}
	}
}
