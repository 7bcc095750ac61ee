package index

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"

	"toolrun/archive"
	"toolrun/archive/ledger"
)

// Found are the rows of a session in ledger.jsonl as an index knows them: read from the ledger itself, at their places.
type Found struct {
	Rows    []*ledger.Row
	Damaged []error          // lines of ledger.jsonl that are no rows
	End     archive.Position // what is behind it is not known to the index
}

// ErrNoIndex means that there is no index that fits, and the ledger is to be read.
var ErrNoIndex = errors.New("no index that fits")

// waitPlaces is how long a question waits for whoever writes the index, before it reads the ledger.
const waitPlaces = 100 * time.Millisecond

// Session finds rows of a session in ledger.jsonl without reading all of it. The index is taken as it is, and not brought
// up to date.
func Session(ctx context.Context, d *archive.Dir, hot *ledger.Hot, session string) (*Found, error) {
	path := filepath.Join(d.Path(), FileName)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, ErrNoIndex
	}
	db, err := open(ctx, path, sqlite3.OPEN_READONLY)
	if err != nil {
		return nil, ErrNoIndex
	}
	defer db.Close()
	if err := db.BusyTimeout(waitPlaces); err != nil {
		return nil, ErrNoIndex
	}
	s, err := readState(db)
	if err != nil || s.fits(hot) != nil || s.cuts != len(hot.Cuts()) {
		return nil, ErrNoIndex
	}
	f := &Found{End: s.end}
	if f.Damaged, err = damagedLines(db, d.Path(), ledger.FileName); err != nil {
		return nil, ErrNoIndex
	}
	stmt, _, err := db.Prepare("SELECT offset FROM tool_calls JOIN offsets ON place = tool_calls.rowid WHERE session_id = ? ORDER BY place")
	if err != nil {
		return nil, ErrNoIndex
	}
	defer stmt.Close()
	if err := stmt.BindText(1, session); err != nil {
		return nil, err
	}
	for stmt.Step() {
		at, ok := hot.Place(stmt.ColumnInt64(0))
		if !ok {
			continue // in a sealed month, which has an index of its own
		}
		row, err := rowAt(hot, at)
		if err != nil || row.SessionID.String() != session {
			return nil, ErrNoIndex // somebody changed the ledger
		}
		f.Rows = append(f.Rows, row)
	}
	if err := stmt.Err(); err != nil {
		return nil, ErrNoIndex
	}
	return f, nil
}

// rowAt reads the row that begins at a byte of ledger.jsonl.
func rowAt(hot *ledger.Hot, at int64) (*ledger.Row, error) {
	for window := 8 << 10; ; window *= 8 {
		text := make([]byte, window)
		n, err := hot.ReadAt(text, at)
		if end := bytes.IndexByte(text[:n], '\n'); end >= 0 {
			return ledger.ParseRow(bytes.TrimSuffix(text[:end], []byte{'\r'}))
		}
		if err == io.EOF || n < window {
			return nil, io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
	}
}
