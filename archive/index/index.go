// Package index is index.db: the rows of the ledger as a table of SQLite, for questions in SQL, and where the rows of a
// session are.
//
// It is derived and never the record: it may be deleted at any time, and is made anew where it is missing, damaged, of another
// version, or not of this ledger. What is new in the ledger is loaded by one transaction, and a whole load goes into a file
// beside that takes the name when it is whole: killed anywhere, the next one finds the index as it was or none. Several processes may
// use it.
//
// It does not look at lines that it has loaded again: that nobody changed them is what a verifier checks.
package index

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
	"golang.org/x/sys/unix"

	"toolrun/archive"
	"toolrun/archive/evidence"
	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
)

// Files in the data directory.
const (
	FileName = "index.db"
	LockName = "index.lock" // the flock on it is held while the index is brought up to date
)

// errUnfit means that an index is not of this ledger as it is now, or not of this version.
var errUnfit = errors.New("index does not fit")

// waitBusy is how long one process waits for another's transaction.
const waitBusy = time.Minute

// Damage is a line that was passed over.
type Damage = ledger.Damage

// Range says what a question is about: sealed months of which no row started in it are not loaded for its sake. Zero: no
// bound.
type Range struct {
	Since, Until time.Time
	Hot          bool // nothing of sealed months
}

// Index is the index, up to date.
type Index struct {
	Path   string
	dir    string // the data directory
	sealed []ledger.Range
	unread []error // what could not be loaded and is tried again the next time, each a *Damage
	remove string  // a folder made for this index only
}

// Close removes an index that was made for one process.
func (x *Index) Close() error {
	if x.remove == "" {
		return nil
	}
	return os.RemoveAll(x.remove)
}

// Update brings the index up to date, as far as a range reaches. Where the data directory cannot be written it is made in a
// folder of its own, until Close.
func Update(ctx context.Context, d *archive.Dir, r Range) (*Index, error) {
	x := &Index{Path: filepath.Join(d.Path(), FileName), dir: d.Path()}
	if unix.Access(d.Path(), unix.W_OK) != nil {
		dir, err := os.MkdirTemp("", "toolrun-index-")
		if err != nil {
			return nil, err
		}
		x.remove, x.Path = dir, filepath.Join(dir, FileName)
	}
	if err := x.update(ctx, d, r); err != nil {
		return nil, errors.Join(fmt.Errorf("bring %s up to date: %w", x.Path, err), x.Close())
	}
	return x, nil
}

func (x *Index) update(ctx context.Context, d *archive.Dir, r Range) error {
	lock, err := jsonl.OpenAppend(filepath.Join(filepath.Dir(x.Path), LockName), 0)
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := jsonl.Lock(lock, unix.LOCK_EX); err != nil {
		return err
	}
	hot, err := ledger.OpenHot(d.Path())
	if err != nil {
		return err
	}
	defer hot.Close()
	l := &load{ctx: ctx, d: d, hot: hot, Range: r}
	if _, err = os.Stat(x.Path); err == nil {
		err = l.extend(x.Path)
	}
	if errors.Is(err, os.ErrNotExist) || unfit(err) {
		l.unread = nil
		err = l.anew(x.Path)
	}
	x.unread = l.unread
	for _, c := range hot.Cuts() {
		x.sealed = append(x.sealed, c.Ranges...)
	}
	return err
}

// Forget removes the index of a data directory, and with it what it has of pruned months, and what somebody changed in it.
func Forget(dir string) error {
	path := filepath.Join(dir, FileName)
	files := []string{path, path + "-journal", path + "-wal", path + "-shm", path + ".new", path + ".new-journal"}
	if !slices.ContainsFunc(files, func(file string) bool { _, err := os.Lstat(file); return err == nil }) {
		return nil
	}
	// One in the making is not taken from whoever makes it.
	lock, err := jsonl.OpenAppend(filepath.Join(dir, LockName), 0)
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := jsonl.Lock(lock, unix.LOCK_EX); err != nil {
		return err
	}
	return removeAll(files...)
}

// unfit tells whether an index is to be made anew.
func unfit(err error) bool {
	for _, is := range []error{errUnfit, sqlite3.CORRUPT, sqlite3.NOTADB, sqlite3.SCHEMA, sqlite3.CANTOPEN} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// open opens a database file and makes it wait for others.
func open(ctx context.Context, path string, flags sqlite3.OpenFlag) (*sqlite3.Conn, error) {
	c, err := sqlite3.OpenFlags("file:"+uriPath(path), flags|sqlite3.OPEN_URI)
	if err != nil {
		return nil, err
	}
	c.SetInterrupt(ctx)
	return c, c.BusyTimeout(waitBusy)
}

// extend loads what the index does not have yet.
func (l *load) extend(path string) (err error) {
	l.db, err = open(l.ctx, path, sqlite3.OPEN_READWRITE)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.db.Close()) }()
	if err := exec(l.db, "PRAGMA journal_mode=TRUNCATE", "PRAGMA synchronous=NORMAL"); err != nil {
		return err
	}
	s, err := readState(l.db)
	if err == nil {
		err = s.fits(l.hot)
	}
	if err != nil {
		return err
	}
	joins := joinsMark(l.d.Path())
	months, err := l.missing(&s)
	if err != nil {
		return err
	}
	if s.end.Offset == l.hot.Bytes() && s.joins == joins && len(months) == 0 && s.cuts == len(l.hot.Cuts()) {
		return nil
	}
	if err := exec(l.db, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err = l.all(&s, months, joins); err == nil {
		return exec(l.db, "COMMIT")
	}
	return errors.Join(err, exec(l.db, "ROLLBACK"))
}

