package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// Args are the checked arguments of one call, as the tool will get them. They hold real values, secrets too: nothing of
// them may be recorded as it is.
type Args struct {
	argv  []string
	stdin []byte
	paths []PathParam
	value map[string]any
}

// PathParam is a value of a parameter with format = "path". Only who builds the tool's view can tell whether it resolves
// inside of it.
type PathParam struct {
	Name  string // "file", or "files[2]" for an item of an array
	Value string
}

// Argv returns the command with every value in its place; its first element is Tool.Program. Nil for a builtin.
func (a *Args) Argv() []string { return slices.Clone(a.argv) }

// Stdin returns what the tool reads; nil where it declares no stdin.
func (a *Args) Stdin() []byte { return a.stdin }

// PathParams returns the paths among the arguments, by parameter name.
func (a *Args) PathParams() []PathParam { return slices.Clone(a.paths) }

// Text returns an argument of a tool without a command as text; "" where it is absent.
func (a *Args) Text(name string) string {
	s, _ := a.value[name].(string)
	return s
}

// Bool returns a boolean argument of a tool without a command; false where it is absent.
func (a *Args) Bool(name string) bool { return a.value[name] == true }

// Has says whether an argument is there.
func (a *Args) Has(name string) bool { return a.value[name] != nil }

// Int returns an integer argument of a tool without a command; 0 where it is absent.
func (a *Args) Int(name string) int64 {
	n := rational(a.value[name])
	if n == nil || !n.IsInt() || !n.Num().IsInt64() {
		return 0
	}
	return n.Num().Int64()
}

// Check holds the arguments of a call, a JSON object or nothing, against t.Schema and turns them into an argv and a
// stdin. Defaults are filled in after the check, at the top level. Any fault is an *ArgumentError, also what no schema
// can say: a NUL or a leading "-" where an argv cannot have it, a redaction mark, a number of more than 1000 digits.
func (t *Tool) Check(args []byte) (*Args, error) {
	object, err := decodeObject(args)
	if err != nil {
		return nil, err
	}
	if field, ok := findMark(object, ""); ok {
		return nil, &ArgumentError{Field: field, Problem: "holds the mark " + RedactionMark +
			" of a value that was removed from a record; ask for the real text instead of sending the mark back"}
	}
	if faults := faultsOf(t.compiled.Validate(object), object); len(faults) > 0 {
		return nil, t.argumentError(faults)
	}
	for _, name := range t.names {
		if _, ok := object[name]; !ok && t.params[name].def != nil {
			object[name] = t.params[name].def
		}
	}
	a := &Args{value: object}
	for _, name := range t.names {
		if t.params[name].path {
			a.paths = append(a.paths, pathsOf(name, object[name])...)
		}
	}
	if len(t.command) > 0 {
		b := builder{tool: t, value: object}
		if err := b.build(t.command); err != nil {
			return nil, err
		}
		a.argv = b.argv
	}
	if t.stdin != nil {
		a.stdin = stdinOf(t.stdin, object)
	}
	return a, nil
}

// argumentError gathers the faults of a call, the first one in front. An unknown argument is told the known ones.
func (t *Tool) argumentError(faults []ArgumentError) *ArgumentError {
	for i := range faults {
		if faults[i].Problem == unknownArgument && !strings.ContainsAny(faults[i].Field, ".[") {
			faults[i].Problem += "; " + knownArguments(t.names)
		}
	}
	e := faults[0]
	if len(faults) > 1 {
		e.More = faults[1:min(len(faults), 8)]
	}
	return &e
}

func knownArguments(names []string) string {
	if len(names) == 0 {
		return "it takes no arguments"
	}
	return "it takes " + strings.Join(names, ", ")
}

// findMark looks for the redaction mark in every string and name.
func findMark(v any, field string) (string, bool) {
	switch x := v.(type) {
	case string:
		return field, strings.Contains(x, RedactionMark)
	case []any:
		for i := range x {
			if f, ok := findMark(x[i], fmt.Sprintf("%s[%d]", field, i)); ok {
				return f, true
			}
		}
	case map[string]any:
		for name, one := range x {
			if strings.Contains(name, RedactionMark) {
				return field, true
			}
			if f, ok := findMark(one, joinField(field, name)); ok {
				return f, true
			}
		}
	}
	return "", false
}

// joinField keeps names whole, however long: half a secret would not be found in an error any more.
func joinField(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}

func pathsOf(name string, v any) []PathParam {
	switch x := v.(type) {
	case string:
		return []PathParam{{name, x}}
	case []any:
		var paths []PathParam
		for i, one := range x {
			if s, ok := one.(string); ok {
				paths = append(paths, PathParam{fmt.Sprintf("%s[%d]", name, i), s})
			}
		}
		return paths
	}
	return nil
}

// valueText is how a value stands in a command or in stdin: strings as they are, numbers digit for digit as they were
// sent, arrays and objects as canonical JSON, null as nothing.
func valueText(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case json.Number:
		return x.String()
	case bool:
		if x {
			return "true"
		}
		return "false"
	}
	return string(canonical(v))
}

func stdinOf(t text, value map[string]any) []byte {
	var b bytes.Buffer
	for _, p := range t {
		if p.param == "" {
			b.WriteString(p.literal)
		} else {
			b.WriteString(valueText(value[p.param]))
		}
	}
	return append([]byte{}, b.Bytes()...)
}

// rational returns the exact value of a number, nil for anything else.
func rational(v any) *big.Rat {
	switch v.(type) {
	case json.Number, int64, float64:
		if r, ok := new(big.Rat).SetString(fmt.Sprint(v)); ok {
			return r
		}
	}
	return nil
}
