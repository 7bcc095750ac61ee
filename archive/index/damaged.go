package index

import (
	"errors"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"
)

// damagedLines are the lines that were passed over when rows were loaded, in the order of the ledger; only those of one
// file, or of all where it is "". Names of files are kept as of the data directory.
func damagedLines(db *sqlite3.Conn, dir, file string) (list []error, err error) {
	stmt, _, err := db.Prepare("SELECT file, line, error FROM damaged WHERE ?1 IN ('', file) ORDER BY place")
	if err != nil {
		return nil, err
	}
	defer stmt.Close()
	if err := stmt.BindText(1, file); err != nil {
		return nil, err
	}
	for stmt.Step() {
		list = append(list, &Damage{File: filepath.Join(dir, stmt.ColumnText(0)), Line: stmt.ColumnInt(1), Err: errors.New(stmt.ColumnText(2))})
	}
	return list, stmt.Err()
}
