package catalog

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// argvOf checks arguments and returns the argv after the program, or the sentence of the refusal.
func argvOf(t *testing.T, tool *Tool, args string) ([]string, string) {
	t.Helper()
	a, err := tool.Check([]byte(args))
	if err != nil {
		var refused *ArgumentError
		if !errors.As(err, &refused) {
			t.Fatalf("Check(%s): %v is not an ArgumentError", args, err)
		}
		return nil, err.Error()
	}
	return a.Argv()[1:], ""
}

func TestCommandIsFilledAsTheContractSays(t *testing.T) {
	pytest := lines(
		`[tools.a]`, `command = ["pytest", "-q", ["-k", "{expr}"], ["-v{verbose}"], ["{lf}"], "{args...}"]`, `risk = "READ"`,
		`[tools.a.params]`, `args = { type = "array", items = "string", dash = true }`, `expr = { type = "string" }`,
		`verbose = { type = "boolean" }`, `lf = { type = "boolean" }`)
	values := lines(
		`[tools.a]`, `command = ["x", "n={n}", ["{o}"], ["{l}"], "{s}:{s}", "{{{s}}", "{{}", ["fixed"], ["--each", "{l...}"]]`, `risk = "READ"`,
		`[tools.a.params]`, `n = { type = "number", default = 0.5 }`, `o = { type = "object" }`, `l = { type = "array" }`,
		`s = { type = "string", required = true }`)
	tests := []struct {
		name, catalog, args string
		want                []string
	}{
		{"nothing given", pytest, ``, []string{"-q"}},
		{"null is nothing", pytest, `null`, []string{"-q"}},
		{"nested array and spread", pytest, `{"args":["-x","a b",""],"expr":"one or two"}`, []string{"-q", "-k", "one or two", "-x", "a b", ""}},
		{"true prints nothing", pytest, `{"verbose":true,"lf":true}`, []string{"-q", "-v"}},
		{"false leaves the nested array out", pytest, `{"verbose":false,"lf":false}`, []string{"-q"}},
		{"a value after an option may begin with -", pytest, `{"expr":"-x"}`, []string{"-q", "-k", "-x"}},
		{"empty text stays an element", pytest, `{"expr":""}`, []string{"-q", "-k", ""}},
		{"default, brace and text around", values, `{"s":"é"}`, []string{"n=0.5", "é:é", "{é}", "{}", "fixed"}},
		{
			"objects and arrays are canonical JSON", values, `{"s":"","o":{"b":1e2,"a":[9007199254740993,-0,"\u003c\u2028"]},"l":[1,"x",{"k":null}]}`,
			[]string{"n=0.5", `{"a":[9007199254740993,0,"<` + "\u2028" + `"],"b":100}`, `[1,"x",{"k":null}]`, ":", "{}", "{}", "fixed", "--each", "1", "x", `{"k":null}`},
		},
		{"an empty array leaves its option out", values, `{"s":"","l":[]}`, []string{"n=0.5", "[]", ":", "{}", "{}", "fixed"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, refused := argvOf(t, tool(t, tt.catalog), tt.args)
			if refused != "" || !slices.Equal(got, tt.want) {
				t.Errorf("Check(%s)\n got %q %s\nwant %q", tt.args, got, refused, tt.want)
			}
		})
	}
}

// No shell ever sees a value, so whatever a shell would do with it, it arrives byte for byte as one element.
func TestValueArrivesByteForByte(t *testing.T) {
	printf := tool(t, lines(`[tools.a]`, `command = ["printf", "%s", "{s}"]`, `risk = "READ"`, `params.s = { type = "string", required = true }`))
	got, refused := argvOf(t, printf, `{"s":"$(touch PWN); `+"`touch PWN`"+` | touch PWN\n\" touch PWN"}`)
	want := "$(touch PWN); `touch PWN` | touch PWN\n\" touch PWN"
	if refused != "" || !slices.Equal(got, []string{"%s", want}) {
		t.Errorf("got %q %s", got, refused)
	}
}

