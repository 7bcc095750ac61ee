package catalog

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// layer is one TOML table that values are taken from.
type layer struct {
	place
	values map[string]any
}

// table reads the keys of a declaration by name and type. Its first layer is what was written; a second one is
// [defaults]. Every key that was asked for counts as known; done reports the others. Keys are compared byte for byte: the
// decoder's own way of filling struct fields would take Name for name.
type table struct {
	layers []layer
	known  map[string]bool
}

func newTable(layers ...layer) *table { return &table{layers: layers, known: make(map[string]bool)} }

// here is where the table itself was written.
func (t *table) here() place { return t.layers[0].place }

// has says whether the key is written in the first layer.
func (t *table) has(key string) bool {
	_, ok := t.layers[0].values[key]
	return ok
}

// get returns the value of a key and its place; for a key that no layer has, the place where it belongs.
func (t *table) get(key string) (any, place, bool) {
	t.known[key] = true
	for _, l := range t.layers {
		if v, ok := l.values[key]; ok {
			return v, place{l.src, l.at.key(key)}, true
		}
	}
	return nil, place{t.here().src, t.here().at.key(key)}, false
}

// done reports the keys of the first layer that nobody asked for.
func (t *table) done() {
	first := t.layers[0]
	for _, key := range slices.Sorted(maps.Keys(first.values)) {
		if !t.known[key] {
			first.src.fail(first.at.key(key), t.unknown(key))
		}
	}
}

func (t *table) unknown(key string) string {
	names := slices.Sorted(maps.Keys(t.known))
	for _, name := range names {
		if !strings.EqualFold(name, key) {
			continue
		}
		if t.has(name) {
			return fmt.Sprintf("unknown key; %q and %q differ only in case, and keys are case-sensitive: remove %q", key, name, key)
		}
		return fmt.Sprintf("unknown key; keys are case-sensitive: write %q", name)
	}
	if name := nearest(key, names); name != "" {
		return fmt.Sprintf("unknown key; did you mean %q?", name)
	}
	return "unknown key"
}

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
		problem = fmt.Sprintf("must be at least %s, not %s", formatSize(low), quote(s))
	case n > high:
		problem = fmt.Sprintf("must be at most %s, not %s", formatSize(high), quote(s))
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

// child returns the table under a key, its layers merged key by key; nil where no layer has it.
func (t *table) child(key string) *table {
	t.known[key] = true
	var layers []layer
	for _, l := range t.layers {
		v, ok := l.values[key]
		if !ok {
			continue
		}
		at := place{l.src, l.at.key(key)}
		values, isTable := v.(map[string]any)
		if !isTable {
			at.fail("must be a table, not " + kindOf(v))
			continue
		}
		layers = append(layers, layer{at, values})
	}
	if len(layers) == 0 {
		return nil
	}
	return newTable(layers...)
}
