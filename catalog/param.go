package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

// formatPath marks a parameter whose value must resolve inside the tool's view.
const formatPath = "path"

var (
	paramTypes = []string{"string", "integer", "number", "boolean", "array", "object"}
	itemTypes  = []string{"string", "integer", "number", "boolean", "object"}
)

// param is what the command needs to know of one parameter, whether params or a schema declared it.
type param struct {
	types    []string // JSON types that the value may have; empty is any
	required bool
	def      any // decoded JSON; nil where there is no default
	dash     bool
	path     bool // the value, or each item of an array, is a path
}

// boolean says that the parameter is nothing but a boolean, so that it prints nothing.
func (p *param) boolean() bool { return slices.Equal(p.types, []string{"boolean"}) }

func (p *param) array() bool { return slices.Equal(p.types, []string{"array"}) }

// readParams turns params into a JSON Schema, and fills tool.params with what a schema does not hold.
func readParams(tool *Tool, t *table) map[string]any {
	properties := make(map[string]any)
	required := []string{}
	file := t.layers[0]
	for _, name := range slices.Sorted(maps.Keys(file.values)) {
		at := place{file.src, file.at.key(name)}
		entry := t.child(name)
		if entry == nil {
			continue
		}
		if !paramName.MatchString(name) {
			at.fail("the name of a parameter is a letter or _, then at most 63 letters, digits, _ and -")
		}
		p := &param{required: entry.boolean("required", false)}
		properties[name] = readParam(p, entry)
		entry.done()
		tool.params[name] = p
		if p.required {
			required = append(required, name)
		}
	}
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// readParam returns the JSON Schema of one parameter.
func readParam(p *param, t *table) map[string]any {
	kind := t.oneOf("type", "", paramTypes...)
	if _, at, ok := t.get("type"); !ok {
		at.fail("is missing: write " + alternatives(paramTypes))
	}
	schema := make(map[string]any)
	if kind != "" {
		p.types, schema["type"] = []string{kind}, kind
	}
	if s := t.str("description", ""); s != "" {
		schema["description"] = s
	}
	items := only(t, "items", kind, "array")
	if items {
		if of := t.oneOf("items", "", itemTypes...); of != "" {
			schema["items"] = map[string]any{"type": of}
		}
	}
	if only(t, "pattern", kind, "string") {
		readPattern(schema, t)
	}
	readBounds(schema, t, kind)
	if only(t, "dash", kind, "string", "integer", "number", "array") {
		p.dash = t.boolean("dash", false)
	}
	if only(t, "format", kind, "string", "array") {
		p.path = t.oneOf("format", "", formatPath) == formatPath
	}
	if v, at, ok := t.get("enum"); ok {
		values, isArray := v.([]any)
		if !isArray || len(values) == 0 {
			at.fail("must be an array of the allowed values that is not empty")
		} else if converted, ok := toJSON(at, values); ok {
			schema["enum"] = converted
		}
	}
	if v, at, ok := t.get("default"); ok {
		if converted, ok := toJSON(at, v); ok {
			schema["default"] = converted
		}
	}
	return schema
}

// only says whether key is written, and refuses it for a type that it does not fit.
func only(t *table, key, kind string, kinds ...string) bool {
	_, at, ok := t.get(key)
	if ok && kind != "" && !slices.Contains(kinds, kind) {
		at.fail(fmt.Sprintf("does not fit a parameter of type %s; it is for %s", kind, strings.Join(kinds, ", ")))
		return false
	}
	return ok
}

func readPattern(schema map[string]any, t *table) {
	pattern := t.str("pattern", "")
	if _, err := regexp.Compile(pattern); err != nil {
		_, at, _ := t.get("pattern")
		at.fail("is not a regular expression of RE2: " + oneLine(strings.TrimPrefix(err.Error(), "error parsing regexp: ")))
		return
	}
	schema["pattern"] = pattern
}

// readBounds reads min and max of a number, min_length and max_length of a string or array.
func readBounds(schema map[string]any, t *table, kind string) {
	for _, b := range []struct{ key, keyword string }{{"min", "minimum"}, {"max", "maximum"}} {
		if !only(t, b.key, kind, "integer", "number") {
			continue
		}
		v, at, _ := t.get(b.key)
		switch n := v.(type) {
		case int64:
			schema[b.keyword] = n
		case float64:
			if math.IsNaN(n) || math.IsInf(n, 0) {
				at.fail("must be a finite number")
				continue
			}
			schema[b.keyword] = n
		default:
			at.fail("must be a number, not " + kindOf(v))
		}
	}
	low, high := "minLength", "maxLength"
	if kind == "array" {
		low, high = "minItems", "maxItems"
	}
	for _, b := range []struct{ key, keyword string }{{"min_length", low}, {"max_length", high}} {
		if only(t, b.key, kind, "string", "array") {
			schema[b.keyword] = t.integer(b.key, 0, 0, math.MaxInt32)
		}
	}
	order(schema, t, "minimum", "maximum", "min", "max")
	order(schema, t, low, high, "min_length", "max_length")
}

// order refuses a lower bound above the upper one.
func order(schema map[string]any, t *table, low, high, lowKey, highKey string) {
	a, hasLow := schema[low]
	b, hasHigh := schema[high]
	if hasLow && hasHigh && rational(a).Cmp(rational(b)) > 0 {
		_, at, _ := t.get(lowKey)
		at.fail("is above " + highKey + ", so that no value fits")
	}
}

// toJSON turns a decoded TOML value into one that encoding/json writes; it is false after a fault.
func toJSON(at place, v any) (any, bool) {
	switch x := v.(type) {
	case string, bool:
		return x, true
	case int64:
		return json.Number(fmt.Sprint(x)), true
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			at.fail("JSON has no such number: write a finite one")
			return nil, false
		}
		return x, true
	case time.Time:
		at.fail("JSON has no dates: write a string")
		return nil, false
	case []map[string]any:
		array := make([]any, len(x))
		for i := range x {
			array[i] = x[i]
		}
		return toJSON(at, array)
	case []any:
		array, ok := make([]any, len(x)), true
		for i := range x {
			one, fine := toJSON(place{at.src, at.at.index(i)}, x[i])
			array[i], ok = one, ok && fine
		}
		return array, ok
	case map[string]any:
		object, ok := make(map[string]any, len(x)), true
		for key := range x {
			one, fine := toJSON(place{at.src, at.at.key(key)}, x[key])
			object[key], ok = one, ok && fine
		}
		return object, ok
	}
	at.fail("is " + kindOf(v) + ", which JSON does not have")
	return nil, false
}
