package catalog

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"toolrun/catalog/canon"
)

func TestDefinitionIsTheDocumentedObject(t *testing.T) {
	const want = `{"approval":"deny","builtin":"","command":["prog","--","{p}"],"concurrency":2,"cwd":"sub","dash":["p"],` +
		`"description":"Everything said.","env":{"A":"1","EMPTY":"","T":"$secret:TOKEN"},"env_pass":["LANG"],"isolation":"best-effort",` +
		`"limits":{"cpu":1,"cpu_time_ms":500,"file_size_bytes":7,"files":10,"memory_bytes":2147483648,"output_bytes":1099511627776,` +
		`"output_total_bytes":9223372036854775807,"pids":1,"swap_bytes":1024},"mode":"call","ok_exit_codes":[0,3],"optional":true,"path":["p"],` +
		`"preview_bytes":512,"pty":false,"redact":false,"retry":{"backoff_ms":0,"max":0,"on":["exit:0"]},"risk":"DESTRUCTIVE",` +
		`"sandbox":{"cache":["go-build","x.y_z-1"],"hide":["secret"],"network":"host","ptrace":true,"read":["/usr/share/x","../y"],"write":[]},` +
		`"schema":{"additionalProperties":false,"properties":{"p":{"description":"A path.","enum":["a","b"],"type":"string"}},"required":["p"],` +
		`"type":"object"},"stderr":"merge","stdin":"x{p}","timeout_ms":5400000,"title":"All","toolchains":["go","/opt/x"],"user":"nobody"}`
	a := tool(t, everyKey)
	if string(a.Definition) != want {
		t.Errorf("got  %s\nwant %s", a.Definition, want)
	}
	if a.DefinitionSHA256 != canon.SHA256Hex([]byte(want)) || a.SchemaSHA256 != canon.SHA256Hex(a.Schema) {
		t.Error("a hash is not that of its bytes")
	}
}

func TestATerminalIsInTheDefinition(t *testing.T) {
	plain, sized := tool(t, head+"pty = true\n"), tool(t, head+"pty = { rows = 24, cols = 80 }\nstderr = \"merge\"\n")
	if plain.DefinitionSHA256 != sized.DefinitionSHA256 || !strings.Contains(string(plain.Definition), `"pty":{"cols":80,"rows":24}`) {
		t.Errorf("%s\n%s", plain.Definition, sized.Definition)
	}
	c := loadText(t, "[defaults]\npty = true\n[tools.o]\nbuiltin = \"output\"\nrisk = \"READ\"\n")
	if o, _ := c.Lookup("o"); o.Terminal != (Terminal{}) || o.StderrMerge {
		t.Error("a builtin has a terminal")
	}
}

func TestHashesOfTheWholeAreOverNamesAndDefinitions(t *testing.T) {
	if c := loadText(t, ""); c.SHA256() != canon.SHA256Hex([]byte("[]")) || c.DefinitionSHA256() != canon.SHA256Hex([]byte("{}")) {
		t.Error("the empty catalog")
	}
	c := loadText(t, strings.ReplaceAll(head, "tools.a", "tools.b")+head)
	a, _ := c.Lookup("a")
	if c.SHA256() != canon.SHA256Hex([]byte(`["a","b"]`)) {
		t.Errorf("catalog_sha256 %s", c.SHA256())
	}
	if want := canon.SHA256Hex([]byte(`{"a":"` + a.DefinitionSHA256 + `","b":"` + a.DefinitionSHA256 + `"}`)); c.DefinitionSHA256() != want {
		t.Errorf("catalog_definition_sha256 %s, want %s", c.DefinitionSHA256(), want)
	}
	if got := c.SchemaSHA256s(); len(got) != 2 || got["b"] != a.SchemaSHA256 {
		t.Errorf("schema_sha256 %v", got)
	}
}

// What means the same hashes the same: where defaults stand, units, order, and how the schema is given.
func TestEqualDeclarationsHaveEqualHashes(t *testing.T) {
	plain := tool(t, head+lines(`params.p = { type = "integer", min = 1, default = 2 }`)).DefinitionSHA256
	for name, text := range map[string]string{
		"defaults written out": head + lines(`timeout = "120s"`, `ok_exit_codes = [0, 0]`, `limits = { memory = "1024MiB", cpu = 2.0 }`, `sandbox = { write = ["."] }`,
			`retry = {}`, `params.p = { type = "integer", min = 1, default = 2, required = false, dash = false }`),
		"from [defaults]": lines(`[defaults]`, `risk = "READ"`, `timeout = "2m"`, `[tools.a]`, `command = ["true"]`, `params.p = { default = 2, min = 1, type = "integer" }`),
		"as a schema":     head + lines(`[tools.a.schema]`, `type = "object"`, `properties.p = { type = "integer", minimum = 1, default = 2 }`),
	} {
		if got := tool(t, text).DefinitionSHA256; got != plain {
			t.Errorf("%s: another hash", name)
		}
	}
}

func TestDiffTellsNameDriftFromSchemaDriftFromTheRest(t *testing.T) {
	same := strings.ReplaceAll(head, "tools.a", "tools.same")
	from := loadText(t, same+lines(
		`[tools.gone]`, `command = ["x"]`, `risk = "READ"`, `[tools.other]`, `command = ["x"]`, `risk = "READ"`, `timeout = "1s"`,
		`[tools.schema]`, `command = ["x"]`, `risk = "READ"`, `params.p = { type = "string" }`))
	to := loadText(t, same+lines(
		`[tools.new]`, `command = ["x"]`, `risk = "READ"`, `[tools.other]`, `command = ["x"]`, `risk = "DRAFT"`, `timeout = "2s"`,
		`[tools.schema]`, `command = ["y"]`, `risk = "READ"`, `params.p = { type = "integer" }`))
	var got []string
	for _, c := range Diff(from, to) {
		line := c.Kind + " " + c.Tool
		for _, f := range c.Fields {
			line += " " + f.Key
			if f.Key == "timeout_ms" {
				line += "=" + string(f.From) + ">" + string(f.To)
			}
		}
		if (c.From == "") != (c.Kind == ChangeAdded) || (c.To == "") != (c.Kind == ChangeRemoved) || c.From == c.To {
			t.Errorf("%s: from %q to %q", line, c.From, c.To)
		}
		got = append(got, line)
	}
	want := []string{"removed gone", "added new", "definition other risk timeout_ms=1000>2000", "schema schema command schema"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if changes := Diff(from, from); len(changes) != 0 {
		t.Errorf("a catalog differs from itself: %v", changes)
	}
}

// A later toolrun may know keys that an earlier one did not.
func TestADefinitionsOwnKeysAreAmongTheDifferences(t *testing.T) {
	got := DiffDefinitions(json.RawMessage(`{"cwd":".","old":1,"risk":"READ"}`), json.RawMessage(`{"cwd":".","new":2,"risk":"SEND"}`))
	want := []Field{{"new", nil, json.RawMessage("2")}, {"old", json.RawMessage("1"), nil}, {"risk", json.RawMessage(`"READ"`), json.RawMessage(`"SEND"`)}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s", got)
	}
}
