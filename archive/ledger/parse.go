package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"toolrun/archive/redact"
)

var columnOf = func() map[string]int {
	m := make(map[string]int, len(columns))
	for i, c := range columns {
		m[c.name] = i
	}
	return m
}()

// ParseRow reads one line. It wants one JSON object with the first 24 keys, in any order, and values of the right types;
// keys that it does not know pass. Duplicate keys and invalid UTF-8 are errors.
func ParseRow(line []byte) (*Row, error) {
	if row, ok := parseFast(line); ok {
		return row, nil
	}
	row, _, err := parse(line)
	return row, err
}

// CheckLine is ParseRow for a verifier: it also wants the first 24 keys first and in their order.
func CheckLine(line []byte) (*Row, error) {
	if row, ok := parseFast(line); ok {
		return row, nil
	}
	row, ordered, err := parse(line)
	if err == nil && !ordered {
		err = errors.New("the first 24 keys are not in their order")
	}
	return row, err
}

func parse(line []byte) (row *Row, ordered bool, err error) {
	dec := jsontext.NewDecoder(bytes.NewReader(line))
	if dec.PeekKind() != '{' {
		if _, err := dec.ReadValue(); err != nil {
			return nil, false, syntax(err)
		}
		return nil, false, errors.New("not a JSON object")
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, false, syntax(err)
	}
	row, ordered = new(Row), true
	v := reflect.ValueOf(row).Elem()
	var seen [requiredKeys]bool
	for n := 0; dec.PeekKind() != '}'; n++ {
		key, err := dec.ReadToken()
		if err != nil {
			return nil, false, syntax(err)
		}
		i, known := columnOf[key.String()]
		if n < requiredKeys && (!known || i != n) {
			ordered = false
		}
		value, err := dec.ReadValue()
		if err != nil {
			return nil, false, syntax(err)
		}
		if !known {
			continue
		}
		if i < requiredKeys {
			seen[i] = true
		}
		if err := parseValue(v.Field(columns[i].field).Addr().Interface(), value); err != nil {
			return nil, false, fmt.Errorf("key %s: %w", columns[i].name, err)
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, false, syntax(err)
	}
	if len(bytes.TrimSpace(line[dec.InputOffset():])) > 0 {
		return nil, false, errors.New("more than one value")
	}
	for i, ok := range seen {
		if !ok {
			return nil, false, fmt.Errorf("key %s is missing", columns[i].name)
		}
	}
	return row, ordered, nil
}

// syntax shortens an error of jsontext to what a person needs.
func syntax(err error) error {
	var s *jsontext.SyntacticError
	if errors.As(err, &s) {
		return fmt.Errorf("not valid JSON: %w at byte %d", s.Err, s.ByteOffset)
	}
	return fmt.Errorf("not valid JSON: %w", err)
}

func parseValue(p any, v jsontext.Value) error {
	null := v.Kind() == 'n'
	switch p := p.(type) {
	case *string:
		return unquote(p, v)
	case *OrNull:
		if null {
			return nil
		}
		return unquote((*string)(p), v)
	case *redact.Text:
		return unmarshalText(p, v)
	case *int:
		n, err := integer(v)
		*p = int(n)
		return err
	case *int64:
		n, err := integer(v)
		*p = n
		return err
	case *bool:
		return boolean(p, v)
	case *[]string:
		*p = []string{}
		return json.Unmarshal(v, p)
	case *[]Connection:
		return parseConnections(p, v)
	case *redact.JSON:
		return p.UnmarshalJSON(v)
	case **redact.Text:
		if null {
			return nil
		}
		*p = new(redact.Text)
		return unmarshalText(*p, v)
	case **int:
		if null {
			return nil
		}
		n, err := integer(v)
		i := int(n)
		*p = &i
		return err
	case **int64:
		if null {
			return nil
		}
		n, err := integer(v)
		*p = &n
		return err
	case **bool:
		if null {
			return nil
		}
		*p = new(bool)
		return boolean(*p, v)
	case **float64:
		if null {
			return nil
		}
		if v.Kind() != '0' {
			return errors.New("want a number")
		}
		f, err := strconv.ParseFloat(string(v), 64)
		*p = &f
		return err
	}
	return fmt.Errorf("no decoding for %T", p)
}

func unquote(p *string, v jsontext.Value) error {
	if v.Kind() != '"' {
		return errors.New("want a string")
	}
	b, err := jsontext.AppendUnquote(nil, v)
	*p = string(b)
	return err
}

func unmarshalText(p *redact.Text, v jsontext.Value) error {
	if v.Kind() != '"' {
		return errors.New("want a string")
	}
	return p.UnmarshalJSON(v)
}

func integer(v jsontext.Value) (int64, error) {
	if v.Kind() != '0' {
		return 0, errors.New("want an integer")
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0, errors.New("want an integer of 64 bits")
	}
	return n, nil
}

func boolean(p *bool, v jsontext.Value) error {
	if v.Kind() != 't' && v.Kind() != 'f' {
		return errors.New("want true or false")
	}
	*p = v.Kind() == 't'
	return nil
}
