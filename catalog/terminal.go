package catalog

import "fmt"

// Terminal is the size of a tool's pseudoterminal, in characters. The zero value is none: the tool has pipes.
type Terminal struct{ Rows, Cols int }

// What pty = true gives, and the largest terminal. The bounds are those of runner/terminal, which holds a cell for each
// character; a test of the runner holds the two together.
const (
	defaultRows, defaultCols = 24, 80

	MaxTerminalRows = 300
	MaxTerminalCols = 1000
)

// readTerminal reads pty: true, false or a size. A builtin has none, whatever [defaults] says.
func readTerminal(tool *Tool, t *table) Terminal {
	v, at, ok := t.get("pty")
	if tool.Builtin != "" {
		if t.has("pty") && v != false {
			at.fail("does not fit a builtin, which starts no program")
		}
		return Terminal{}
	}
	switch p := v.(type) {
	case bool:
		if !p {
			return Terminal{}
		}
		return Terminal{Rows: defaultRows, Cols: defaultCols}
	case map[string]any:
		size := t.child("pty")
		defer size.done()
		return Terminal{
			Rows: int(size.integer("rows", defaultRows, 1, MaxTerminalRows)),
			Cols: int(size.integer("cols", defaultCols, 1, MaxTerminalCols)),
		}
	}
	if ok {
		at.fail(fmt.Sprintf("must be true, false or { rows = %d, cols = %d }, not %s", defaultRows, defaultCols, kindOf(v)))
	}
	return Terminal{}
}

// readStderr reads stderr. A terminal has one output: there stderr goes where stdout goes, whatever [defaults] says.
func readStderr(tool *Tool, t *table) {
	tool.StderrMerge = t.oneOf("stderr", "separate", "separate", "merge") == "merge"
	if tool.Terminal == (Terminal{}) {
		return
	}
	if v, at, _ := t.get("stderr"); v == "separate" && t.has("stderr") {
		at.fail(`a terminal (pty) has one output: write stderr = "merge", or leave it out`)
	}
	tool.StderrMerge = true
}

// object is pty as a definition has it.
func (s Terminal) object() any {
	if s == (Terminal{}) {
		return false
	}
	return map[string]any{"cols": s.Cols, "rows": s.Rows}
}
