package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"toolrun/archive"
	"toolrun/archive/ledger"
	"toolrun/archive/month"
	"toolrun/archive/query"
)

// mostNamed is how many calls or sessions are listed where the beginning of an id fits several.
const mostNamed = 10

// find returns the rows that a person means by id: the row with this tool_call_id; else the rows of this client call id,
// as the attempts of one call have; else the one row whose tool_call_id begins so. Damage is errFound where damaged lines
// were passed over on the way.
func (a *app) find(d *archive.Dir, id string) (rows []*ledger.Row, damage, err error) {
	seen := damageSeen{a: a}
	exact, same, begin, err := query.FindLike(d, a.filter(), id, mostNamed+1, func(err error) { seen.note(err) })
	if err != nil {
		return nil, nil, err
	}
	switch {
	case len(exact) > 0: // of two, which verify reports, the last
		return exact[len(exact)-1:], seen.result(), nil
	case len(same) > 0:
		return same, seen.result(), nil
	case len(begin) == 1:
		return begin, seen.result(), nil
	case len(begin) > 1:
		var names []string
		for _, row := range begin {
			names = append(names, fmt.Sprintf("%s  %s, %s", row.ToolCallID, row.ToolName, row.StartedAt))
		}
		return nil, nil, errors.Join(several("calls", id, names), seen.result())
	}
	err = fmt.Errorf("no call %q in %s", id, d.Path())
	if p := d.UnreadWith(id); p != nil {
		err = fmt.Errorf("%w: it %s", err, whyUnread(p))
	}
	return nil, nil, errors.Join(err, seen.result())
}

// whyUnread says of a call that a part has why no row of it is read.
func whyUnread(p *month.Part) string {
	if p.Pruned {
		return "was pruned with the rows of " + p.Ref.Month
	}
	return "is sealed with the rows of " + p.Ref.Month + ", which --hot leaves out"
}

// several is the error of a name that begins several ids: it lists them.
func several(what, begin string, ids []string) error {
	text := fmt.Sprintf("several %s begin with %q, name one in full:", what, begin)
	for i, id := range ids {
		if i == mostNamed {
			id = "..."
		}
		text += "\n  " + strings.ReplaceAll(id, "\n", `\n`)
		if i == mostNamed {
			break
		}
	}
	return errors.New(text)
}

// sessionFilter is the filter of a command that takes a session as its argument too.
func (a *app) sessionFilter(cmd *cobra.Command, args []string) (query.Filter, error) {
	filter := a.filter()
	if len(args) == 1 {
		if args[0] == "" {
			return filter, usagef(cmd, "the name of the session is empty")
		}
		if filter.Session != "" && filter.Session != args[0] {
			return filter, usagef(cmd, "two sessions are named: %q and --session %q", args[0], filter.Session)
		}
		filter.Session = args[0]
	}
	return filter, nil
}

// ofSession asks about the session that a person means: the one of f, or where nobody has called so, the one whose id begins
// so, which f is then of. ask tells how many calls there were; none of a session that has others is an answer too. What the
// answer lacks as it was pruned is told.
func (a *app) ofSession(d *archive.Dir, f *query.Filter, seen *damageSeen, ask func() (calls int, err error)) error {
	calls, err := ask()
	if err != nil || calls > 0 || f.Session == "" {
		a.tellPruned(d, *f)
		return err
	}
	id, err := sessionLike(d, f.Session)
	switch {
	case err != nil:
		return errors.Join(err, seen.result())
	case id == f.Session: // not in this range
		a.tellPruned(d, *f)
		return nil
	}
	f.Session, seen.quiet = id, true
	_, err = ask()
	a.tellPruned(d, *f)
	return err
}

// sessionLike is the session with this id, else the one whose id begins so.
func sessionLike(d *archive.Dir, id string) (string, error) {
	ids, err := query.SessionsLike(d, id)
	switch {
	case err != nil:
		return "", err
	case len(ids) == 0:
		err := fmt.Errorf("no calls of session %q in %s", id, d.Path())
		if what := pruned(d, query.Filter{Session: id}); what != "" {
			err = fmt.Errorf("%w: %s", err, what)
		}
		return "", err
	case len(ids) > 1:
		return "", several("sessions", id, ids)
	}
	return ids[0], nil
}

// meanSession makes --session the id of the session that a person means by it: a wrong name must not look like a session of
// which there is nothing to tell.
func (a *app) meanSession(d *archive.Dir) error {
	if a.flags.session == "" {
		return nil
	}
	id, err := sessionLike(d, a.flags.session)
	if err == nil {
		a.flags.session = id
	}
	return err
}
