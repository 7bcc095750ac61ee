package index

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"

	"toolrun/archive/ledger"
)

// Filter restricts what a question sees of tool_calls and of the views. Zero fields do not.
type Filter struct {
	Range
	Session string
}

// DB answers statements that read. It is for one goroutine.
type DB struct {
	conn    *sqlite3.Conn
	Damaged []error // what of the ledger is in no row, each a *Damage
}

// maxValue bounds what a statement may compute as one value. A line of the ledger is shorter than that.
const maxValue = 64 << 20

// ErrRefused means that a statement is none that only reads.
var ErrRefused = errors.New("only statements that read are allowed: SELECT, WITH, VALUES, EXPLAIN and PRAGMA table_info")

// Open opens an index to be asked. What the filter leaves out is not there. os.ErrNotExist: it was removed since it was updated.
func Open(ctx context.Context, x *Index, f Filter) (*DB, error) {
	conn, err := open(ctx, x.Path, sqlite3.OPEN_READONLY)
	if err != nil {
		if _, gone := os.Stat(x.Path); errors.Is(gone, os.ErrNotExist) {
			err = gone
		}
		return nil, err
	}
	db := &DB{conn: conn}
	conn.Limit(sqlite3.LIMIT_LENGTH, maxValue)
	// What a sort of a large ledger needs goes into unnamed files: the library has 256 MiB of memory.
	statements := []string{"PRAGMA cache_size=-32768", "PRAGMA temp_store=FILE", "PRAGMA trusted_schema=OFF"}
	if where := f.where(x.sealed); where != "" {
		// Unqualified names are looked up among the temporary ones first.
		statements = append(statements, "CREATE TEMP VIEW tool_calls AS SELECT * FROM main.tool_calls WHERE "+where)
		statements = append(statements, views("CREATE TEMP VIEW ")...)
	}
	if err := exec(conn, statements...); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if db.Damaged, err = damagedLines(conn, x.dir, ""); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	db.Damaged = append(db.Damaged, x.unread...)
	if err := conn.SetAuthorizer(authorize); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return db, nil
}

// Close closes it.
func (db *DB) Close() error { return db.conn.Close() }

// where is the condition on tool_calls; a row's rowid is its line.
func (f Filter) where(sealed []ledger.Range) string {
	var list []string
	if f.Hot {
		for _, r := range sealed {
			list = append(list, fmt.Sprintf("rowid NOT BETWEEN %d AND %d", r.Line, r.Line+r.Lines-1))
		}
	}
	if f.Session != "" {
		list = append(list, "session_id = '"+strings.ReplaceAll(f.Session, "'", "''")+"'")
	}
	// Times of one form and zone sort as text.
	for _, end := range []struct {
		at time.Time
		is string
	}{{f.Since, ">="}, {f.Until, "<"}} {
		if !end.at.IsZero() {
			list = append(list, "started_at "+end.is+" '"+ledger.FormatTime(end.at.Add(time.Millisecond-1))+"'")
		}
	}
	return strings.Join(list, " AND ")
}

// authorize lets a statement read, and nothing else. The connection is read-only besides: what is refused here is what SQLite
// does not count as a write, and what would have another meaning than the person thinks.
func authorize(action sqlite3.AuthorizerActionCode, name, _, _, _ string) sqlite3.AuthorizerReturnCode {
	switch action {
	case sqlite3.AUTH_SELECT, sqlite3.AUTH_READ, sqlite3.AUTH_RECURSIVE, sqlite3.AUTH_FUNCTION:
		return sqlite3.AUTH_OK
	case sqlite3.AUTH_PRAGMA:
		if slices.Contains(describing, strings.ToLower(name)) {
			return sqlite3.AUTH_OK
		}
	}
	return sqlite3.AUTH_DENY
}

// describing are the pragmas that tell what there is to ask, and change nothing.
var describing = []string{"table_info", "table_xinfo", "table_list", "index_list", "index_info", "function_list"}

// Rows is the answer to one statement.
type Rows struct {
	stmt    *sqlite3.Stmt
	err     error // beside that of stmt
	Columns []string
}

// Value is one value: nil, an int64, a float64, a string, or a []byte.
type Value any

// Query prepares the statement of a text that begins at a byte of it, and returns where the next one may begin. rows is nil
// where there is none.
func (db *DB) Query(text string, from int) (rows *Rows, next int, err error) {
	defer memory(&err)
	stmt, rest, err := db.conn.Prepare(text[from:])
	next = len(text) - len(rest)
	switch {
	case err != nil:
		return nil, next, placed(text, err)
	case stmt == nil:
		return nil, next, nil
	case !stmt.ReadOnly():
		return nil, next, errors.Join(ErrRefused, stmt.Close())
	}
	rows = &Rows{stmt: stmt}
	for i := range stmt.ColumnCount() {
		rows.Columns = append(rows.Columns, stmt.ColumnName(i))
	}
	return rows, next, nil
}

// Next reads one row; false is the end, and Close tells whether it was an error.
func (r *Rows) Next() (list []Value, ok bool) {
	defer memory(&r.err)
	if !r.stmt.Step() {
		return nil, false
	}
	list = make([]Value, len(r.Columns))
	for i := range list {
		switch r.stmt.ColumnType(i) {
		case sqlite3.INTEGER:
			list[i] = r.stmt.ColumnInt64(i)
		case sqlite3.FLOAT:
			list[i] = r.stmt.ColumnFloat(i)
		case sqlite3.TEXT:
			list[i] = r.stmt.ColumnText(i)
		case sqlite3.BLOB:
			list[i] = r.stmt.ColumnBlob(i, nil)
		}
	}
	return list, true
}

// Err is why Next came to an end too early.
func (r *Rows) Err() error { return errors.Join(r.err, plain(r.stmt.Err())) }

// Close ends the answer.
func (r *Rows) Close() (err error) {
	if r.err != nil { // which the library tells again, by a panic
		err = r.err
		defer memory(&err)
		r.stmt.Close()
		return err
	}
	err = r.stmt.Err()
	return errors.Join(plain(err), ignoreSame(err, r.stmt.Close()))
}

// memory turns the panic of the library that has no memory left for a statement into an error.
func memory(err *error) {
	switch p := recover(); p := p.(type) {
	case nil:
	case error:
		if !strings.HasSuffix(p.Error(), "out of memory") {
			panic(p)
		}
		*err = errors.New("sql: the statement needs too much memory")
	default:
		panic(p)
	}
}

// ignoreSame drops the second telling of an error.
func ignoreSame(first, second error) error {
	if first != nil {
		return nil
	}
	return plain(second)
}

// placed is plain of an error in a text, with the place where the library says it is.
func placed(text string, err error) error {
	var e *sqlite3.Error
	if !errors.As(err, &e) || e.SQL() == "" || !strings.HasSuffix(text, e.SQL()) || errors.Is(err, sqlite3.AUTH) {
		return plain(err)
	}
	before := text[:len(text)-len(e.SQL())]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Errorf("sql: line %d, column %d: %s", line, column, message(e))
}

// plain takes the name of the library out of an error.
func plain(err error) error {
	if err == nil {
		return nil
	}
	switch {
	case errors.Is(err, sqlite3.AUTH):
		return ErrRefused
	case errors.Is(err, sqlite3.INTERRUPT):
		return context.Canceled
	}
	return fmt.Errorf("sql: %s", message(err))
}

func message(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "sqlite3: "), "SQL logic error: ")
}