func TestValueThatAProgramWouldReadAsAnOptionIsRefused(t *testing.T) {
	const refusal = `must not start with "-", since the program would read it as an option`
	tests := []struct{ command, params, args, field string }{
		{`["grep", "{p}", "f.txt"]`, `p = { type = "string", required = true }`, `{"p":"--help"}`, "p"},
		{`["grep", "{p}", "f.txt"]`, `p = { type = "string", required = true }`, `{"p":"-f/etc/passwd"}`, "p"},
		{`["grep", "{p}", "f.txt"]`, `p = { type = "string", required = true }`, `{"p":"-"}`, "p"},
		{`["grep", "--", "{p}", "f.txt"]`, `p = { type = "string", required = true }`, `{"p":"--help"}`, ""},
		{`["grep", "-e", "{p}", "f.txt"]`, `p = { type = "string", required = true }`, `{"p":"--help"}`, ""},
		{`["grep", "{p}", "f.txt"]`, `p = { type = "string", required = true, dash = true }`, `{"p":"--help"}`, ""},
		{`["grep", "--color=never", "{p}"]`, `p = { type = "string", required = true }`, `{"p":"--help"}`, "p"},
		{`["cat", "-", "{p}"]`, `p = { type = "string", required = true }`, `{"p":"--help"}`, "p"},
		{`["cat", "{p}.txt"]`, `p = { type = "string", required = true }`, `{"p":"-n"}`, "p"},
		{`["cat", "x{p}"]`, `p = { type = "string", required = true }`, `{"p":"-n"}`, ""},
		{`["kill", "{n}"]`, `n = { type = "integer", required = true }`, `{"n":-1}`, "n"},
		{`["ls", "{l...}"]`, `l = { type = "array", items = "string" }`, `{"l":["a","-R"]}`, "l[1]"},
		{`["ls", "--", "{l...}"]`, `l = { type = "array", items = "string" }`, `{"l":["-R","-a"]}`, ""},
		{`["ls", "-I", "{l...}"]`, `l = { type = "array", items = "string" }`, `{"l":["-R","-a"]}`, "l[1]"},
		{`["ls", "--", "{p}", "{l...}"]`, `l = { type = "array", items = "string" }` + "\n" + `p = { type = "string", required = true }`, `{"p":"-x","l":["-R"]}`, ""},
		{`["env", "--", "ls", "{p}"]`, `p = { type = "string", required = true }`, `{"p":"-R"}`, "p"},
		{`["ls", ["-I", "{q}"], "{p}"]`, `q = { type = "string" }` + "\n" + `p = { type = "string", required = true }`, `{"p":"-R","q":"x"}`, "p"},
		{`["ls", ["{p}"]]`, `p = { type = "string" }`, `{"p":"-R"}`, "p"},
	}
	for _, tt := range tests {
		got, refused := argvOf(t, tool(t, lines(`[tools.a]`, `command = `+tt.command, `risk = "READ"`, `[tools.a.params]`, tt.params)), tt.args)
		want := ""
		if tt.field != "" {
			want = `argument "` + tt.field + `": ` + refusal
		}
		if refused != want {
			t.Errorf("%s with %s: argv %q, refused %q, want %q", tt.command, tt.args, got, refused, want)
		}
	}
}

func TestNumbersReachTheToolDigitForDigit(t *testing.T) {
	of := func(kind string) *Tool {
		return tool(t, lines(`[tools.a]`, `command = ["printf", "%s", "{n}"]`, `stdin = "{n}"`, `risk = "READ"`,
			`params.n = { type = "`+kind+`", required = true, dash = true }`))
	}
	integer, number := of("integer"), of("number")
	for _, digits := range []string{"9007199254740993", "9223372036854775807", "-9223372036854775808", "18446744073709551616", "1e2", "1.0", "-0", "0"} {
		for _, tool := range []*Tool{integer, number} {
			a, err := tool.Check([]byte(`{"n":` + digits + `}`))
			if err != nil || a.Argv()[2] != digits || string(a.Stdin()) != digits {
				t.Errorf("%s: %v", digits, err)
			}
		}
	}
	for _, digits := range []string{"0.1", "9007199254740993.5", "1e-2"} {
		if got, _ := argvOf(t, number, `{"n":`+digits+`}`); !slices.Equal(got, []string{"%s", digits}) {
			t.Errorf("%s: %q", digits, got)
		}
		if _, refused := argvOf(t, integer, `{"n":`+digits+`}`); refused != `argument "n": must be an integer, not a number` {
			t.Errorf("%s as an integer: %q", digits, refused)
		}
	}
}

func TestBoundsAndEnumsHoldBeyondTheDigitsOfADouble(t *testing.T) {
	a := tool(t, lines(`[tools.a]`, `command = ["x", "{n}", ["{e}"]]`, `risk = "READ"`, `[tools.a.params]`,
		`n = { type = "integer", required = true, min = 9007199254740993, max = 9007199254740995 }`, `e = { type = "integer", enum = [9007199254740993] }`))
	for args, want := range map[string]string{
		`{"n":9007199254740992}`:                        `argument "n": must be at least 9007199254740993`,
		`{"n":9007199254740993}`:                        "",
		`{"n":9007199254740995}`:                        "",
		`{"n":9007199254740996}`:                        `argument "n": must be at most 9007199254740995`,
		`{"n":9007199254740994,"e":9007199254740993}`:   "",
		`{"n":9007199254740994,"e":9007199254740993.0}`: "",
		`{"n":9007199254740994,"e":9007199254740992}`:   `argument "e": must be one of 9007199254740993`,
	} {
		if _, refused := argvOf(t, a, args); refused != want {
			t.Errorf("%s: %q, want %q", args, refused, want)
		}
	}
}

