package catalog

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// Whatever the file holds, Load ends with a catalog or with faults that each name the file, and the scanner of lines
// finds every key that the parser finds.
func FuzzAnyFileIsReadOrRefused(f *testing.F) {
	for _, seed := range []string{
		"[tools.a]\ncommand = [\"x\", [\"-k\", \"{p}\"]]\nrisk = \"READ\"\nparams.p = { type = \"string\", default = \"\"\"\na\"b\"\"\"\" }\n",
		"[[a.b]]\nc = 1\n[a.b.d]\ne = '''x\n'''\n[[a.b]]\n", "\"a\\u0041\\\"b\" . 'c' = [ # x\n1,\n{ d.e = 2 } ]\r\n", "a = 1979-05-27 07:32:00\nb = \"\\\\\"",
		"[tools.a]\nschema = { type = \"object\", properties = { x = { const = 1e1000 } } }\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const file = "tools.toml"
		_, err := load(file, func(path string) ([]byte, error) {
			if filepath.Base(path) == file {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		})
		var faults Errors
		if err != nil && (!errors.As(err, &faults) || len(faults) == 0) {
			t.Fatalf("an error that is not Errors: %v", err)
		}
		for _, e := range faults {
			if e.File != file || e.Problem == "" || strings.Contains(e.Error(), "\n") {
				t.Fatalf("not one sentence about one file: %q", e.Error())
			}
		}
		lines, deep := keyLines(text)
		var v map[string]any
		meta, err := toml.Decode(text, &v)
		if err != nil || deep > 0 {
			return
		}
		for _, key := range meta.Keys() {
			if len(key) > 0 && lines[path(key).String()] == 0 && !inArrayOfTables(meta, key) {
				t.Fatalf("no line for %s in\n%s", key, text)
			}
		}
	})
}

func inArrayOfTables(meta toml.MetaData, key toml.Key) bool {
	for n := 1; n <= len(key); n++ {
		if t := meta.Type(key[:n]...); t == "Array" || t == "ArrayHash" {
			return true
		}
	}
	return false
}

// Whatever a client sends as arguments, Check accepts or refuses it, and an accepted argv is one that can be executed.
func FuzzAnyArgumentsAreAcceptedOrRefused(f *testing.F) {
	c, err := load("tools.toml", func(string) ([]byte, error) {
		return []byte(every + lines(`[tools.b]`, `command = ["x", "{s}", ["-o{b}", "{o}"], "{l...}"]`, `stdin = "{o}"`, `risk = "READ"`, `[tools.b.params]`,
			`s = { type = "string", default = "" }`, `b = { type = "boolean" }`, `o = { type = "object" }`, `l = { type = "array" }`)), nil
	})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{`{"must":1,"l":["a"],"r":{"r":{}}}`, `{"s":"x","b":true,"o":{"k":[1e2,"\u0000"]},"l":[1,{},null]}`, `{"s":"-\u0000"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, tool := range c.Tools() {
			a, err := tool.Check(raw)
			var refused *ArgumentError
			if err != nil && (!errors.As(err, &refused) || refused.Problem == "") {
				t.Fatalf("not an ArgumentError: %v", err)
			}
			if err != nil {
				continue
			}
			for i, s := range a.Argv() {
				if strings.ContainsRune(s, 0) || i > 0 && strings.HasPrefix(s, "-") && s != "-o" {
					t.Fatalf("argv %q of %q", a.Argv(), raw)
				}
			}
		}
	})
}
