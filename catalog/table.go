package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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