// all loads what is new, and months.
func (l *load) all(s *state, months []*ledger.Cut, joins string) error {
	from := s.end.Place
	if err := l.sealed(s, months); err != nil {
		return err
	}
	if len(months) > 0 {
		from = 0
	}
	if err := l.rows(s); err != nil {
		return err
	}
	if err := l.join(s, joins, from); err != nil {
		return err
	}
	return s.write(l.db)
}

// anew makes the index from the ledger alone.
func (l *load) anew(path string) error {
	temp := path + ".new"
	if err := removeAll(temp, temp+"-journal"); err != nil {
		return err
	}
	if err := l.fill(temp); err != nil {
		return errors.Join(err, removeAll(temp, temp+"-journal"))
	}
	// The old journal goes after the old index, of which it may hold a part, and before the new one, which it would spoil.
	// Killed here: no index.
	if err := removeAll(path, path+"-journal", path+"-wal", path+"-shm"); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

func (l *load) fill(path string) (err error) {
	if l.db, err = open(l.ctx, path, sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.db.Close()) }()
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	// Nobody else knows the file, and it is thrown away where it does not become whole.
	if err := exec(l.db, "PRAGMA page_size=16384", "PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF", "PRAGMA cache_size=-49152", "PRAGMA locking_mode=EXCLUSIVE"); err != nil {
		return err
	}
	if err := exec(l.db, append(tables(), "BEGIN")...); err != nil {
		return err
	}
	s := state{version: version(), months: map[string]bool{}}
	months, err := l.missing(&s)
	if err != nil {
		return err
	}
	if err := l.sealed(&s, months); err != nil {
		return err
	}
	if err := l.rows(&s); err != nil {
		return err
	}
	if err := exec(l.db, indexes...); err != nil { // made at once they cost a fraction of what they do row by row
		return err
	}
	if err := l.join(&s, joinsMark(l.d.Path()), 0); err != nil {
		return err
	}
	if err := s.write(l.db); err != nil {
		return err
	}
	return exec(l.db, "COMMIT")
}

func removeAll(paths ...string) error {
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func exec(c *sqlite3.Conn, statements ...string) error {
	for _, s := range statements {
		if err := c.Exec(s); err != nil {
			return fmt.Errorf("%.40s: %w", s, err)
		}
	}
	return nil
}

// state is how far an index has come, as it stands in its table of that name.
type state struct {
	version string           // of the tables and of what is in them
	end     archive.Position // what is before it is loaded
	last    string           // SHA-256 of the line before it
	cuts    int              // that were made in the ledger then
	months  map[string]bool  // parts of sealed months that are loaded
	joins   string           // which joins.jsonl was loaded
}

func readState(db *sqlite3.Conn) (s state, err error) {
	stmt, _, err := db.Prepare("SELECT key, value FROM state")
	if err != nil {
		return s, fmt.Errorf("%w: %w", errUnfit, err) // no such table
	}
	defer stmt.Close()
	s.months = map[string]bool{}
	for stmt.Step() {
		value := stmt.ColumnText(1)
		n, _ := strconv.ParseInt(value, 10, 64)
		switch stmt.ColumnText(0) {
		case "version":
			s.version = value
		case "place":
			s.end.Place = n
		case "offset":
			s.end.Offset = n
		case "last":
			s.last = value
		case "cuts":
			s.cuts = int(n)
		case "joins":
			s.joins = value
		case "months":
			for _, part := range strings.Fields(value) {
				s.months[part] = true
			}
		}
	}
	return s, stmt.Err()
}

func (s *state) write(db *sqlite3.Conn) error {
	stmt, _, err := db.Prepare("INSERT OR REPLACE INTO state VALUES (?, ?)")
	if err != nil {
		return err
	}
	defer stmt.Close()
	for key, value := range map[string]string{
		"version": s.version, "place": strconv.FormatInt(s.end.Place, 10), "offset": strconv.FormatInt(s.end.Offset, 10),
		"last": s.last, "cuts": strconv.Itoa(s.cuts), "joins": s.joins, "months": strings.Join(slices.Sorted(maps.Keys(s.months)), " "),
	} {
		if err := errors.Join(stmt.BindText(1, key), stmt.BindText(2, value), stmt.Exec()); err != nil {
			return err
		}
	}
	return nil
}

// fits is nil where an index in this state is one of the ledger as it is now, as far as it goes.
func (s *state) fits(hot *ledger.Hot) error {
	if s.version != version() || s.cuts > len(hot.Cuts()) || s.end.Offset > hot.Bytes() {
		return errUnfit
	}
	if last, err := lastLine(hot, s.end); err != nil || last != s.last {
		return errUnfit
	}
	return nil
}

// lastLine is the SHA-256 of the line before a position, "" at the beginning and behind a sealed line.
func lastLine(hot *ledger.Hot, end archive.Position) (string, error) {
	if end.Offset == 0 {
		return "", nil
	}
	at, ok := hot.Place(end.Offset - 1)
	if !ok {
		return "", nil
	}
	line, err := evidence.LineBefore(hot, at+1)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:]), nil
}
