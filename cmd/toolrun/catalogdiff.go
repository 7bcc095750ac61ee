package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"toolrun/archive"
	"toolrun/archive/trace"
	"toolrun/catalog"
)

func (a *app) catalogDiffCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "diff A B",
		Short: "Say what changed between two catalogs, each a file, a folder or the id of a run.",
		Long: "Say what changed between two catalogs, each a file, a folder or the id of a run: names first, then schemas, then\n" +
			"the rest of a definition, each changed field; of runs that kept no definitions, the hashes. Status 3 where they differ.",
		Example:     "  toolrun catalog diff old/tools.toml tools.toml",
		Args:        cobra.ExactArgs(2),
		Annotations: exitsAlso(statusFound, statusData),
		RunE: func(_ *cobra.Command, args []string) error {
			from, err := a.frozen(args[0])
			if err != nil {
				return err
			}
			to, err := a.frozen(args[1])
			if err != nil {
				return err
			}
			return a.printChanges(from.diff(to))
		},
	}
}

// frozen is a catalog that can be compared: of a file, or of a run, by its hashes and what the store has of it.
type frozen struct {
	schemas, definitions map[string]string
	definition           func(name string) json.RawMessage // nil where it is not known
}

// diff is what changed to another catalog, with the fields where both definitions are known.
func (f *frozen) diff(to *frozen) []catalog.Change {
	changes := catalog.DiffHashes(f.schemas, f.definitions, to.schemas, to.definitions)
	for i, c := range changes {
		if c.Kind != catalog.ChangeSchema && c.Kind != catalog.ChangeDefinition {
			continue
		}
		if a, b := f.definition(c.Tool), to.definition(c.Tool); a != nil && b != nil {
			changes[i].Fields = catalog.DiffDefinitions(a, b)
		}
	}
	return changes
}

func (a *app) frozen(name string) (*frozen, error) {
	if _, err := os.Stat(name); err == nil || strings.HasSuffix(name, ".toml") {
		c, err := catalog.Load(catalogFile(name))
		if err != nil {
			return nil, err
		}
		return frozenOfCatalog(c), nil
	}
	d, err := a.openForReading()
	if err != nil {
		return nil, fmt.Errorf("%q is no file, and no run can be looked up: %w", name, err)
	}
	f, err := frozenOfRun(d, name)
	if err != nil {
		return nil, fmt.Errorf("no file %q: %w", name, err)
	}
	return f, nil
}

func frozenOfCatalog(c *catalog.Catalog) *frozen {
	return &frozen{c.SchemaSHA256s(), c.DefinitionSHA256s(), func(name string) json.RawMessage {
		if t, ok := c.Lookup(name); ok {
			return t.Definition
		}
		return nil
	}}
}

