package main

import (
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// table collects rows of cells and prints them aligned. Every cell is escaped when it is added.
type table struct {
	columns []column
	rows    [][]cell
}

// column is one column: a title, numbers to the right, and at most one of a table that gives way on a narrow terminal.
type column struct {
	title string
	right bool
	gives bool
}

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

// print writes the table to a stream: coloured and cut to the terminal's width if it is one.
func (t *table) print(w io.Writer, s screen) error {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		widths[i] = width(c.title)
		for _, row := range t.rows {
			if i < len(row) {
				widths[i] = max(widths[i], width(row[i].text))
			}
		}
	}
	t.fit(widths, s.columns)
	var b strings.Builder
	head := make([]cell, len(t.columns))
	titled := false
	for i, c := range t.columns {
		head[i] = cell{c.title, bold}
		titled = titled || c.title != ""
	}
	if titled {
		t.line(&b, head, widths, s)
	}
	for _, row := range t.rows {
		t.line(&b, row, widths, s)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// fit takes from the column that gives what the terminal lacks, down to 10 columns.
func (t *table) fit(widths []int, columns int) {
	if columns <= 0 {
		return
	}
	total := 2 * (len(widths) - 1)
	for _, n := range widths {
		total += n
	}
	for i, c := range t.columns {
		if c.gives && total > columns {
			widths[i] = max(min(10, widths[i]), widths[i]-(total-columns))
		}
	}
}

func (t *table) line(b *strings.Builder, row []cell, widths []int, s screen) {
	var line strings.Builder
	for i, c := range row {
		if i > 0 {
			line.WriteString("  ")
		}
		line.WriteString(s.paint(c.colour, pad(cut(c.text, widths[i]), widths[i], t.columns[i].right)))
	}
	b.WriteString(strings.TrimRight(line.String(), " "))
	b.WriteByte('\n')
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
