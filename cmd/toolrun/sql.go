package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"toolrun/archive/index"
)

func (a *app) sqlCmd() *cobra.Command {
	var csv bool
	var views strings.Builder
	for _, v := range index.Views {
		fmt.Fprintf(&views, "\n  %-19s %s", v.Name, v.What)
	}
	cmd := &cobra.Command{
		Use:   "sql ['SELECT ...']",
		Short: "Ask the ledger in SQL: table tool_calls has one column for each key of a row.",
		Long: "Ask the ledger in SQL: table tool_calls has one column for each key of a row, and joined, which is 1 where 'toolrun audit'\n" +
			"learned something of it. Arrays are JSON text, booleans 0 or 1. index.db in the data directory is brought up to date first.\n" +
			"--session, --since, --until and --hot leave out the other rows, of the views too. Without a statement it reads statements\n" +
			"from stdin, on a terminal as a small shell. Only statements that read are allowed. .schema in place of a statement lists\n" +
			"the columns, .help what else there is. Ready-made views:\n" + views.String(),
		Example:     "  toolrun sql 'SELECT tool_name, COUNT(*) FROM tool_calls GROUP BY tool_name'",
		Args:        cobra.MaximumNArgs(1),
		Annotations: exitsAlso(statusFound, statusData),
		RunE: func(cmd *cobra.Command, args []string) error {
			db, err := a.openIndex(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			seen := damageSeen{a: a}
			for _, damage := range db.Damaged {
				if err := seen.note(damage); err != nil {
					return err
				}
			}
			s := &sqlSession{app: a, db: db, csv: csv}
			switch {
			case len(args) == 1:
				err = s.answer(args[0])
			case isTerminal(a.stdin) && a.screen().terminal:
				err = s.shell()
			default:
				var text []byte
				if text, err = io.ReadAll(io.LimitReader(a.stdin, maxStatement+1)); err == nil && len(text) > maxStatement {
					err = usagef(cmd, "over %d bytes of statements on stdin", maxStatement)
				}
				if err == nil {
					err = s.answer(string(text))
				}
			}
			return errors.Join(err, seen.result())
		},
	}
	cmd.Flags().BoolVar(&csv, "csv", false, "print CSV")
	return cmd
}

// maxStatement bounds what is read of stdin.
const maxStatement = 16 << 20

// openIndex brings the index up to date and opens it for the range and the session that are asked for.
func (a *app) openIndex(ctx context.Context) (*index.DB, error) {
	d, err := a.openForReading()
	if err != nil {
		return nil, err
	}
	if err := a.meanSession(d); err != nil {
		return nil, err
	}
	a.tellPruned(d, a.filter())
	r := index.Range{Since: a.flags.since, Until: a.flags.until, Hot: a.flags.hot}
	for try := 0; ; try++ {
		x, err := index.Update(ctx, d, r)
		if err != nil {
			return nil, err
		}
		db, err := index.Open(ctx, x, index.Filter{Range: r, Session: a.flags.session})
		if errors.Is(err, os.ErrNotExist) && try < 3 {
			continue // verify or archive prune removed it just now
		}
		return db, errors.Join(err, x.Close()) // what was made for this process stays open
	}
}

func isTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && screenOf(f, func(string) string { return "" }).terminal
}

// sqlSession answers statements.
type sqlSession struct {
	*app
	db  *index.DB
	csv bool
}

// answer answers a text of statements, or one command of the shell.
func (s *sqlSession) answer(text string) error {
	if words := strings.Fields(text); len(words) > 0 && strings.HasPrefix(words[0], ".") {
		_, err := s.command(words)
		return err
	}
	return s.all(text)
}

// all answers each statement of a text.
func (s *sqlSession) all(text string) error {
	for at := 0; strings.TrimSpace(text[at:]) != ""; {
		rows, next, err := s.db.Query(text, at)
		if err != nil {
			return withRemedy(err)
		}
		if rows != nil {
			if err := errors.Join(s.print(rows), rows.Close()); err != nil {
				return err
			}
		}
		at = next
	}
	return nil
}

// withRemedy says where the names are listed to a statement that has one which is not there.
func withRemedy(err error) error {
	switch text := err.Error(); {
	case strings.Contains(text, "no such table"):
		return fmt.Errorf("%w: the table is tool_calls, and 'toolrun sql .views' lists the views", err)
	case strings.Contains(text, "no such column"):
		return fmt.Errorf("%w: 'toolrun sql .schema' lists the columns", err)
	}
	return err
}

