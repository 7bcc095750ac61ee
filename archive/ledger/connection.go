package ledger

import (
	"errors"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"toolrun/archive/redact"
)

// Connection is one connection that a call asked its proxy for, in the order of its keys on disk.
type Connection struct {
	Host     redact.Text  `json:"host"` // as the call gave it
	Port     int          `json:"port"` // 0: the call gave none that is a port
	Sent     int64        `json:"sent"` // bytes to the host
	Received int64        `json:"received"`
	Allowed  bool         `json:"allowed"` // the tool's declaration admits it
	Why      *redact.Text `json:"why"`     // why it was refused or failed
}

// connectionKeys are written with the mark before them, so that a line can be compared piece by piece.
var connectionKeys = func() (keys []string) {
	t := reflect.TypeFor[Connection]()
	for i := range t.NumField() {
		keys = append(keys, map[bool]string{true: "{", false: ","}[i == 0]+`"`+t.Field(i).Tag.Get("json")+`":`)
	}
	return keys
}()

// values are the fields, in order, as appendValue and the parsers take them.
func (c *Connection) values() [6]any {
	return [...]any{&c.Host, &c.Port, &c.Sent, &c.Received, &c.Allowed, &c.Why}
}

func appendConnections(dst []byte, list []Connection) []byte {
	dst = append(dst, '[')
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		for k, p := range list[i].values() {
			dst = appendValue(append(dst, connectionKeys[k]...), p)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// parseConnections wants all keys of each, in any order; others pass.
func parseConnections(p *[]Connection, v jsontext.Value) error {
	*p = []Connection{}
	dec := jsontext.NewDecoder(strings.NewReader(string(v)))
	if dec.PeekKind() != '[' {
		return errors.New("want an array")
	}
	dec.ReadToken()
	for dec.PeekKind() != ']' {
		if dec.PeekKind() != '{' {
			return errors.New("want an array of objects")
		}
		dec.ReadToken()
		var c Connection
		values := c.values()
		seen := 0
		for dec.PeekKind() != '}' {
			key, err := dec.ReadToken()
			if err != nil {
				return err
			}
			name := key.String()
			value, err := dec.ReadValue()
			if err != nil {
				return err
			}
			for k, want := range connectionKeys {
				if want[2:len(want)-2] != name {
					continue
				}
				seen++
				if err := parseValue(values[k], value); err != nil {
					return errors.New(name + ": " + err.Error())
				}
			}
		}
		dec.ReadToken()
		if seen != len(connectionKeys) {
			return errors.New("a key of a connection is missing")
		}
		*p = append(*p, c)
	}
	return nil
}

// connections reads what appendConnections writes.
func (s *scanner) connections(p *[]Connection) bool {
	*p = []Connection{}
	var ok bool
	if s.rest, ok = strings.CutPrefix(s.rest, "[]"); ok {
		return true
	}
	for mark := "["; ; mark = "," {
		if s.rest, ok = strings.CutPrefix(s.rest, mark); !ok {
			return false
		}
		var c Connection
		for k, value := range c.values() {
			if s.rest, ok = strings.CutPrefix(s.rest, connectionKeys[k]); !ok || !s.value(value) {
				return false
			}
		}
		if s.rest, ok = strings.CutPrefix(s.rest, "}"); !ok {
			return false
		}
		*p = append(*p, c)
		if s.rest, ok = strings.CutPrefix(s.rest, "]"); ok {
			return true
		}
	}
}
