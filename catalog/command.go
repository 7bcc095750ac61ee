package catalog

import (
	"fmt"
	"strings"
)

// argument is one element of a command: a text, or a nested array that is left out as a whole.
type argument struct {
	text  text
	group []argument // nil for a text; its own elements have no group
}

// readCommand reads command and stdin, once the parameters are known.
func (l *loader) readCommand(tool *Tool, t *table) {
	used := make(map[string]bool)
	v, at, ok := t.get("command")
	elements, isArray := v.([]any)
	switch {
	case !ok:
		at.fail(`is missing: write the program and its arguments, such as ["git", "status"]`)
	case !isArray:
		at.fail("must be an array, the program and its arguments, not " + kindOf(v) + ": no shell reads it")
	case len(elements) == 0:
		at.fail("must not be empty")
	default:
		tool.command = readArguments(tool, at, elements, used)
	}
	if s := t.str("stdin", ""); s != "" {
		_, at, _ := t.get("stdin")
		tool.stdin = readStdin(tool, at, s, used)
	} else if v, at, ok := t.get("stdin"); ok && v == "" {
		at.fail("must not be empty; without the key the tool reads nothing")
	}
	l.warnTool(tool, t, used)
}

func readArguments(tool *Tool, at place, elements []any, used map[string]bool) []argument {
	var command []argument
	for i, element := range elements {
		here := place{at.src, at.at.index(i)}
		inner, isArray := element.([]any)
		switch {
		case i == 0 && isArray:
			here.fail("the first element is the program and must be a string")
		case isArray:
			command = append(command, argument{group: readGroup(tool, here, inner, used)})
		default:
			a, ok := readArgument(tool, here, element, used, false)
			if ok && i == 0 && (!a.text.plain() || strings.TrimSpace(a.text.literal()) == "") {
				here.fail("the program must not be empty, nor come from a parameter")
			}
			command = append(command, a)
		}
	}
	return command
}

// readGroup reads a nested array, which is left out when a parameter of it is absent or false; one without parameters
// stays.
func readGroup(tool *Tool, at place, elements []any, used map[string]bool) []argument {
	group := []argument{}
	for i, element := range elements {
		here := place{at.src, at.at.index(i)}
		if _, isArray := element.([]any); isArray {
			here.fail("an array in a nested array is one level too deep")
			continue
		}
		a, _ := readArgument(tool, here, element, used, true)
		group = append(group, a)
	}
	return group
}

func readArgument(tool *Tool, at place, element any, used map[string]bool, inGroup bool) (argument, bool) {
	s, isString := element.(string)
	if !isString {
		at.fail("must be a string or a nested array of strings, not " + kindOf(element))
		return argument{}, false
	}
	if strings.ContainsRune(s, 0) {
		at.fail("must not hold a NUL byte")
		return argument{}, false
	}
	t, problem := parseText(s)
	if problem != "" {
		at.fail(problem)
		return argument{}, false
	}
	for _, p := range t {
		if p.param == "" {
			continue
		}
		used[p.param] = true
		if problem := checkPlaceholder(tool, p, inGroup, len(t) == 1); problem != "" {
			at.fail(problem)
		}
	}
	return argument{text: t}, true
}

// checkPlaceholder says what is wrong with a placeholder at its place in the command. A tool whose schema is at fault
// has no parameters to hold it against.
func checkPlaceholder(tool *Tool, p part, inGroup, whole bool) string {
	if tool.compiled == nil {
		return ""
	}
	declared, ok := tool.params[p.param]
	switch {
	case !ok:
		return fmt.Sprintf("there is no parameter %q%s", p.param, suggestion(p.param, tool.names))
	case p.spread && !whole:
		return fmt.Sprintf("{%s...} becomes elements of its own and cannot be part of a text", p.param)
	case p.spread && !declared.array():
		return fmt.Sprintf("{%s...} needs a parameter of type array", p.param)
	case p.spread || inGroup:
		return ""
	case declared.boolean():
		return fmt.Sprintf("a boolean prints nothing; put {%s} into a nested array, which is left out when it is false", p.param)
	case !declared.required && declared.def == nil:
		return fmt.Sprintf("{%s} may be absent, and nothing could stand here: give the parameter required = true or a default, or put it into a nested array", p.param)
	}
	return ""
}

func suggestion(name string, names []string) string {
	if near := nearest(name, names); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// readStdin reads the template of stdin. A template that is one placeholder may stand for an absent parameter: then the
// tool's stdin is empty.
func readStdin(tool *Tool, at place, s string, used map[string]bool) text {
	t, problem := parseText(s)
	if problem != "" {
		at.fail(problem)
		return nil
	}
	for _, p := range t {
		if p.param == "" {
			continue
		}
		used[p.param] = true
		declared := tool.params[p.param]
		switch {
		case tool.compiled == nil:
		case declared == nil:
			at.fail(fmt.Sprintf("there is no parameter %q%s", p.param, suggestion(p.param, tool.names)))
		case p.spread:
			at.fail(fmt.Sprintf("{%s...} is for a command; in stdin {%s} writes the array as JSON", p.param, p.param))
		case len(t) > 1 && !declared.required && declared.def == nil:
			at.fail(fmt.Sprintf("{%s} may be absent, and nothing could stand here: give the parameter required = true or a default", p.param))
		}
	}
	return t
}
