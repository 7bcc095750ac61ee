package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDigits bounds the digits and the exponent of a number in arguments. Within it exact arithmetic is cheap; a double
// ends at 1e308.
const maxDigits = 1000

// depth is how far arrays and objects are nested in a decoded value; a scalar has 0.
func depth(v any) int {
	deepest := 0
	switch x := v.(type) {
	case []any:
		for _, one := range x {
			deepest = max(deepest, depth(one)+1)
		}
	case map[string]any:
		for _, one := range x {
			deepest = max(deepest, depth(one)+1)
		}
	}
	return deepest
}

// decodeObject reads a JSON object with numbers kept as they were written. Nothing and null are the empty object. It
// refuses what the standard library lets pass: duplicate names, invalid UTF-8, lone surrogates. The error is an
// *ArgumentError and quotes nothing.
func decodeObject(raw []byte) (map[string]any, error) {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) == 0 || string(trimmed) == "null" {
		return map[string]any{}, nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	v, err := decodeValue(d)
	if err == nil {
		if _, more := d.ReadToken(); more == nil {
			err = &ArgumentError{Problem: "must be one JSON object"}
		}
	}
	if err != nil {
		return nil, argumentFault(err)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, &ArgumentError{Problem: "must be a JSON object, not " + jsonKind(v)}
	}
	return object, nil
}

func argumentFault(err error) error {
	var known *ArgumentError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, jsontext.ErrDuplicateName):
		return &ArgumentError{Problem: "a name occurs twice in an object"}
	case errors.As(err, &syntactic):
		return &ArgumentError{Problem: fmt.Sprintf("not valid JSON and Unicode near byte %d", syntactic.ByteOffset)}
	}
	return &ArgumentError{Problem: "not valid JSON"}
}

func decodeValue(d *jsontext.Decoder) (any, error) {
	tok, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return tok.Bool(), nil
	case '"':
		return tok.String(), nil
	case '0':
		return decodeNumber(d, tok.String())
	case '[':
		array := []any{}
		for d.PeekKind() != ']' {
			v, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			array = append(array, v)
		}
		_, err := d.ReadToken()
		return array, err
	}
	object := make(map[string]any)
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String() // the token is gone with the next read
		v, err := decodeValue(d)
		if err != nil {
			return nil, err
		}
		object[key] = v
	}
	_, err = d.ReadToken()
	return object, err
}

func decodeNumber(d *jsontext.Decoder, literal string) (any, error) {
	mantissa, exponent := literal, "0"
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		mantissa, exponent = literal[:i], literal[i+1:]
	}
	n, err := strconv.Atoi(exponent)
	if len(mantissa) > maxDigits || err != nil || n > maxDigits || n < -maxDigits {
		return nil, &ArgumentError{Field: fieldHere(d), Problem: fmt.Sprintf("must be a number of at most %d digits", maxDigits)}
	}
	return json.Number(literal), nil
}

// fieldHere names the value that was just read.
func fieldHere(d *jsontext.Decoder) string {
	field, depth := "", 0
	for token := range d.StackPointer().Tokens() {
		depth++
		if kind, _ := d.StackIndex(depth); kind == '[' {
			field += "[" + token + "]"
		} else {
			field = joinField(field, token)
		}
	}
	return field
}

// jsonKind names the JSON type of a decoded value.
func jsonKind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case []any:
		return "an array"
	}
	return "an object"
}
