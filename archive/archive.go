// Package archive is the data directory: what is remembered, and how it stays true over crashes, full disks and several
// processes.
//
// Open gives the ledger, the store and the configuration of one directory; Begin and End frame a run; Recover closes what
// dead runs left open; Commit is the point from which a call is on the record. FORMAT.md has every file and every key,
// and the order of writes as invariants.
package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"toolrun/archive/ledger"
	"toolrun/archive/store"
)

// Names in the data directory besides those of package ledger.
const (
	runsName   = ledger.RunsName
	liveName   = "live"
	storeName  = "store"
	configName = "config.toml"
)

var (
	// ErrUnusable means that the data directory cannot be used at all: exit status 5.
	ErrUnusable = ledger.ErrUnusable
	// ErrUnavailable means that the record cannot be written now: the tool does not run; later it may work again.
	ErrUnavailable = ledger.ErrUnavailable
)

// Options of [Open].
type Options struct {
	// ReadOnly opens what is there to be read: nothing is made, repaired or locked. Ledger is nil then, and Begin, Recover
	// and Commit fail.
	ReadOnly bool
	Hot      bool             // of the ledger, traces and objects only what is not sealed
	Logger   *slog.Logger     // nil: discard
	Now      func() time.Time // nil: time.Now
}

// Dir is an open data directory.
type Dir struct {
	Ledger *ledger.Ledger // nil where it was opened read-only
	Store  *store.Store
	Config Config

	path string
	log  *slog.Logger
	now  func() time.Time
	sync *syncer  // nil where it was opened read-only
	own  sync.Map // run ids begun here: *trace.Run

	months  *months
	hotOnly bool

	checkpoints *checkpointer // nil where it was opened read-only
}

// Open opens the data directory at path; unless read-only it makes what is missing (folders 0700, files 0600), repairs
// the end of the ledger, and starts the goroutine that syncs, which Close ends. Errors are ErrUnusable.
func Open(path string, o Options) (*Dir, error) {
	d, err := open(path, o)
	return d, unusable(err)
}

// unusable makes an error ErrUnusable.
func unusable(err error) error {
	if err == nil || errors.Is(err, ErrUnusable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnusable, err)
}

func open(path string, o Options) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	d := &Dir{path: path, log: o.Logger, now: o.Now, months: newMonths(path), hotOnly: o.Hot}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.now == nil {
		d.now = time.Now
	}
	if o.ReadOnly {
		if info, err := os.Stat(path); err != nil {
			return nil, err
		} else if !info.IsDir() {
			return nil, &os.PathError{Op: "open", Path: path, Err: errors.New("not a folder")}
		}
	} else if err := makeDirs(path); err != nil {
		return nil, err
	}
	if d.Config, err = loadConfig(filepath.Join(path, configName)); err != nil {
		return nil, err
	}
	if o.ReadOnly {
		d.Store = store.Open(filepath.Join(path, storeName), func(string) {})
		d.elsewhere()
		return d, nil
	}
	if d.Ledger, err = ledger.Open(path, ledger.Options{Logger: d.log, Now: d.now, Sealed: d.sealedIDs}); err != nil {
		return nil, err
	}
	d.sync = newSyncer(d)
	d.checkpoints = &checkpointer{d: d}
	d.Store = store.Open(filepath.Join(path, storeName), d.sync.path)
	d.elsewhere()
	if n, err := d.Store.Sweep(); n > 0 || err != nil {
		d.log.Info("swept temporary files of writers that died", "files", n, "err", err)
	}
	return d, nil
}

// elsewhere lets objects be found that were sealed.
func (d *Dir) elsewhere() {
	if !d.hotOnly {
		d.Store.Elsewhere(d.months.object)
	}
}

// Path returns the absolute name of the directory.
func (d *Dir) Path() string { return d.path }

// Close syncs what is not yet and closes the ledger. Runs must have ended.
func (d *Dir) Close() error {
	d.months.close()
	if d.Ledger == nil {
		return nil
	}
	d.checkpoints.close()
	return errors.Join(d.sync.close(), d.Ledger.Close())
}

// makeDirs makes the directory and its folders. A directory that others may enter is ours to tighten only where it is
// empty or a data directory already.
func makeDirs(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		err = tighten(path)
	}
	if err != nil {
		return err
	}
	for _, name := range []string{runsName, liveName, storeName} {
		if err := os.Mkdir(filepath.Join(path, name), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func tighten(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &os.PathError{Op: "open", Path: path, Err: errors.New("not a folder")}
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	ours := len(entries) == 0
	for _, e := range entries {
		switch e.Name() {
		case ledger.FileName, ledger.LockName, configName:
			ours = true
		}
	}
	if !ours {
		return fmt.Errorf("%q holds other files and may be entered by other users: choose an empty folder, or chmod 700 it", path)
	}
	return os.Chmod(path, 0o700)
}

// DefaultDir is the data directory where --data names none: $TOOLRUN_DATA, else $XDG_STATE_HOME/toolrun, else
// ~/.local/state/toolrun.
func DefaultDir(getenv func(string) string) (string, error) {
	if dir := getenv("TOOLRUN_DATA"); dir != "" {
		return dir, nil
	}
	// The XDG base directory specification: a path that is not absolute is to be ignored.
	if state := getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "toolrun"), nil
	}
	home := getenv("HOME")
	if !filepath.IsAbs(home) {
		return "", fmt.Errorf("%w: neither --data, TOOLRUN_DATA, XDG_STATE_HOME nor HOME names one", ErrUnusable)
	}
	return filepath.Join(home, ".local", "state", "toolrun"), nil
}