// runID finds a run by its id, or by the beginning of it.
func runID(d *archive.Dir, id string) (string, error) {
	all, err := d.Runs()
	if err != nil {
		return "", err
	}
	var found []string
	for _, run := range all {
		if run == id {
			return run, nil
		}
		if id != "" && strings.HasPrefix(run, id) {
			found = append(found, run)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%q is no run of %s: 'toolrun show CALL' names the run of a call", id, d.Path())
	case 1:
		return found[0], nil
	}
	return "", several("runs", id, found)
}

// frozenOfRun reads the first line of a run's trace.
func frozenOfRun(d *archive.Dir, id string) (*frozen, error) {
	run, err := runID(d, id)
	if err != nil {
		return nil, err
	}
	rec := newRecord(d)
	header := rec.header(run)
	if header == nil {
		return nil, fmt.Errorf("%s:1: the trace does not begin with its catalog", d.RunPath(run))
	}
	return frozenOfHeader(header, rec)
}

// frozenOfHeader is the catalog of a trace's first line.
func frozenOfHeader(header *trace.Line, rec *record) (*frozen, error) {
	f := &frozen{}
	f.definition = func(name string) json.RawMessage {
		b, err := rec.content(f.definitions[name])
		if err != nil {
			return nil
		}
		return b
	}
	return f, errors.Join(json.Unmarshal(header.SchemaSHA256, &f.schemas), json.Unmarshal(header.DefinitionSHA256, &f.definitions))
}

// change is one line of catalog diff --json.
type change struct {
	Tool   string  `json:"tool"`
	Change string  `json:"change"` // added, removed, schema, definition
	From   string  `json:"from,omitzero"`
	To     string  `json:"to,omitzero"`
	Fields []field `json:"fields,omitempty"`
}

type field struct {
	Key  string          `json:"key"`
	From json.RawMessage `json:"from,omitzero"`
	To   json.RawMessage `json:"to,omitzero"`
}

// printChanges prints name drift, schema drift and definition drift apart.
func (a *app) printChanges(changes []catalog.Change) error {
	if a.flags.json {
		for _, c := range changes {
			if err := printJSON(a.stdout, changeLine(c)); err != nil {
				return err
			}
		}
		return differs(changes)
	}
	if len(changes) == 0 {
		return a.say("no difference")
	}
	if _, err := a.stdout.Write([]byte(changesText(changes))); err != nil {
		return err
	}
	return differs(changes)
}

func changeLine(c catalog.Change) change {
	line := change{Tool: c.Tool, Change: c.Kind, From: c.From, To: c.To}
	for _, f := range c.Fields {
		line.Fields = append(line.Fields, field(f))
	}
	return line
}

// changesText is name drift, schema drift and definition drift apart, for people.
func changesText(changes []catalog.Change) string {
	var b strings.Builder
	kinds := map[string]int{}
	for _, c := range changes {
		kinds[c.Kind]++
	}
	if kinds[catalog.ChangeAdded]+kinds[catalog.ChangeRemoved]+kinds[catalog.ChangeSchema] > 0 {
		say(&b, "not comparable: calls under the one catalog say nothing of calls under the other")
	}
	section(&b, "names", changes, catalog.ChangeAdded, catalog.ChangeRemoved)
	section(&b, "schemas", changes, catalog.ChangeSchema)
	section(&b, "definitions", changes, catalog.ChangeDefinition)
	return b.String()
}

func section(b *strings.Builder, title string, changes []catalog.Change, kinds ...string) {
	headed := false
	for _, c := range changes {
		for _, kind := range kinds {
			if c.Kind != kind {
				continue
			}
			if !headed {
				say(b, "%s:", title)
				headed = true
			}
			sign := map[string]string{catalog.ChangeAdded: "+", catalog.ChangeRemoved: "-"}[kind]
			if sign == "" {
				sign = "~"
			}
			say(b, "  %s %s", sign, c.Tool)
			if kind == catalog.ChangeSchema || kind == catalog.ChangeDefinition {
				say(b, "      %s -> %s", short(c.From), short(c.To))
			}
			for _, f := range c.Fields {
				for _, line := range leaves(f.Key, f.From, f.To) {
					say(b, "      %s", line)
				}
			}
		}
	}
}

// leaves are what differs below key, down to the members of objects that both sides have.
func leaves(key string, from, to json.RawMessage) (list []string) {
	var x, y map[string]json.RawMessage
	if json.Unmarshal(from, &x) != nil || json.Unmarshal(to, &y) != nil || x == nil || y == nil {
		return []string{fmt.Sprintf("%s: %s -> %s", key, orNothing(from), orNothing(to))}
	}
	names := slices.Collect(maps.Keys(x))
	for name := range y {
		if _, both := x[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if !bytes.Equal(x[name], y[name]) {
			list = append(list, leaves(key+"."+name, x[name], y[name])...)
		}
	}
	return list
}

func orNothing(v json.RawMessage) string {
	if len(v) == 0 {
		return "(nothing)"
	}
	return string(v)
}

// differs is the status of a comparison: 3 where there is a difference.
func differs(changes []catalog.Change) error {
	if len(changes) == 0 {
		return nil
	}
	return told(fmt.Errorf("%s: %w", count(len(changes), "difference"), errFound))
}
