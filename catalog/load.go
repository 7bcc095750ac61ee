package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"toolrun/catalog/canon"
)

// maxFileBytes bounds each file of a catalog, and maxNesting the arrays and inline tables in each other.
const (
	maxFileBytes = 4 << 20
	maxNesting   = 64
)

// loader collects what the files of one catalog say.
type loader struct {
	errs     Errors
	files    []File
	tools    map[string]*Tool
	declared map[string]place // of each tool
	defaults *layer           // nil where there is no [defaults]
	secrets  map[string]Secret
	warnings []string
}

// Load reads the catalog at path with its includes and schema files. Any fault makes it return Errors with every fault
// found, and no catalog.
func Load(path string) (*Catalog, error) {
	l := &loader{
		tools: make(map[string]*Tool), declared: make(map[string]place), secrets: make(map[string]Secret),
	}
	c := &Catalog{}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, Errors{{File: path, Problem: "cannot find its folder: " + err.Error()}}
	}
	c.path = abs
	if root, ok := l.readTOML(path, abs); ok {
		l.root(c, root)
	}
	if len(l.errs) > 0 {
		return nil, l.errs.sorted(l.files)
	}
	c.files = l.files
	c.freeze(l.tools)
	slices.Sort(l.warnings)
	c.warnings = append(l.warnings, nameWarnings(c.Names())...)
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
}

// include reads the tools of a further file.
func (l *loader) include(at place, name string) {
	shown, abs := l.relative(at, name)
	file, ok := l.readTOML(shown, abs)
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
	for name, v := range file.values {
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
			at.fail(twice(other.src.name, other.src.line(other.at)))
			continue
		}
		l.declared[name] = at
		layers := []layer{{at, values}}
		if l.defaults != nil {
			layers = append(layers, *l.defaults)
		}
		l.tools[name] = l.declare(name, newTable(layers...))
	}
}

func twice(file string, line int) string {
	return fmt.Sprintf("is declared twice: here and at %s:%d", file, line)
}

// read takes one file into the catalog, whole.
func (l *loader) read(shown, abs string) (content string, problem string) {
	info, err := os.Stat(abs)
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		return "", "is not a regular file"
	case info.Size() > maxFileBytes:
		return "", "is larger than " + formatSize(maxFileBytes)
	}
	b, err := os.ReadFile(abs)
	if err != nil {
		return "", "cannot be read: " + bareCause(err)
	}
	l.files = append(l.files, File{Path: abs, SHA256: canon.SHA256Hex(b), Content: string(b), name: shown})
	return string(b), ""
}

// readTOML reads one TOML file; it is false where the file told nothing.
func (l *loader) readTOML(shown, abs string) (layer, bool) {
	text, problem := l.read(shown, abs)
	if problem != "" {
		l.errs = append(l.errs, &Error{File: shown, Problem: problem})
		return layer{}, false
	}
	fault := &Error{File: shown}
	if at := invalidUTF8(text); at >= 0 {
		fault.Line, fault.Problem = 1+strings.Count(text[:at], "\n"), "is not UTF-8"
		l.errs = append(l.errs, fault)
		return layer{}, false
	}
	lines, deep := keyLines(text)
	if deep > 0 {
		fault.Line, fault.Problem = deep, fmt.Sprintf("values are nested deeper than %d", maxNesting)
		l.errs = append(l.errs, fault)
		return layer{}, false
	}
	values := make(map[string]any)
	if _, err := toml.Decode(text, &values); err != nil {
		l.errs = append(l.errs, syntaxError(shown, lines, err))
		return layer{}, false
	}
	src := &source{name: shown, lines: lines, errs: &l.errs}
	return layer{place{src, nil}, values}, true
}

var definedTwice = regexp.MustCompile(`^Key '(.*)' (?:has already been defined|was already created)`)

// syntaxError turns a fault of the TOML parser into one of ours. The parser names only the second place of a key that
// is written twice; the first one is in lines.
func syntaxError(shown string, lines map[string]int, err error) *Error {
	var fault toml.ParseError
	if !errors.As(err, &fault) {
		return &Error{File: shown, Problem: err.Error()}
	}
	e := &Error{File: shown, Line: fault.Position.Line, Key: fault.LastKey, Problem: fault.Message}
	if m := definedTwice.FindStringSubmatch(fault.Message); m != nil {
		if first := lines[m[1]]; first > 0 {
			e.Key, e.Problem = m[1], twice(shown, first)
		}
	}
	return e
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for i := 0; ; {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
}

// bareCause drops the path from an error of the file system, which the sentence around it names already.
func bareCause(err error) string {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err.Error()
	}
	return err.Error()
}
