package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	independent "github.com/google/jsonschema-go/jsonschema"
)

// A tool with one parameter for each thing that a check can find.
var every = head + lines(`[tools.a.schema]`, `type = "object"`, `required = ["must"]`, `maxProperties = 9`, `[tools.a.schema.properties]`,
	`must = {}`, `i = { type = "integer", minimum = 2, maximum = 7, multipleOf = 2 }`, `x = { exclusiveMinimum = 0.5, exclusiveMaximum = 1.5 }`,
	`s = { type = "string", minLength = 2, maxLength = 4, pattern = "^[a-z]*$" }`, `e = { enum = ["on", "off", 1] }`, `c = { const = "k" }`,
	`l = { type = "array", items = { type = "string" }, minItems = 1, maxItems = 2, uniqueItems = true }`,
	`o = { type = ["object", "null"], properties = { k = { type = "boolean" } }, required = ["k"], additionalProperties = false, minProperties = 1 }`,
	`any = { anyOf = [{ type = "string" }, { type = "integer" }] }`, `one = { oneOf = [{ type = "integer" }, { type = "number" }] }`,
	`not = { not = { type = "string" } }`, `never = false`, `has = { contains = { const = 1 } }`, `r = { "$ref" = "#/$defs/r" }`,
	`[tools.a.schema."$defs"]`, `r = { type = "object", properties = { r = { "$ref" = "#/$defs/r" }, leaf = { type = "string" } } }`)

// The values of these arguments hold hunter2, which no sentence may repeat.
func TestArgumentErrorNamesTheFieldAndNeverEchoesAValue(t *testing.T) {
	a := tool(t, every)
	tests := []struct{ args, want string }{
		{`{}`, `argument "must": is required`},
		{`{"must":1,"zz":"hunter2"}`, `argument "zz": is not a parameter of this tool; it takes any, c, e, has, i, l, must, never, not, o, one, r, s, x`},
		{`{"must":1,"i":"hunter2"}`, `argument "i": must be an integer, not a string`},
		{`{"must":1,"i":1}`, `argument "i": must be at least 2; argument "i": must be a multiple of 2`},
		{`{"must":1,"i":8}`, `argument "i": must be at most 7`},
		{`{"must":1,"x":0.5}`, `argument "x": must be above 0.5`},
		{`{"must":1,"x":1.5}`, `argument "x": must be below 1.5`},
		{`{"must":1,"s":"h"}`, `argument "s": must have at least 2 characters, not 1`},
		{`{"must":1,"s":"hunter"}`, `argument "s": must have at most 4 characters, not 6`},
		{`{"must":1,"s":"hunter2"}`, `argument "s": must have at most 4 characters, not 7; argument "s": must match the pattern ^[a-z]*$`},
		{`{"must":1,"e":"hunter2"}`, `argument "e": must be one of "on", "off", 1`},
		{`{"must":1,"c":"hunter2"}`, `argument "c": must be "k"`},
		{`{"must":1,"l":[]}`, `argument "l": must have at least 1 item, not 0`},
		{`{"must":1,"l":["hunter2","hunter2"]}`, `argument "l": must not hold an item twice`},
		{`{"must":1,"l":["hunter2","b","c"]}`, `argument "l": must have at most 2 items, not 3`},
		{`{"must":1,"l":["hunter2",{"hunter2":1}]}`, `argument "l[1]": must be a string, not an object`},
		{`{"must":1,"o":{"k":"hunter2"}}`, `argument "o.k": must be a boolean, not a string`},
		{`{"must":1,"o":{"k":true,"z":"hunter2"}}`, `argument "o.z": is not a parameter of this tool`},
		{`{"must":1,"o":"hunter2"}`, `argument "o": must be null or an object, not a string`},
		{`{"must":1,"any":["hunter2"]}`, `argument "any": fits none of the forms that the schema allows`},
		{`{"must":1,"one":1}`, `argument "one": must fit exactly one of the forms that the schema allows`},
		{`{"must":1,"not":"hunter2"}`, `argument "not": must not be what the schema excludes`},
		{`{"must":1,"never":"hunter2"}`, `argument "never": must not be given here`},
		{`{"must":1,"has":["hunter2"]}`, `argument "has": must hold an item that the schema asks for`},
		{`{"must":1,"r":{"r":{"r":{"leaf":7}}}}`, `argument "r.r.r.leaf": must be a string, not a number`},
		{`{"must":1,"i":"a","s":1,"l":2}`, `argument "i": must be an integer, not a string; argument "l": must be an array, not a number; argument "s": must be a string, not a number`},
		{`["hunter2"]`, `arguments: must be a JSON object, not an array`},
		{`"hunter2"`, `arguments: must be a JSON object, not a string`},
		{`{"must":1} {"hunter2":1}`, `arguments: must be one JSON object`},
		{`{"must":1,"hunter2":1,"hunter2":2}`, `arguments: a name occurs twice in an object`},
		{`{"must":"hunter2\ud800"}`, `arguments: not valid JSON and Unicode near byte 16`},
		{"{\"must\":\"hunter2\xff\"}", `arguments: not valid JSON and Unicode near byte 16`},
		{`{"\udc00":1}`, `arguments: not valid JSON and Unicode near byte 2`},
		{`{"must":`, `arguments: not valid JSON and Unicode near byte 8`},
		{`{"must":[{"n":1e1001}]}`, `argument "must[0].n": must be a number of at most 1000 digits`},
		{`{"must":` + strings.Repeat("7", 1001) + `}`, `argument "must": must be a number of at most 1000 digits`},
		{`{"must":` + strings.Repeat("[", 20000) + `}`, `arguments: not valid JSON and Unicode near byte 10007`},
		{`{"must":1,"` + strings.Repeat("k", 100) + `":1}`, `argument "` + strings.Repeat("k", 100) + `": is not a parameter of this tool; it takes any, c, e, has, i, l, must, never, not, o, one, r, s, x`},
	}
	for _, tt := range tests {
		_, err := a.Check([]byte(tt.args))
		var refused *ArgumentError
		if !errors.As(err, &refused) {
			t.Errorf("%.80s: %v, want %s", tt.args, err, tt.want)
			continue
		}
		if got := err.Error(); got != tt.want {
			t.Errorf("%.80s:\n got %s\nwant %s", tt.args, got, tt.want)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the sentence echoes the value", tt.args)
		}
	}
	if _, err := a.Check([]byte(`{"must":null,"o":null,"r":{"r":{}}}`)); err != nil {
		t.Errorf("what the schema allows: %v", err)
	}
}

