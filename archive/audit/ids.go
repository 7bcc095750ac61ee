package audit

import (
	"fmt"

	"toolrun/archive/ledger"
)

// checkIDs demands that every id in use is in the table of ids, if there is one; those of runs that nobody has closed are
// put there when they are.
func (v *verifier) checkIDs() error {
	table, err := ledger.ReadIDs(v.d.Path())
	if err != nil {
		v.find(Finding{Kind: IDsWrong, File: ledger.IDsName, Text: err.Error() + "; it is derived: verify --repair-derived"})
		return nil
	}
	if table == nil {
		return nil
	}
	missing, one := 0, ""
	note := func(call string) {
		missing++
		one = call
	}
	for _, line := range v.lines {
		if line.call != "" && !v.marked(line.run) && !table.Has(line.call) {
			note(line.call)
		}
	}
	for _, r := range v.runs {
		if r.marked {
			continue
		}
		for call := range r.calls {
			if !table.Has(call) {
				note(call)
			}
		}
	}
	if missing > 0 {
		v.find(Finding{Kind: IDsWrong, File: ledger.IDsName, Text: fmt.Sprintf("%d ids in use are not in it, %q among them; it is derived: verify --repair-derived", missing, one)})
	}
	return nil
}
