package catalog

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// loader collects what the files of one catalog say.
type loader struct {
	readFile func(abs string) ([]byte, error)
	errs     Errors
	files    []File
	tools    map[string]*Tool
	declared map[string]place // of each tool, and of each that a mode makes
	derived  map[string]*Tool // by the name of a tool that a mode makes: the declared one
	defaults *layer           // nil where there is no [defaults]
	secrets  map[string]Secret
	compiler *jsonschema.Compiler
	compiled int // schemas given to compiler, each under its own URL
	warnings Errors
}

// Load reads the catalog at path with its includes and schema files. Any fault makes it return Errors with every fault
// found, and no catalog.
func Load(path string) (*Catalog, error) { return load(path, readRegular) }

func load(path string, readFile func(string) ([]byte, error)) (*Catalog, error) {
	l := &loader{
		readFile: readFile,
		tools:    make(map[string]*Tool), declared: make(map[string]place), derived: make(map[string]*Tool), secrets: make(map[string]Secret),
	}
	c := &Catalog{}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, Errors{{File: path, Problem: "cannot find its folder: " + err.Error()}}
	}
	c.path = abs
	if root, ok := l.readTOML(path, abs, nil); ok {
		l.root(c, root)
	}
	if len(l.errs) > 0 {
		return nil, l.errs.sorted(l.files)
	}
	c.files = l.files
	c.freeze(l.tools)
	l.warnNames(c.Names())
	c.warnings = l.warnings.sorted(l.files)
	return c, nil
}

// root reads tools.toml itself. What its tools refer to, defaults and secrets, comes before them.
func (l *loader) root(c *Catalog, root layer) {
	t := newTable(root)
	c.name = filepath.Base(filepath.Dir(c.path))
	var includes []string
	if head := t.child("catalog"); head != nil {
		c.name = head.str("name", c.name)
		includes = head.list("include")
		head.done()
	}
	if defaults := t.child("defaults"); defaults != nil {
		l.readDefaults(defaults.layers[0])
	}
	c.secrets = l.readSecrets(t.child("secrets"))
	c.prices = readPrices(t.child("prices"))
	l.readTools(t.child("tools"))
	t.done()
	for i, include := range includes {
		at := place{root.src, path{"catalog", "include"}.index(i)}
		l.include(at, include)
	}
	if len(l.tools) == 0 {
		l.warn(root.place, "no tool is declared, so that an agent has none: write [tools.NAME]")
	}
}

// include reads the tools of a further file.
func (l *loader) include(at place, name string) {
	shown, abs := l.relative(at, name)
	file, ok := l.readTOML(shown, abs, &at)
	if !ok {
		return
	}
	t := newTable(file)
	l.readTools(t.child("tools"))
	for key := range file.values {
		if key != "tools" {
			file.src.fail(path{key}, "only [tools] may stand in an included file")
		}
	}
}

// relative resolves a path that a file names against that file's own folder: as errors show it, and absolute.
func (l *loader) relative(at place, name string) (shown, abs string) {
	shown = name
	if !filepath.IsAbs(name) {
		shown = filepath.Join(filepath.Dir(at.src.name), name)
	}
	abs, err := filepath.Abs(shown)
	if err != nil {
		return shown, shown
	}
	return shown, abs
}

func (l *loader) readTools(tools *table) {
	if tools == nil {
		return
	}
	file := tools.layers[0]
	for _, name := range slices.Sorted(maps.Keys(file.values)) {
		v := file.values[name]
		at := place{file.src, file.at.key(name)}
		values, ok := v.(map[string]any)
		if !ok {
			at.fail("must be a table, not " + kindOf(v))
			continue
		}
		if problem := checkName(name); problem != "" {
			at.fail(problem)
		}
		if other, ok := l.declared[name]; ok {
			problem := twice(other.src.name, other.src.line(other.at))
			if base := l.derived[name]; base != nil {
				problem = fmt.Sprintf("is also what mode = %q of %s makes at %s:%d: rename one of them", base.Mode, base.Name, other.src.name, other.src.line(other.at))
			}
			at.fail(problem)
			continue
		}
		l.declared[name] = at
		layers := []layer{{at, values}}
		if l.defaults != nil {
			layers = append(layers, *l.defaults)
		}
		tool := l.declare(name, newTable(layers...))
		if tool.Mode == ModeCall {
			l.tools[name] = tool
		} else {
			l.derive(tool, at)
		}
	}
}

func twice(file string, line int) string {
	return fmt.Sprintf("is declared twice: here and at %s:%d", file, line)
}