// print prints an answer in the form that was asked for.
func (s *sqlSession) print(rows *index.Rows) error {
	switch {
	case s.flags.json:
		return s.printObjects(rows)
	case s.csv:
		lines := [][]string{rows.Columns}
		for values, ok := rows.Next(); ok; values, ok = rows.Next() {
			line := make([]string, len(values))
			for i, v := range values {
				line[i] = sqlText(v)
			}
			if lines = append(lines, line); len(lines) >= sqlPage {
				if err := s.printCSV(lines); err != nil {
					return err
				}
				lines = lines[:0]
			}
		}
		return s.printCSV(lines)
	}
	return s.printTable(rows)
}

// sqlPage is how many rows are held to be printed, and leastSQL how much of a text is always shown of a table.
const sqlPage, leastSQL = 1000, 16

// printTable prints rows aligned, so many at a time.
func (s *sqlSession) printTable(rows *index.Rows) error {
	t := &table{}
	for _, name := range rows.Columns {
		t.columns = append(t.columns, column{title: escape(name), gives: true, least: leastSQL})
	}
	n := 0
	for values, ok := rows.Next(); ok; values, ok = rows.Next() {
		cells := make([]cell, len(values))
		for i, v := range values {
			cells[i] = cell{text: sqlText(v)}
			switch v.(type) {
			case int64, float64:
				t.columns[i].right, t.columns[i].gives = true, false
			case nil:
				cells[i] = cell{"null", dim}
			}
		}
		t.add(cells...)
		if n++; n%sqlPage == 0 {
			if err := s.printPage(t, n > sqlPage); err != nil {
				return err
			}
			t.rows = t.rows[:0]
		}
	}
	if len(t.rows) == 0 && (n > 0 || rows.Err() != nil) {
		return nil
	}
	return s.printPage(t, n > sqlPage)
}

// printPage prints so many rows of an answer; on a terminal that is too narrow for them a row as a block of lines.
func (s *sqlSession) printPage(t *table, more bool) error {
	screen := s.screen()
	if widths, _ := t.fit(screen.columns); screen.columns > 0 && len(t.rows) > 0 && 2*(len(widths)-1)+sum(widths) > screen.columns {
		return s.printBlocks(t, screen)
	}
	if more {
		t = &table{columns: slices.Clone(t.columns), rows: t.rows}
		for i := range t.columns {
			t.columns[i].title = ""
		}
	}
	return t.print(s.stdout, screen)
}

func sum(list []int) (n int) {
	for _, v := range list {
		n += v
	}
	return n
}

// printBlocks prints each row as the names and values of its columns, a line each, and an empty line behind it.
func (s *sqlSession) printBlocks(t *table, screen screen) error {
	for _, row := range t.rows {
		block := &table{columns: make([]column, 2)}
		for i, c := range t.columns {
			block.rows = append(block.rows, []cell{{c.title, dim}, row[i]})
		}
		if err := errors.Join(block.printWrapped(s.stdout, screen), s.say("")); err != nil {
			return err
		}
	}
	return nil
}

// printObjects prints each row as an object whose keys are the columns in their order; where two have one name the second
// is told apart by its number.
func (s *sqlSession) printObjects(rows *index.Rows) error {
	keys := make([]string, len(rows.Columns))
	used := map[string]bool{}
	for i, name := range rows.Columns {
		if used[name] {
			name = fmt.Sprintf("%s:%d", name, i+1)
		}
		used[name] = true
		keys[i] = name
	}
	var line []byte
	for values, ok := rows.Next(); ok; values, ok = rows.Next() {
		line = append(line[:0], '{')
		for i, v := range values {
			if i > 0 {
				line = append(line, ',')
			}
			line = append(append(line, jsonOf(keys[i])...), ':')
			line = append(line, jsonOf(v)...)
		}
		if _, err := s.stdout.Write(escapeJSON(append(line, "}\n"...))); err != nil {
			return err
		}
	}
	return nil
}

// sqlText is a value in a table or in CSV, where null is empty.
func sqlText(v index.Value) string {
	switch v := v.(type) {
	case nil:
		return ""
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []byte:
		return "x'" + hex.EncodeToString(v) + "'"
	}
	return fmt.Sprint(v)
}

// jsonOf is a value as JSON: what SQLite computes that is no number of JSON as a string.
func jsonOf(v index.Value) []byte {
	if b, ok := v.([]byte); ok {
		v = sqlText(b)
	}
	text, err := json.Marshal(v)
	if err != nil { // infinite
		text, _ = json.Marshal(fmt.Sprint(v))
	}
	return text
}
