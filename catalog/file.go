package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
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

// read takes one file into the catalog, whole. A file that two tools name is read once.
func (l *loader) read(shown, abs string) (content string, problem string) {
	for _, f := range l.files {
		if f.Path == abs {
			return f.Content, ""
		}
	}
	b, err := l.readFile(abs)
	if err != nil {
		return "", "cannot be read: " + bareCause(err)
	}
	l.files = append(l.files, File{Path: abs, SHA256: canon.SHA256Hex(b), Content: string(b), name: shown})
	return string(b), ""
}

// readRegular reads a file, but waits for no pipe and ends at maxFileBytes.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() > maxFileBytes:
		return nil, fmt.Errorf("it is larger than %s", FormatSize(maxFileBytes))
	}
	return os.ReadFile(path)
}

// readTOML reads one TOML file; it is false where the file told nothing. from is the place that names the file, nil for
// the catalog itself.
func (l *loader) readTOML(shown, abs string, from *place) (layer, bool) {
	text, problem := l.read(shown, abs)
	if problem != "" && from != nil {
		from.fail(quote(shown) + " " + problem)
		return layer{}, false
	}
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
		l.errs = append(l.errs, syntaxError(shown, text, lines, err))
		return layer{}, false
	}
	src := &source{name: shown, lines: lines, errs: &l.errs}
	return layer{place{src, nil}, values}, true
}

var definedTwice = regexp.MustCompile(`^Key '(.*)' (?:has already been defined|was already created)`)

// syntaxError turns a fault of the TOML parser into one of ours. The parser names only the second place of a key that
// is written twice; the first one is in lines.
func syntaxError(shown, text string, lines map[string]int, err error) *Error {
	var fault toml.ParseError
	if !errors.As(err, &fault) {
		return &Error{File: shown, Problem: oneLine(err.Error())}
	}
	e := &Error{File: shown, Line: fault.Position.Line, Key: oneLine(fault.LastKey), Problem: oneLine(fault.Message)}
	if start := fault.Position.Start; strings.Contains(fault.Message, `'\n'`) && start <= len(text) { // counted already
		e.Line = 1 + strings.Count(text[:start], "\n")
	}
	if m := definedTwice.FindStringSubmatch(fault.Message); m != nil {
		if first := lines[m[1]]; first > 0 {
			e.Key, e.Problem = oneLine(m[1]), twice(shown, first)
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
