package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// pairArguments makes the arguments of a call from key=value words, each typed by the tool's schema: a value that fits a
// declared type other than string is taken as it stands (numbers digit for digit), everything else is a string and left
// to the check of the call itself. A repeated key is allowed for an array: key=a key=b.
func pairArguments(schema json.RawMessage, pairs []string) (json.RawMessage, error) {
	var keys []string
	values := map[string][]string{}
	for i, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" { // what it is may be a secret
			return nil, fmt.Errorf("argument %d of the tool: want key=value%s, or all arguments as one object by --json '{...}'", i+1, keysOf(schema))
		}
		if values[key] == nil {
			keys = append(keys, key)
		}
		values[key] = append(values[key], value)
	}
	b := []byte{'{'}
	for i, key := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = jsontext.AppendQuote(b, key); err != nil {
			return nil, fmt.Errorf("argument name %q: %w", key, err)
		}
		b = append(b, ':')
		if b, err = appendTyped(b, property(schema, key), values[key]); err != nil {
			return nil, fmt.Errorf("argument %q: %w", key, err)
		}
	}
	return append(b, '}'), nil
}

// keysOf says which keys a tool takes, where that is known.
func keysOf(schema json.RawMessage) string {
	var s struct {
		Properties map[string]any `json:"properties"`
	}
	if len(schema) == 0 || json.Unmarshal(schema, &s) != nil || len(s.Properties) == 0 {
		return ""
	}
	return ", where key is one of " + list(slices.Sorted(maps.Keys(s.Properties)))
}

// declared is the part of a property's schema that typing looks at.
type declared struct {
	types []string
	items []string
}

// property reads the declared types of one property; none where the schema has no such property or says no type.
func property(schema json.RawMessage, key string) declared {
	var s struct {
		Properties map[string]struct {
			Type  oneOrMore `json:"type"`
			Items struct {
				Type oneOrMore `json:"type"`
			} `json:"items"`
		} `json:"properties"`
	}
	if len(schema) == 0 || json.Unmarshal(schema, &s) != nil {
		return declared{}
	}
	p := s.Properties[key]
	return declared{types: p.Type, items: p.Items.Type}
}

// oneOrMore is a schema's type: one name or an array of names.
type oneOrMore []string

func (o *oneOrMore) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*o = oneOrMore{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(o))
}

// appendTyped appends the JSON value of the words that were given for one key.
func appendTyped(b []byte, d declared, words []string) ([]byte, error) {
	if slices.Contains(d.types, "array") && !(len(words) == 1 && fits("array", words[0])) {
		b = append(b, '[')
		for i, word := range words {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = appendScalar(b, d.items, word); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	}
	if len(words) > 1 {
		return nil, fmt.Errorf("given %d times, but it is no array", len(words))
	}
	return appendScalar(b, d.types, words[0])
}

func appendScalar(b []byte, types []string, word string) ([]byte, error) {
	for _, t := range types {
		if fits(t, word) {
			return append(b, word...), nil
		}
	}
	return jsontext.AppendQuote(b, word)
}

// fits says whether word is the JSON text of a value of a type that is not string.
func fits(typ, word string) bool {
	v := jsontext.Value(word)
	if !v.IsValid() || len(bytes.TrimSpace(v)) != len(v) {
		return false
	}
	switch v.Kind() {
	case '0':
		return typ == "number" || typ == "integer"
	case 't', 'f':
		return typ == "boolean"
	case 'n':
		return typ == "null"
	case '{':
		return typ == "object"
	case '[':
		return typ == "array"
	}
	return false
}