func TestMoreThanEightFaultsAreNotListed(t *testing.T) {
	args := `{"must":1`
	for i := range 20 {
		args += fmt.Sprintf(`,"z%02d":1`, i)
	}
	_, err := tool(t, every).Check([]byte(args + "}"))
	var refused *ArgumentError
	if !errors.As(err, &refused) || len(refused.More) != 7 {
		t.Errorf("%v", err)
	}
}

// Whatever an independent validator says of the listed schema, Check says too: for the minimal object of each tool, and
// for that with each thing wrong or missing.
func TestListedSchemaAllowsExactlyWhatCheckAccepts(t *testing.T) {
	own, err := Load("../tools.toml")
	if err != nil {
		t.Fatal(err)
	}
	tools := append(own.Tools(), tool(t, every), tool(t, head), tool(t, lines(`[tools.p]`, `command = ["x", "{n}", ["{b}"], "{l...}", ["{o}"]]`, `stdin = "{s}"`,
		`risk = "READ"`, `[tools.p.params]`, `n = { type = "number", required = true, min = 1, max = 2.5 }`, `b = { type = "boolean", required = true }`,
		`l = { type = "array", items = "integer", min_length = 1, max_length = 3 }`, `o = { type = "object", default = { k = 1 } }`,
		`s = { type = "string", required = true, pattern = "^é+$", min_length = 2, max_length = 3 }`)))
	values := []string{`"é"`, `"éé"`, `"éééé"`, `"main"`, `""`, `0`, `1`, `2.5`, `3`, `-1`, `1e2`, `2.0`, `true`, `false`, `null`, `[]`, `[1]`, `[1,2,3,4]`, `["a"]`,
		`["a","a"]`, `{}`, `{"k":true}`, `{"k":true,"z":1}`, `{"r":{"leaf":"x"}}`, `"` + strings.Repeat("0", 64) + `"`}
	for _, tool := range tools {
		var schema independent.Schema
		if err := json.Unmarshal(tool.Schema, &schema); err != nil {
			t.Fatal(err)
		}
		if schema.AdditionalProperties == nil || schema.Type != "object" {
			t.Errorf("%s: additionalProperties is not in %s", tool.Name, tool.Schema)
		}
		resolved, err := schema.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		both := func(args map[string]json.RawMessage) {
			t.Helper()
			raw, err := json.Marshal(args)
			if err != nil {
				t.Fatal(err)
			}
			var v map[string]any
			if err := json.Unmarshal(raw, &v); err != nil {
				t.Fatal(err)
			}
			want := resolved.Validate(v)
			_, got := tool.Check(raw)
			if got != nil && strings.Contains(got.Error(), `must not start with "-"`) {
				return // the one rule about values that no schema can say
			}
			if (got == nil) != (want == nil) {
				t.Errorf("%s %s: Check says %v, the schema %v", tool.Name, raw, got, want)
			}
		}
		minimal := make(map[string]json.RawMessage)
		for _, name := range schema.Required {
			for _, value := range values { // the first value that is valid for it
				var v any
				if err := json.Unmarshal([]byte(value), &v); err != nil {
					t.Fatal(err)
				}
				property := schema.Properties[name]
				if one, err := (&independent.Schema{Properties: map[string]*independent.Schema{name: property.CloneSchemas()}}).Resolve(nil); err != nil {
					t.Fatal(err)
				} else if one.Validate(map[string]any{name: v}) == nil {
					minimal[name] = json.RawMessage(value)
					break
				}
			}
		}
		raw, _ := json.Marshal(minimal)
		if _, err := tool.Check(raw); err != nil {
			t.Fatalf("%s: no minimal object was found: %v", tool.Name, err)
		}
		both(minimal)
		extra := maps.Clone(minimal)
		extra["zz"] = json.RawMessage("1")
		both(extra)
		for _, name := range schema.Required {
			less := maps.Clone(minimal)
			delete(less, name)
			both(less)
		}
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			for _, value := range values {
				with := maps.Clone(minimal)
				with[name] = json.RawMessage(value)
				both(with)
			}
		}
	}
}

func BenchmarkCheckOfThreeParameters(b *testing.B) {
	c, err := load("tools.toml", func(string) ([]byte, error) {
		return []byte(lines(`[tools.a]`, `command = ["x", "{path}", "{args...}", ["-n", "{limit}"]]`, `risk = "READ"`, `[tools.a.params]`,
			`path = { type = "string", required = true, min_length = 1, max_length = 4096 }`,
			`limit = { type = "integer", min = 1, max = 100000 }`, `args = { type = "array", items = "string", dash = true }`)), nil
	})
	if err != nil {
		b.Fatal(err)
	}
	tool := c.Tools()[0]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tool.Check([]byte(`{"path":"src/main.go","limit":200,"args":["-q","-x","--lf"]}`)); err != nil {
			b.Fatal(err)
		}
	}
}
