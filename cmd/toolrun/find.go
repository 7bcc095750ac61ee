package main

import (
	"errors"
	"fmt"
	"strings"

	"toolrun/archive"
	"toolrun/archive/ledger"
	"toolrun/archive/query"
)

// find returns the rows that a person means by id: the row with this tool_call_id; else the rows of this client call id,
// as the attempts of one call have; else the one row whose tool_call_id begins so. Damage is errFound where damaged lines
// were passed over on the way.
func (a *app) find(d *archive.Dir, id string) (rows []*ledger.Row, damage, err error) {
	seen := damageSeen{a: a}
	row, err := query.Find(d, id, func(err error) { seen.note(err) })
	if err != nil {
		return nil, nil, err
	}
	if row != nil {
		return []*ledger.Row{row}, seen.result(), nil
	}
	seen = damageSeen{a: a, quiet: true} // Find has named them
	var same, begin []*ledger.Row
	for row, err := range query.Rows(d, query.Filter{}) {
		if err != nil {
			if err := seen.note(err); err != nil {
				return nil, nil, err
			}
			continue
		}
		switch {
		case text(row.ClientCallID) == id:
			same = append(same, row)
		case id != "" && strings.HasPrefix(row.ToolCallID.String(), id):
			begin = append(begin, row)
		}
	}
	switch {
	case len(same) > 0:
		return same, seen.result(), nil
	case len(begin) == 1:
		return begin, seen.result(), nil
	case len(begin) > 1:
		return nil, nil, errors.Join(fmt.Errorf("%d calls begin with %q: name one in full", len(begin), id), seen.result())
	}
	return nil, nil, errors.Join(fmt.Errorf("no call %q in %s", id, d.Path()), seen.result())
}