func TestNULIsRefusedInAnArgumentAndPassesThroughStdin(t *testing.T) {
	const text = `{"s":"a\u0000b"}`
	argv := tool(t, lines(`[tools.a]`, `command = ["x", "{s}", "{l...}"]`, `risk = "READ"`, `[tools.a.params]`,
		`s = { type = "string", default = "" }`, `l = { type = "array" }`))
	for args, field := range map[string]string{text: "s", `{"l":["","\u0000"]}`: "l[1]"} {
		if _, refused := argvOf(t, argv, args); refused != `argument "`+field+`": must not hold a NUL character, which no argument of a program can carry` {
			t.Errorf("%s: %q", args, refused)
		}
	}
	if got, refused := argvOf(t, argv, `{"l":[{"\u0000":1}]}`); refused != "" || got[1] != `{"\u0000":1}` {
		t.Errorf("a NUL in JSON is an escape: %q %s", got, refused)
	}
	stdin := tool(t, lines(`[tools.a]`, `command = ["cat"]`, `stdin = "{s}"`, `risk = "READ"`, `params.s = { type = "string" }`))
	a, err := stdin.Check([]byte(text))
	if err != nil || string(a.Stdin()) != "a\x00b" {
		t.Errorf("stdin %q, %v", a.Stdin(), err)
	}
	if a, err := stdin.Check(nil); err != nil || a.Stdin() == nil || len(a.Stdin()) != 0 {
		t.Errorf("an absent parameter is an empty stdin: %v, %v", a.Stdin(), err)
	}
}

func TestStdinIsNilOnlyWhereNoneIsDeclared(t *testing.T) {
	a, err := tool(t, head).Check(nil)
	if err != nil || a.Stdin() != nil {
		t.Errorf("%v, %v", a.Stdin(), err)
	}
	mixed := tool(t, head+lines(`stdin = "a {{{o}} {b}\n"`, `[tools.a.params]`, `o = { type = "object", required = true }`, `b = { type = "boolean", default = false }`))
	if a, err := mixed.Check([]byte(`{"o":{"z":1,"y":"é"}}`)); err != nil || string(a.Stdin()) != `a {{"y":"é","z":1}} false`+"\n" {
		t.Errorf("%q, %v", a.Stdin(), err)
	}
}

func TestPathsAreHandedOut(t *testing.T) {
	a, err := tool(t, lines(`[tools.a]`, `command = ["x", "{p}", "{l...}", ["{q}"]]`, `risk = "READ"`, `[tools.a.params]`,
		`p = { type = "string", format = "path", default = "." }`, `l = { type = "array", items = "string", format = "path" }`,
		`q = { type = "string", format = "path" }`)).Check([]byte(`{"l":["a","../b"]}`))
	want := []PathParam{{"l[0]", "a"}, {"l[1]", "../b"}, {"p", "."}}
	if err != nil || !slices.Equal(a.PathParams(), want) {
		t.Errorf("%v, %v", a.PathParams(), err)
	}
	written := tool(t, head+`schema = { type = "object", properties = { p = { type = "string", format = "path" } } }`+"\n")
	if a, err := written.Check([]byte(`{"p":"x"}`)); err != nil || !slices.Equal(a.PathParams(), []PathParam{{"p", "x"}}) {
		t.Errorf("in a schema: %v, %v", a.PathParams(), err)
	}
}

func TestRedactionMarkIsRefusedWhereverItStands(t *testing.T) {
	a := tool(t, lines(`[tools.a]`, `command = ["x"]`, `stdin = "{o}"`, `risk = "READ"`, `params.o = { type = "object" }`))
	for args, field := range map[string]string{
		`{"o":{"k":["","x [REDACTED] y"]}}`: "o.k[1]",
		`{"o":{"k":"[REDACTED\u005d"}}`:     "o.k",
		`{"o":{"[REDACTED]":1}}`:            "o",
		`{"zz":"[REDACTED]"}`:               "zz",
	} {
		_, refused := argvOf(t, a, args)
		if want := `argument "` + field + `": holds the mark [REDACTED]`; !strings.HasPrefix(refused, want) {
			t.Errorf("%s: %q, want %q", args, refused, want)
		}
	}
	if _, refused := argvOf(t, a, `{"o":{"k":"[redacted] REDACTED"}}`); refused != "" {
		t.Errorf("what is not the mark: %q", refused)
	}
}
