package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"toolrun/catalog/canon"
)

const draft2020 = "https://json-schema.org/draft/2020-12/schema"

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
			l.setSchema(tool, params.here(), schema)
		}
		return
	}
	schema, at, ok := l.writtenSchema(t)
	if !ok {
		return
	}
	if schema == nil {
		l.setSchema(tool, at, map[string]any{"type": "object", "properties": map[string]any{}, "additionalProperties": false})
		return
	}
	if !closeSchema(at, schema) {
		return
	}
	readProperties(tool, schema)
	l.setSchema(tool, at, schema)
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
			problem = err.Error()
		}
	}
	if problem != "" {
		at.fail("the schema " + quote(shown) + " " + problem)
		return nil, place{}, false
	}
	return doc, at, true
}

// closeSchema holds a written schema to what toolrun promises of every tool: it describes an object, needs nothing from
// elsewhere, and takes no argument that it does not name.
func closeSchema(at place, schema map[string]any) bool {
	problem := ""
	switch {
	case schema["type"] != "object":
		problem = `the schema must have type = "object" at its top, since arguments are an object`
	case schema["additionalProperties"] != nil && schema["additionalProperties"] != false:
		problem = "additionalProperties must be false at the top: extra arguments are refused"
	case schema["unevaluatedProperties"] != nil && schema["unevaluatedProperties"] != false:
		problem = "unevaluatedProperties must be false at the top: extra arguments are refused"
	default:
		problem = foreign(schema, "")
	}
	if problem != "" {
		at.fail(problem)
		return false
	}
	if schema["additionalProperties"] == nil && schema["unevaluatedProperties"] == nil {
		schema["additionalProperties"] = false
	}
	return true
}

// Keywords of JSON Schema 2020-12 that hold schemas: one, an array of them, or an object of them.
var (
	schemaIn = []string{"additionalProperties", "unevaluatedProperties", "items", "unevaluatedItems", "contains", "propertyNames",
		"not", "if", "then", "else", "contentSchema"}
	schemasIn     = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	namedSchemaIn = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)

// foreign finds the first thing in a schema that would take it out of this file or out of JSON Schema 2020-12.
func foreign(v any, pointer string) string {
	s, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	for _, key := range []string{"$ref", "$dynamicRef"} {
		if ref, ok := s[key].(string); ok && !strings.HasPrefix(ref, "#") {
			return fmt.Sprintf("%s at %s/%s leads out of the schema; only references that begin with # are followed", quote(ref), pointer, key)
		}
	}
	if dialect, ok := s["$schema"].(string); ok && strings.TrimSuffix(dialect, "#") != draft2020 {
		return fmt.Sprintf("the schema is written for %s; toolrun reads %s", quote(dialect), draft2020)
	}
	for _, key := range schemaIn {
		if problem := foreign(s[key], pointer+"/"+key); problem != "" {
			return problem
		}
	}
	for _, key := range schemasIn {
		array, _ := s[key].([]any)
		for i, one := range array {
			if problem := foreign(one, fmt.Sprintf("%s/%s/%d", pointer, key, i)); problem != "" {
				return problem
			}
		}
	}
	for _, key := range namedSchemaIn {
		object, _ := s[key].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if problem := foreign(object[name], pointer+"/"+key+"/"+name); problem != "" {
				return problem
			}
		}
	}
	return ""
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
func (l *loader) setSchema(tool *Tool, at place, schema map[string]any) {
	tool.Schema = canonical(schema)
	doc, err := decodeObject(tool.Schema)
	if err != nil {
		at.fail(err.Error())
		return
	}
	if tool.compiled, err = compile(doc); err != nil {
		at.fail("is not a JSON Schema: " + oneLine(err.Error()))
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
				under(at, tool, name, "default").fail("does not fit its own parameter: it " + faults[0].Problem)
			}
		}
		values, _ := property["enum"].([]any)
		for i, value := range values {
			if faults := faultsOf(check.Validate(value), value); len(faults) > 0 {
				enum := under(at, tool, name, "enum")
				place{enum.src, enum.at.index(i)}.fail("does not fit its own parameter: it " + faults[0].Problem)
			}
		}
	}
	tool.names = slices.Sorted(maps.Keys(tool.params))
}

// under is the place of a key of a parameter, for params and schema alike.
func under(at place, tool *Tool, name, key string) place {
	switch at.at[len(at.at)-1] {
	case "params":
		return place{at.src, at.at.key(name, key)}
	case "schema":
		return place{at.src, at.at.key("properties", name, key)}
	}
	return at
}

// compile prepares a schema for validation. Nothing is ever loaded from elsewhere.
func compile(doc map[string]any) (*jsonschema.Schema, error) {
	const url = "urn:toolrun:schema"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	if err := c.AddResource(url, doc); err != nil {
		return nil, err
	}
	return c.Compile(url)
}

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
