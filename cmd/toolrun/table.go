package main

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// table collects rows of cells and prints them aligned. Every cell is escaped when it is added.
type table struct {
	columns []column
	rows    [][]cell
}

// column is one column: a title, and numbers to the right. On a terminal that is too narrow those that give are cut, in their
// order, each down to least; where that is not enough columns are left out in the order of goes, and the head ends with a mark.
type column struct {
	title string
	right bool
	gives bool
	order int // the lower first
	least int // columns that stay of it; 0: leastColumns
	goes  int // 0: is never left out
}

// leastColumns is what a column is cut down to where it does not say.
const leastColumns = 10

type cell struct {
	text   string
	colour colour
}

// colour is an SGR parameter; a table uses it on a terminal only.
type colour string

const (
	plain  colour = ""
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	dim    colour = "2"
	bold   colour = "1"
)

// add appends one row.
func (t *table) add(cells ...cell) {
	for i := range cells {
		cells[i].text = escape(cells[i].text)
	}
	t.rows = append(t.rows, cells)
}

// text is a row without colours.
func (t *table) text(cells ...string) {
	row := make([]cell, len(cells))
	for i, c := range cells {
		row[i].text = c
	}
	t.add(row...)
}

// print writes the table to a stream: coloured and made to fit if it is a terminal.
func (t *table) print(w io.Writer, s screen) error {
	widths, shown := t.fit(s.columns)
	out := bufio.NewWriter(w)
	head := make([]cell, len(t.columns))
	titled := false
	for i, c := range t.columns {
		head[i] = cell{c.title, bold}
		titled = titled || c.title != ""
	}
	var line []byte
	if titled {
		line = t.line(line, head, widths, shown, s)
		if len(shown) < len(t.columns) {
			line = append(line, "  …"...)
		}
		out.Write(append(line, '\n'))
	}
	for _, row := range t.rows {
		line = t.line(line[:0], row, widths, shown, s)
		out.Write(append(line, '\n'))
	}
	return out.Flush() // and any error of before
}

// printWrapped prints a table of keys and values, of which nothing is cut: on a terminal long values go on below themselves.
func (t *table) printWrapped(w io.Writer, s screen) error {
	keys := t.widths()[0]
	if s.columns <= keys+2 {
		return t.print(w, screen{terminal: s.terminal, colours: s.colours})
	}
	wrapped := &table{columns: t.columns}
	for _, row := range t.rows {
		for i, line := range wrap(row[1].text, s.columns-keys-2) {
			key := row[0]
			if i > 0 {
				key = cell{}
			}
			wrapped.rows = append(wrapped.rows, []cell{key, {line, row[1].colour}})
		}
	}
	return wrapped.print(w, screen{terminal: s.terminal, colours: s.colours})
}

// widths are what the columns need.
func (t *table) widths() []int {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		widths[i] = width(c.title)
		for _, row := range t.rows {
			if i < len(row) {
				widths[i] = max(widths[i], width(row[i].text))
			}
		}
	}
	return widths
}

// fit is how wide each column is and which are shown in so many columns of a terminal, where 0 is no bound. A table that does
// not fit with all that gives and goes is too wide.
func (t *table) fit(columns int) (widths []int, shown []int) {
	for i := range t.columns {
		shown = append(shown, i)
	}
	for {
		widths = t.widths()
		if columns <= 0 {
			return widths, shown
		}
		over := 2*(len(shown)-1) - columns
		if len(shown) < len(t.columns) {
			over += 3 // the mark
		}
		for _, i := range shown {
			over += widths[i]
		}
		over = t.narrow(widths, shown, over)
		next := slices.IndexFunc(shown, func(i int) bool { return t.columns[i].goes > 0 })
		if over <= 0 || next < 0 {
			return widths, shown
		}
		for at, i := range shown {
			if goes := t.columns[i].goes; goes > 0 && goes < t.columns[shown[next]].goes {
				next = at
			}
		}
		shown = slices.Delete(shown, next, next+1)
	}
}

// narrow takes from the columns that give what is over, of those of one order from the widest, and returns what is still over.
func (t *table) narrow(widths, shown []int, over int) int {
	orders := map[int]bool{}
	for _, i := range shown {
		orders[t.columns[i].order] = true
	}
	for _, order := range slices.Sorted(maps.Keys(orders)) {
		for over > 0 {
			widest := -1
			for _, i := range shown {
				c := t.columns[i]
				if c.gives && c.order == order && widths[i] > cmp.Or(c.least, leastColumns) && (widest < 0 || widths[i] > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			widths[widest]--
			over--
		}
	}
	return over
}

// line appends one row to dst.
func (t *table) line(dst []byte, row []cell, widths, shown []int, s screen) []byte {
	for n, i := range shown {
		if i >= len(row) {
			continue
		}
		if n > 0 {
			dst = append(dst, "  "...)
		}
		text := cut(row[i].text, widths[i])
		if n < len(shown)-1 || t.columns[i].right {
			text = pad(text, widths[i], t.columns[i].right)
		}
		dst = append(dst, s.paint(row[i].colour, text)...)
	}
	return bytes.TrimRight(dst, " ")
}

// screen is what is known of the place a stream goes to. The zero screen is a pipe.
type screen struct {
	terminal bool
	colours  bool
	columns  int // 0: unbounded
}

// screenOf looks at a stream: colours only on a terminal, and not with NO_COLOR or TERM=dumb.
func screenOf(w any, getenv func(string) string) screen {
	f, ok := w.(*os.File)
	if !ok {
		return screen{}
	}
	conn, err := f.SyscallConn() // not Fd, which would make a pipe blocking
	if err != nil {
		return screen{}
	}
	var s screen
	conn.Control(func(fd uintptr) {
		if _, err := unix.IoctlGetTermios(int(fd), unix.TCGETS); err != nil {
			return
		}
		s = screen{terminal: true, colours: getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
		if size, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ); err == nil {
			s.columns = int(size.Col)
		}
	})
	return s
}

// paint colours text that is already escaped.
func (s screen) paint(c colour, text string) string {
	if !s.colours || c == plain || strings.TrimSpace(text) == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}
