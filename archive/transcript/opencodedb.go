package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"

	"toolrun/archive/internal/jsonl"
)

// databaseHead is how every SQLite database begins.
const databaseHead = "SQLite format 3\x00"

// databaseBusy is how long it is waited for a writer.
const databaseBusy = 5 * time.Second

// readDatabase reads the sessions of OpenCode's opencode.db (1.18) that were written to in a window. Nothing is written to
// it; of the files beside it only -shm, which SQLite makes anew whenever it is opened.
func readDatabase(path string, w Window) (list []*Transcript, err error) {
	db, done, err := openDatabase(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer func() {
		if end := done(); err == nil && end != nil {
			err = fmt.Errorf("%s: %w", path, end)
		}
	}()
	sessions, err := databaseSessions(db)
	if err != nil {
		return nil, fmt.Errorf("%s: no database of OpenCode: %w", path, errors.Join(err, ErrFormat))
	}
	for _, s := range sessions {
		if !w.holds(s.created, s.updated) {
			continue
		}
		o := &openCodeReader{newBuilder(path, OpenCode)}
		o.t.SessionID, o.t.Sub = root(s.id, sessions), s.parent != ""
		if err := o.rows(db, path, s.id); err != nil {
			return nil, fmt.Errorf("%s: session %s: %w", path, s.id, err)
		}
		list = append(list, o.finish())
	}
	return list, nil
}

// openDatabase opens it to be read, and returns what closes it. What is not yet in the file stands in the -wal beside it.
func openDatabase(path string) (db *sqlite3.Conn, done func() error, err error) {
	options, remove := "?mode=ro", func() error { return nil }
	wal, walErr := os.Stat(path + "-wal")
	_, shmErr := os.Stat(path + "-shm")
	switch {
	case walErr != nil || wal.Size() == 0:
		options = "?immutable=1" // all is in the file, and no other file is made beside it
	case shmErr != nil: // a copy, or the machine went down: the -shm would be made where it lies
		dir, err := os.MkdirTemp("", "toolrun-opencode-")
		if err != nil {
			return nil, nil, err
		}
		remove = func() error { return os.RemoveAll(dir) }
		for _, suffix := range []string{"", "-wal"} {
			if err := copyFile(path+suffix, filepath.Join(dir, "copy.db"+suffix)); err != nil {
				return nil, nil, errors.Join(err, remove())
			}
		}
		path = filepath.Join(dir, "copy.db")
	}
	full, err := filepath.Abs(path)
	if err == nil {
		uri := (&url.URL{Path: full}).EscapedPath()
		db, err = sqlite3.OpenFlags("file:"+uri+options, sqlite3.OPEN_READONLY|sqlite3.OPEN_URI)
	}
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	done = func() error { return errors.Join(db.Close(), remove()) }
	if err := errors.Join(db.BusyTimeout(databaseBusy), db.Exec("PRAGMA trusted_schema=OFF")); err != nil {
		return nil, nil, errors.Join(err, done())
	}
	return db, done, nil
}

// copyFile copies a file of no more than maxFileBytes.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, maxFileBytes+1))
	if n > maxFileBytes {
		err = fmt.Errorf("more than %d bytes", maxFileBytes)
	}
	return errors.Join(err, out.Close())
}

// databaseSession is a row of the table session.
type databaseSession struct {
	id, parent       string // parent: of the session that it is a part of, "" where it is none
	created, updated int64  // milliseconds
}

func databaseSessions(db *sqlite3.Conn) (list []databaseSession, err error) {
	err = eachRow(db, "SELECT id, coalesce(parent_id, ''), time_created, time_updated FROM session ORDER BY time_created, id", func(s *sqlite3.Stmt) {
		list = append(list, databaseSession{s.ColumnText(0), s.ColumnText(1), s.ColumnInt64(2), s.ColumnInt64(3)})
	})
	return list, err
}

// root is the session that a session is a part of, itself where it is none.
func root(id string, sessions []databaseSession) string {
	parents := map[string]string{}
	for _, s := range sessions {
		parents[s.id] = s.parent
	}
	return rootOf(id, func(id string) string { return parents[id] })
}

// rootOf follows parents to their end.
func rootOf(id string, parent func(id string) string) string {
	for range maxDepth {
		above := parent(id)
		if above == "" {
			break
		}
		id = above
	}
	return id
}

// maxDepth is how many parents of a session are followed.
const maxDepth = 16

// rows reads the messages of a session, each with its parts.
func (o *openCodeReader) rows(db *sqlite3.Conn, path, session string) error {
	type whole struct {
		id    string
		info  openCodeMessage
		parts []openCodePart
	}
	var last *whole
	end := func() {
		if last != nil {
			o.message(&last.info, last.parts)
		}
	}
	damaged := func(what, id string, err error) {
		o.t.Damaged = append(o.t.Damaged, &jsonl.Damage{File: path, Err: fmt.Errorf("%s %s: %w", what, id, err)})
	}
	err := eachRow(db, "SELECT m.id, m.data, coalesce(p.id, ''), coalesce(p.data, '') FROM message m LEFT JOIN part p ON p.message_id = m.id "+
		"WHERE m.session_id = ?1 ORDER BY m.time_created, m.id, p.id", func(s *sqlite3.Stmt) {
		if id := s.ColumnText(0); last == nil || last.id != id {
			end()
			last = &whole{id: id}
			if err := json.Unmarshal([]byte(s.ColumnText(1)), &last.info); err != nil {
				damaged("message", id, err)
			}
		}
		if id := s.ColumnText(2); id != "" {
			var p openCodePart
			if err := json.Unmarshal([]byte(s.ColumnText(3)), &p); err != nil {
				damaged("part", id, err)
				return
			}
			last.parts = append(last.parts, p)
		}
	}, session)
	end()
	return err
}

// eachRow runs a statement and hands over each of its rows.
func eachRow(db *sqlite3.Conn, query string, row func(*sqlite3.Stmt), args ...string) (err error) {
	s, _, err := db.Prepare(query)
	if err != nil {
		return err
	}
	for i, arg := range args {
		if err := s.BindText(i+1, arg); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	for s.Step() {
		row(s)
	}
	return errors.Join(s.Err(), s.Close())
}
