package catalog

import (
	"fmt"
	"strings"
)

// before says what the element in front of a value tells of it.
type before int

const (
	beforeText   before = iota // the value could be read as an option
	beforeOption               // the element in front is an option that may take the value
	beforeDashes               // the element in front is --, or other values that follow it
)

// builder puts values into a command.
type builder struct {
	tool  *Tool
	value map[string]any
	argv  []string
	prev  before
}

func (b *builder) build(command []argument) error {
	for _, a := range command {
		elements := []argument{a}
		if a.group != nil {
			if b.leftOut(a.group) {
				continue
			}
			elements = a.group
		}
		for _, e := range elements {
			if err := b.add(e.text); err != nil {
				return err
			}
		}
	}
	return nil
}

// leftOut says whether a nested array is left out: a parameter of it is absent, null or false, or an array that is to be
// spread is empty.
func (b *builder) leftOut(group []argument) bool {
	for _, a := range group {
		for _, p := range a.text {
			if p.param == "" {
				continue
			}
			v := b.value[p.param]
			items, isArray := v.([]any)
			if v == nil || v == false || p.spread && isArray && len(items) == 0 {
				return true
			}
		}
	}
	return false
}

func (b *builder) add(t text) error {
	if t.plain() {
		b.literal(t.literal())
		return nil
	}
	if t[0].spread {
		items, _ := b.value[t[0].param].([]any)
		for i, item := range items {
			field := fmt.Sprintf("%s[%d]", t[0].param, i)
			if err := b.filled(field, t[0].param, valueText(item)); err != nil {
				return err
			}
		}
		return nil
	}
	var s strings.Builder
	for _, p := range t {
		v := b.value[p.param]
		switch {
		case p.param == "":
			s.WriteString(p.literal)
		case v == true && b.tool.params[p.param].boolean(): // prints nothing
		default:
			text := valueText(v)
			if strings.ContainsRune(text, 0) {
				return &ArgumentError{Field: p.param, Problem: noNUL}
			}
			s.WriteString(text)
		}
	}
	if t[0].param == "" {
		b.argv, b.prev = append(b.argv, s.String()), beforeText
		return nil
	}
	if s.Len() == 0 && len(t) == 1 && b.tool.params[t[0].param].boolean() {
		return nil
	}
	return b.filled(t[0].param, t[0].param, s.String())
}

// literal adds an element that the catalog wrote.
func (b *builder) literal(s string) {
	b.argv = append(b.argv, s)
	switch {
	case s == "--":
		b.prev = beforeDashes
	case len(s) > 1 && s[0] == '-' && !strings.Contains(s, "="):
		b.prev = beforeOption
	default:
		b.prev = beforeText
	}
}

const noNUL = "must not hold a NUL character, which no argument of a program can carry"

// filled adds an element that begins with the value of a parameter. Where a program would read it as an option, it must
// not begin with "-": the caller gives values, never options, unless the parameter says dash = true.
func (b *builder) filled(field, name, s string) error {
	if strings.ContainsRune(s, 0) {
		return &ArgumentError{Field: field, Problem: noNUL}
	}
	if strings.HasPrefix(s, "-") && b.prev == beforeText && !b.tool.params[name].dash {
		return &ArgumentError{Field: field, Problem: `must not start with "-", since the program would read it as an option`}
	}
	b.argv = append(b.argv, s)
	if b.prev == beforeOption {
		b.prev = beforeText // the option has its value
	}
	return nil
}
