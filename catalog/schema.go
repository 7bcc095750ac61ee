package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"toolrun/catalog/canon"
)

// readSchema reads the schema of the arguments from the one of params, schema and schema_file that is there.
func (l *loader) readSchema(tool *Tool, t *table) {
	var written []string
	for _, key := range []string{"params", "schema", "schema_file"} {
		if _, at, ok := t.get(key); ok {
			if written = append(written, key); len(written) > 1 {
				at.fail(fmt.Sprintf("%s and %s exclude each other", written[0], key))
				return
			}
		}
	}
	if params := t.child("params"); params != nil {
		before := len(l.errs)
		if schema := readParams(tool, params); len(l.errs) == before {
			l.setSchema(tool, params.here(), schema, false)
		}
		return
	}
	schema, at, ok := l.writtenSchema(t)
	if !ok {
		return
	}
	if schema == nil {
		l.setSchema(tool, at, map[string]any{"type": "object", "properties": map[string]any{}, "additionalProperties": false}, false)
		return
	}
	if !closeSchema(at, schema) {
		return
	}
	readProperties(tool, schema)
	l.setSchema(tool, at, schema, true)
}

// writtenSchema returns the document of schema or schema_file, nil where there is neither; it is false after a fault.
func (l *loader) writtenSchema(t *table) (map[string]any, place, bool) {
	if table := t.child("schema"); table != nil {
		v, ok := toJSON(table.here(), table.layers[0].values)
		if !ok {
			return nil, place{}, false
		}
		doc, err := decodeObject(canonical(v))
		if err != nil {
			table.here().fail(err.Error())
			return nil, place{}, false
		}
		return doc, table.here(), true
	}
	_, at, _ := t.get("schema_file")
	name := t.str("schema_file", "")
	if _, _, ok := t.get("schema"); ok || name == "" {
		if _, _, written := t.get("schema_file"); written || ok {
			return nil, place{}, false // not a table, or not a string: told already
		}
		return nil, t.here(), true
	}
	shown, abs := l.relative(at, name)
	text, problem := l.read(shown, abs)
	if problem == "" {
		if _, err := canon.Canonicalize([]byte(text)); err != nil {
			problem = "is " + err.Error()
		}
	}
	var doc map[string]any
	if problem == "" {
		var err error
		if doc, err = decodeObject([]byte(text)); err != nil {
			problem = strings.TrimPrefix(err.Error(), "arguments: ")
		} else if depth(doc) > maxNesting {
			problem = fmt.Sprintf("is nested deeper than %d", maxNesting)
		}
	}
	if problem != "" {
		at.fail("the schema " + quote(shown) + " " + problem)
		return nil, place{}, false
	}
	return doc, at, true
}

// readProperties fills tool.params from the properties of a written schema.
func readProperties(tool *Tool, schema map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for name, v := range properties {
		p := &param{required: slices.Contains(required, any(name))}
		tool.params[name] = p
		property, ok := v.(map[string]any)
		if !ok {
			continue
		}
		switch kind := property["type"].(type) {
		case string:
			p.types = []string{kind}
		case []any:
			for _, one := range kind {
				p.types = append(p.types, fmt.Sprint(one))
			}
		}
		items, _ := property["items"].(map[string]any)
		p.path = property["format"] == formatPath || items["format"] == formatPath
	}
}

// setSchema freezes the schema, compiles it and checks its defaults and enumerations against itself.
func (l *loader) setSchema(tool *Tool, at place, schema map[string]any, written bool) {
	tool.Schema = canonical(schema)
	doc, err := decodeObject(tool.Schema)
	if err != nil {
		at.fail(err.Error())
		return
	}
	if tool.compiled, err = l.compile(doc, written); err != nil {
		at.fail("is not a JSON Schema: " + schemaProblem(err, doc))
		return
	}
	properties, _ := doc["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, ok := properties[name].(map[string]any)
		if !ok {
			continue
		}
		check := tool.compiled.Properties[name]
		if def, ok := property["default"]; ok {
			tool.params[name].def = def
			if faults := faultsOf(check.Validate(def), def); len(faults) > 0 {
				under(at, name, "default").fail(fmt.Sprintf("the default of %s does not fit its own parameter: it %s", name, faults[0].Problem))
			}
		}
		values, _ := property["enum"].([]any)
		for i, value := range values {
			if faults := faultsOf(check.Validate(value), value); len(faults) > 0 {
				under(at, name, "enum").fail(fmt.Sprintf("value %d of the enum of %s does not fit its own parameter: it %s", i+1, name, faults[0].Problem))
			}
		}
	}
	tool.names = slices.Sorted(maps.Keys(tool.params))
}

// under is the place of a key of a parameter; of one in a schema file it is the key that names the file.
func under(at place, name, key string) place {
	switch at.at[len(at.at)-1] {
	case "params":
		return place{at.src, at.at.key(name, key)}
	case "schema":
		return place{at.src, at.at.key("properties", name, key)}
	}
	return at
}

// compile prepares a schema for validation. Nothing is ever loaded from elsewhere. The schemas that toolrun makes share
// a compiler, so that the metaschema is compiled once; a written one, which may bring a $id, has its own.
func (l *loader) compile(doc map[string]any, written bool) (*jsonschema.Schema, error) {
	c := l.compiler
	if c == nil || written {
		c = jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		c.UseLoader(noLoader{})
	}
	if !written {
		l.compiler = c
	}
	l.compiled++
	url := fmt.Sprintf("urn:toolrun:schema:%d", l.compiled)
	if err := c.AddResource(url, doc); err != nil {
		return nil, err
	}
	return c.Compile(url)
}

// schemaProblem says what keeps a document from being a schema.
func schemaProblem(err error, doc map[string]any) string {
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		if faults := faultsOf(invalid.Err, doc); len(faults) > 0 {
			return strings.TrimSpace(faults[0].Field + " " + faults[0].Problem)
		}
	}
	return schemaURL.ReplaceAllString(oneLine(err.Error()), "")
}

var schemaURL = regexp.MustCompile(`urn:toolrun:schema:\d+`) // see compile

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s leads out of the schema", quote(url))
}

// seal fixes the hashes once every key is read.
func (t *Tool) seal() {
	if t.Schema == nil {
		t.Schema = json.RawMessage("{}") // a fault was told; the tool is never used
	}
	t.SchemaSHA256 = canon.SHA256Hex(t.Schema)
	t.Definition = definition(t)
	t.DefinitionSHA256 = canon.SHA256Hex(t.Definition)
}
