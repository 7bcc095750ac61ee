package catalog

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// str returns a string without NUL, or def.
func (t *table) str(key, def string) string {
	v, at, ok := t.get(key)
	if !ok {
		return def
	}
	s, isString := v.(string)
	switch {
	case !isString:
		at.fail("must be a string, not " + kindOf(v))
	case strings.ContainsRune(s, 0):
		at.fail("must not hold a NUL byte")
	default:
		return s
	}
	return def
}

// oneOf returns a string that is one of allowed, or def.
func (t *table) oneOf(key, def string, allowed ...string) string {
	s := t.str(key, def)
	v, at, _ := t.get(key)
	if written, isString := v.(string); isString && !slices.Contains(allowed, written) {
		at.fail("must be " + alternatives(allowed) + ", not " + quote(written))
		return def
	}
	return s
}

func (t *table) boolean(key string, def bool) bool {
	v, at, ok := t.get(key)
	if !ok {
		return def
	}
	b, isBool := v.(bool)
	if !isBool {
		at.fail("must be true or false, not " + kindOf(v))
		return def
	}
	return b
}

// integer returns an integer from low to high, or def.
func (t *table) integer(key string, def, low, high int64) int64 {
	v, at, ok := t.get(key)
	if !ok {
		return def
	}
	n, isInt := v.(int64)
	switch {
	case !isInt:
		at.fail("must be an integer, not " + kindOf(v))
	case n < low || n > high:
		at.fail(fmt.Sprintf("must be from %d to %d, not %d", low, high, n))
	default:
		return n
	}
	return def
}

// number returns an integer or float from low to high, or def.
func (t *table) number(key string, def, low, high float64) float64 {
	v, at, ok := t.get(key)
	if !ok {
		return def
	}
	var f float64
	switch n := v.(type) {
	case int64:
		f = float64(n)
	case float64:
		f = n
	default:
		at.fail("must be a number, not " + kindOf(v))
		return def
	}
	if math.IsNaN(f) || f < low || f > high {
		at.fail(fmt.Sprintf("must be from %g to %g, not %g", low, high, f))
		return def
	}
	return f
}

// duration returns a duration of at least low, or def.
func (t *table) duration(key string, def, low time.Duration) time.Duration {
	v, at, ok := t.get(key)
	if !ok {
		return def
	}
	s, isString := v.(string)
	if !isString {
		at.fail(`must be a duration such as "2m", not ` + kindOf(v))
		return def
	}
	d, problem := parseDuration(s)
	if problem == "" && d < low {
		problem = fmt.Sprintf("must be at least %v, not %s", low, quote(s))
	}
	if problem != "" {
		at.fail(problem)
		return def
	}
	return d
}

// size returns a number of bytes of at least low, or def.
func (t *table) size(key string, def, low, high int64) int64 {
	v, at, ok := t.get(key)
	if !ok {
		return def
	}
	s, isString := v.(string)
	if !isString {
		at.fail(`must be a size such as "64MiB", not ` + kindOf(v))
		return def
	}
	n, problem := parseSize(s)
	switch {
	case problem != "":
	case n < low:
		problem = fmt.Sprintf("must be at least %s, not %s", FormatSize(low), quote(s))
	case n > high:
		problem = fmt.Sprintf("must be at most %s, not %s", FormatSize(high), quote(s))
	default:
		return n
	}
	at.fail(problem)
	return def
}

// list returns an array of strings that are not empty and hold no NUL, or def.
func (t *table) list(key string, def ...string) []string {
	v, at, ok := t.get(key)
	if !ok {
		return def
	}
	array, isArray := v.([]any)
	if !isArray {
		at.fail("must be an array of strings, not " + kindOf(v))
		return def
	}
	items := make([]string, 0, len(array))
	for i, element := range array {
		s, isString := element.(string)
		elementAt := place{at.src, at.at.index(i)}
		switch {
		case !isString:
			elementAt.fail("must be a string, not " + kindOf(element))
		case s == "":
			elementAt.fail("must not be empty")
		case strings.ContainsRune(s, 0):
			elementAt.fail("must not hold a NUL byte")
		default:
			items = append(items, s)
		}
	}
	return items
}
