package catalog

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// Kinds of Change.
const (
	ChangeAdded      = "added"      // name drift
	ChangeRemoved    = "removed"    // name drift
	ChangeSchema     = "schema"     // schema drift: calls that fitted may not fit any more, or mean something else
	ChangeDefinition = "definition" // the schema is the same, what runs is not
)

// Change is one difference between two catalogs. A tool whose schema changed is listed once, as ChangeSchema, whatever
// else of it changed too.
type Change struct {
	Tool   string
	Kind   string
	From   string // schema_sha256 for ChangeSchema, definition_sha256 otherwise; "" for ChangeAdded
	To     string // the same; "" for ChangeRemoved
	Fields []Field
}

// Field is one key of the definition (see definition) that differs, as canonical JSON.
type Field struct {
	Key      string
	From, To json.RawMessage
}

// Diff returns what changed from a to b, by tool name, with the fields that differ.
func Diff(a, b *Catalog) []Change {
	changes := DiffHashes(a.SchemaSHA256s(), a.DefinitionSHA256s(), b.SchemaSHA256s(), b.DefinitionSHA256s())
	for i, c := range changes {
		from, inA := a.byName[c.Tool]
		to, inB := b.byName[c.Tool]
		if inA && inB {
			changes[i].Fields = DiffDefinitions(from.Definition, to.Definition)
		}
	}
	return changes
}

// DiffHashes is Diff for two runs, of which only the hashes by tool name are known.
func DiffHashes(schemaA, definitionA, schemaB, definitionB map[string]string) []Change {
	names := make(map[string]bool)
	for _, m := range []map[string]string{definitionA, definitionB} {
		for name := range m {
			names[name] = true
		}
	}
	var changes []Change
	for _, name := range slices.Sorted(maps.Keys(names)) {
		from, inA := definitionA[name]
		to, inB := definitionB[name]
		switch {
		case !inA:
			changes = append(changes, Change{Tool: name, Kind: ChangeAdded, To: to})
		case !inB:
			changes = append(changes, Change{Tool: name, Kind: ChangeRemoved, From: from})
		case schemaA[name] != schemaB[name]:
			changes = append(changes, Change{Tool: name, Kind: ChangeSchema, From: schemaA[name], To: schemaB[name]})
		case from != to:
			changes = append(changes, Change{Tool: name, Kind: ChangeDefinition, From: from, To: to})
		}
	}
	return changes
}

// DiffDefinitions returns the keys of two definitions that differ, those too that only one of them has.
func DiffDefinitions(from, to json.RawMessage) []Field {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(from, &a) != nil || json.Unmarshal(to, &b) != nil {
		return nil
	}
	keys := map[string]json.RawMessage{}
	maps.Copy(keys, a)
	maps.Copy(keys, b)
	var list []Field
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !bytes.Equal(a[key], b[key]) {
			list = append(list, Field{key, a[key], b[key]})
		}
	}
	return list
}
