package main

import (
	"errors"
	"fmt"
	"strings"

	"toolrun/archive"
	"toolrun/archive/ledger"
	"toolrun/archive/query"
)

// mostNamed is how many calls are listed where the beginning of an id fits several.
const mostNamed = 5

// find returns the rows that a person means by id: the row with this tool_call_id; else the rows of this client call id,
// as the attempts of one call have; else the one row whose tool_call_id begins so. Damage is errFound where damaged lines
// were passed over on the way.
func (a *app) find(d *archive.Dir, id string) (rows []*ledger.Row, damage, err error) {
	seen := damageSeen{a: a}
	exact, same, begin, err := query.FindLike(d, id, mostNamed+1, func(err error) { seen.note(err) })
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
		return nil, nil, errors.Join(fmt.Errorf("several calls begin with %q, name one in full: %s", id, names(begin)), seen.result())
	}
	return nil, nil, errors.Join(fmt.Errorf("no call %q in %s", id, d.Path()), seen.result())
}

// names lists what tells calls apart, and that there are more.
func names(rows []*ledger.Row) string {
	var list []string
	for _, row := range rows[:min(len(rows), mostNamed)] {
		list = append(list, fmt.Sprintf("%s (%s, %s)", row.ToolCallID, row.ToolName, row.StartedAt))
	}
	if len(rows) > mostNamed {
		list = append(list, "...")
	}
	return strings.Join(list, ", ")
}
