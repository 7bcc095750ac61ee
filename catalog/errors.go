package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNotFound says that no tools.toml is where Find looked.
var ErrNotFound = errors.New("no tools.toml found")

// RedactionMark is what stands in a record where a secret stood. It is the mark of archive/redact, written here again
// because the catalog must not import the archive; a test of the runner holds the two together.
const RedactionMark = "[REDACTED]"

// Error is one fault of a catalog, at the place where a person can mend it.
type Error struct {
	File    string // as it was named to Load, or as the including catalog's folder leads to it
	Line    int    // from 1; 0 where the fault has no line
	Key     string // dotted, as in TOML; "" where the fault has no key
	Problem string
}

// Error returns "file:line: key: what is wrong" without the parts that are not known.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	b.WriteString(": ")
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	b.WriteString(e.Problem)
	return b.String()
}

// Errors is every fault that Load found, in the order of file and line.
type Errors []*Error

// Error returns one fault a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find each *Error.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, one := range e {
		errs[i] = one
	}
	return errs
}

// sorted orders the faults and drops repetitions; the files keep the order in which they were read.
func (e Errors) sorted(files []File) Errors {
	order := func(name string) int {
		return slices.IndexFunc(files, func(f File) bool { return f.name == name })
	}
	slices.SortStableFunc(e, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(order(a.File), order(b.File)), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Key, b.Key), cmp.Compare(a.Problem, b.Problem))
	})
	seen := make(map[Error]bool, len(e)) // a fault of [defaults] is found once for each tool
	return slices.DeleteFunc(e, func(one *Error) bool {
		again := seen[*one]
		seen[*one] = true
		return again
	})
}

// ArgumentError says what is wrong with the arguments of a call. It names the field and never holds a value, so that it
// may be shown and logged; a name that the caller invented is cut at 64 bytes.
type ArgumentError struct {
	Field   string // "args[1]"; "" for the arguments as a whole
	Problem string
	More    []ArgumentError // further faults of the same call, at most 7
}

// Error returns `argument "field": problem`, and the same for each further fault.
func (e *ArgumentError) Error() string {
	text := e.sentence()
	for i := range e.More {
		text += "; " + e.More[i].sentence()
	}
	return text
}

func (e *ArgumentError) sentence() string {
	if e.Field == "" {
		return "arguments: " + e.Problem
	}
	return fmt.Sprintf("argument %q: %s", e.Field, e.Problem)
}
