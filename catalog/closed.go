package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const draft2020 = "https://json-schema.org/draft/2020-12/schema"

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
