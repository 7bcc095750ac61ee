// Package catalog reads tools.toml, checks it, freezes it and hashes it.
//
// Load either returns a Catalog of which every declaration was understood to the last key, or every fault it found, each
// with file, line and key; it never returns half a catalog. A tool whose program stays (mode = "session" or "background")
// stands in it as the tools that start the program and deal with it. A Catalog has no setters and reads no file again: a change of
// tools.toml while it is in use changes nothing. A Tool checks the arguments of a call against the very schema it
// advertises and turns them into an argv and a stdin; it starts nothing and looks at no path of the workspace.
package catalog

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"

	"toolrun/catalog/canon"
	"toolrun/catalog/prices"
)

// Catalog is a frozen set of tools. It is safe for concurrent use.
type Catalog struct {
	name     string
	path     string
	files    []File
	tools    []*Tool // sorted by name
	byName   map[string]*Tool
	secrets  []Secret
	prices   []prices.Price
	warnings Errors

	sha256           string
	definitionSHA256 string
}

// File is one file that the catalog was read from: tools.toml itself first, then includes and schema files as they come.
type File struct {
	Path    string // absolute
	SHA256  string // of Content
	Content string // the bytes that were read

	name string // as errors name it
}

// Name is the name that [catalog] gives, else that of the folder that holds the file.
func (c *Catalog) Name() string { return c.name }

// Path is the absolute path of tools.toml.
func (c *Catalog) Path() string { return c.path }

// Files returns every file that was read.
func (c *Catalog) Files() []File { return slices.Clone(c.files) }

// FilesSHA256 is the SHA-256 of the canonical JSON of {path relative to the catalog's folder: SHA-256 of the file}: what
// a person trusts.
func (c *Catalog) FilesSHA256() string {
	hashes := make(map[string]string, len(c.files))
	for _, f := range c.files {
		rel, err := filepath.Rel(filepath.Dir(c.path), f.Path)
		if err != nil {
			rel = f.Path
		}
		hashes[filepath.ToSlash(rel)] = f.SHA256
	}
	return hashOf(hashes)
}

// Names returns the names of the tools, sorted.
func (c *Catalog) Names() []string {
	names := make([]string, len(c.tools))
	for i, t := range c.tools {
		names[i] = t.Name
	}
	return names
}

// Tools returns the tools, sorted by name.
func (c *Catalog) Tools() []*Tool { return slices.Clone(c.tools) }

// Lookup returns the tool of exactly this name.
func (c *Catalog) Lookup(name string) (*Tool, bool) {
	t, ok := c.byName[name]
	return t, ok
}

// SHA256 is catalog_sha256: of the canonical JSON of the sorted names.
func (c *Catalog) SHA256() string { return c.sha256 }

// DefinitionSHA256 is catalog_definition_sha256: of the canonical JSON of {name: definition_sha256}.
func (c *Catalog) DefinitionSHA256() string { return c.definitionSHA256 }

// SchemaSHA256s returns schema_sha256 by tool name.
func (c *Catalog) SchemaSHA256s() map[string]string {
	return c.hashes(func(t *Tool) string { return t.SchemaSHA256 })
}

// DefinitionSHA256s returns definition_sha256 by tool name.
func (c *Catalog) DefinitionSHA256s() map[string]string {
	return c.hashes(func(t *Tool) string { return t.DefinitionSHA256 })
}

func (c *Catalog) hashes(of func(*Tool) string) map[string]string {
	m := make(map[string]string, len(c.tools))
	for _, t := range c.tools {
		m[t.Name] = of(t)
	}
	return m
}

// Secrets returns the declared secrets, sorted by name. Their values are not read: see ResolveSecrets.
func (c *Catalog) Secrets() []Secret { return slices.Clone(c.secrets) }

// Warnings tells, each at its place, of what is allowed and will still surprise: names that some client renames or drops, a
// limit that breaks common runtimes, a parameter that a shell reads as a part of its script.
func (c *Catalog) Warnings() Errors { return slices.Clone(c.warnings) }

// freeze sorts the tools and computes the hashes of the whole.
func (c *Catalog) freeze(tools map[string]*Tool) {
	c.byName = tools
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		c.tools = append(c.tools, tools[name])
	}
	c.sha256 = hashOf(c.Names())
	c.definitionSHA256 = hashOf(c.DefinitionSHA256s())
}

// hashOf returns the SHA-256 of the canonical JSON of a value that is made of strings only.
func hashOf(v any) string { return canon.SHA256Hex(canonical(v)) }

// canonical returns the canonical JSON of a value that this package made, which can always be encoded.
func canonical(v any) json.RawMessage {
	b, err := canon.Of(v)
	if err != nil {
		panic("catalog: " + err.Error()) // strings that are not UTF-8 were refused when the file was read
	}
	return b
}
