package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"toolrun/archive"
	"toolrun/archive/ledger"
	"toolrun/archive/query"
)

func isDataError(err error) bool { return errors.Is(err, archive.ErrUnusable) }

// dataDir is the data directory that is named, or the default one.
func (a *app) dataDir() (string, error) {
	if a.flags.data != "" {
		return a.flags.data, nil
	}
	return archive.DefaultDir(a.getenv)
}

// openForReading opens the data directory to be asked, after what dead runs left open is closed, where this process may
// write there. Where nothing was ever recorded there is nothing to ask.
func (a *app) openForReading() (*archive.Dir, error) {
	path, err := a.dataDir()
	if err != nil {
		return nil, err
	}
	d, err := archive.Open(path, archive.Options{ReadOnly: true, Hot: a.flags.hot, Logger: a.logger(), Now: a.now})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &noRecord{path}
	}
	if err == nil && d.HasDead() && unix.Access(path, unix.W_OK) == nil {
		a.closeDead()
	}
	return d, err
}

// noRecord is archive.ErrUnusable of a directory that is not there, as before the first use.
type noRecord struct{ path string }

func (e *noRecord) Error() string {
	return fmt.Sprintf("there is no record at %s yet: the first 'toolrun serve' or 'toolrun call' makes it; --data names another", e.path)
}
func (e *noRecord) Is(target error) bool { return target == archive.ErrUnusable }

// closeDead closes the calls that dead runs left open. Where that fails the question is answered all the same.
func (a *app) closeDead() {
	d, err := a.openForWriting()
	if err == nil {
		_, err = d.Recover(fmt.Sprintf("pid %d", os.Getpid()))
		err = errors.Join(err, d.Close())
	}
	if err != nil {
		a.logger().Warn("calls that dead runs left open cannot be closed", "err", err)
	}
}

// openForWriting opens the data directory to record in it, and makes it where there is none.
func (a *app) openForWriting() (*archive.Dir, error) {
	path, err := a.dataDir()
	if err != nil {
		return nil, err
	}
	return archive.Open(path, archive.Options{Logger: a.logger(), Now: a.now})
}

// filter is what --session, --since and --until select.
func (a *app) filter() query.Filter {
	return query.Filter{Session: a.flags.session, Since: a.flags.since, Until: a.flags.until}
}

// pruned tells in words of which months rows were pruned that a filter reaches, and how many; "" where of none.
func pruned(d *archive.Dir, f query.Filter) string {
	var months []string
	var rows int64
	for month, n := range d.PrunedIn(archive.Scope{Since: f.Since, Until: f.Until, Session: f.Session}) {
		months, rows = append(months, month), rows+n
	}
	switch {
	case rows == 0:
		return ""
	case f.Session != "":
		return fmt.Sprintf("rows of the session were pruned with those of %s (%d)", list(months), rows)
	}
	return fmt.Sprintf("the rows of %s were pruned (%d)", list(months), rows)
}

// tellPruned says on stderr that an answer lacks what was pruned. --hot does not ask for it.
func (a *app) tellPruned(d *archive.Dir, f query.Filter) {
	if what := pruned(d, f); what != "" && !a.flags.hot {
		a.warn("%s, and are not in this answer", what)
	}
}

// damageSeen names damaged lines FILE:LINE on stderr and remembers that there were some.
type damageSeen struct {
	a     *app
	quiet bool // they were named before
	n     int
}

// note takes the error of one line: nil for a damaged one, which was named; any other ends the reading.
func (s *damageSeen) note(err error) error {
	var bad *ledger.Damage
	if !errors.As(err, &bad) {
		return err
	}
	s.n++
	if !s.quiet {
		say(s.a.stderr, "%s", bad.Error())
	}
	return nil
}

// result is errFound where a damaged line was passed over.
func (s *damageSeen) result() error {
	if s.n == 0 {
		return nil
	}
	return told(fmt.Errorf("%s passed over: %w", count(s.n, "damaged line"), errFound))
}
