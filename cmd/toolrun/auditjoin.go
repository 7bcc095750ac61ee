package main

import (
	"errors"
	"slices"
	"time"

	"toolrun/archive"
	"toolrun/archive/joins"
	"toolrun/archive/ledger"
	"toolrun/archive/pairing"
	"toolrun/archive/query"
	"toolrun/archive/redact"
	"toolrun/archive/transcript"
	"toolrun/catalog"
	"toolrun/catalog/prices"
)

// joinRows keeps what the transcript tells of rows, and returns of how many something new was learned.
func (a *app) joinRows(d *archive.Dir, x *audited) (int, error) {
	c, _, err := a.loadCatalog()
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		c = nil // prices of a catalog that cannot be read are none
	}
	table, err := a.priceTable(c, d.Path())
	if err != nil {
		return 0, err
	}
	return joins.Add(d.Path(), joinsOf(x.report, x.list[0].Format, table), a.now())
}

// joinsOf is what a paired transcript tells of each row that the row does not have itself. The tokens of an answer of the
// model are those of the first row that it led to, and the others of it have 0, so that they can be summed.
func joinsOf(report *pairing.Report, source string, table prices.Table) (list []*joins.Join) {
	rules := redact.New(nil)
	text := func(s string) *redact.Text {
		if s == "" {
			return nil
		}
		t := rules.Text(s)
		return &t
	}
	type sum struct{ in, out int64 }
	type answer struct {
		of   *transcript.Transcript
		turn int
	}
	tokens := map[answer]*sum{}
	for _, item := range report.Items {
		if c := item.Call; c != nil && c.InputTokens != nil && c.OutputTokens != nil {
			key := answer{item.From, c.Turn}
			if tokens[key] == nil {
				tokens[key] = &sum{}
			}
			tokens[key].in += *c.InputTokens
			tokens[key].out += *c.OutputTokens
		}
	}
	spent := map[answer]bool{}
	for _, item := range report.Items {
		if item.Call == nil {
			continue
		}
		key := answer{item.From, item.Call.Turn}
		for _, row := range item.Rows {
			j := &joins.Join{ToolCallID: row.ToolCallID, Source: source}
			if row.Turn == 0 {
				j.Turn = item.Call.Turn
			}
			if row.Model == nil {
				j.Model = text(item.Call.Model)
			}
			if row.Provider == nil {
				j.Provider = text(item.Call.Provider)
			}
			if t := tokens[key]; t != nil {
				if row.InputTokens == nil && row.OutputTokens == nil {
					if spent[key] {
						t = &sum{}
					}
					in, out := t.in, t.out
					j.InputTokens, j.OutputTokens = &in, &out
				}
				spent[key] = true // by this row, or told for it
			}
			j.EstimatedCostUSD = costOf(row, j, table)
			if j.Turn != 0 || j.Model != nil || j.Provider != nil || j.InputTokens != nil || j.EstimatedCostUSD != nil {
				list = append(list, j)
			}
		}
	}
	return list
}

// costOf is the cost of a row that has none, by its own values and those that were learned.
func costOf(row *ledger.Row, j *joins.Join, table prices.Table) *float64 {
	first := func(a, b *redact.Text) string {
		if a != nil {
			return a.String()
		}
		if b != nil {
			return b.String()
		}
		return ""
	}
	in, out := row.InputTokens, row.OutputTokens
	if in == nil || out == nil {
		in, out = j.InputTokens, j.OutputTokens
	}
	if row.EstimatedCostUSD != nil || in == nil || out == nil {
		return nil
	}
	usd, ok := table.Cost(first(row.Provider, j.Provider), first(row.Model, j.Model), *in, *out)
	if !ok {
		return nil
	}
	return &usd
}

// joinWhereNewer is joinSession of the rows of a session that a command is about to show, where their transcript was written
// to since something was learned of them. The rows are filled with what it tells.
func (a *app) joinWhereNewer(d *archive.Dir, rows []*ledger.Row) error {
	session, client := rows[0].SessionID.String(), ""
	lacks := false
	for _, row := range rows {
		if row.Client != nil {
			client = row.Client.String()
		}
		lacks = lacks || row.Model == nil || row.Provider == nil || row.InputTokens == nil || row.Turn == 0
	}
	first, err := time.Parse(time.RFC3339, rows[0].StartedAt)
	format := transcript.FormatOf(client)
	if err != nil || format == "" || !lacks {
		return nil
	}
	known, err := joins.Load(d.Path(), nil)
	if err != nil {
		return err
	}
	learned := ""
	for _, row := range rows {
		if j := known[row.ToolCallID.String()]; j != nil {
			learned = max(learned, j.JoinedAt)
		}
	}
	newer := slices.ContainsFunc(transcript.Places{Getenv: a.getenv}.Find(format, session, first), func(path string) bool {
		return ledger.FormatTime(transcript.Written(path)) >= learned
	})
	if !newer || len(a.joinSession(d, session)) == 0 {
		return nil
	}
	if known, err = joins.Load(d.Path(), nil); err != nil {
		return err
	}
	for _, row := range rows {
		if j := known[row.ToolCallID.String()]; j != nil {
			query.Fill(row, j)
		}
	}
	return nil
}

// joinSession keeps what the transcript of a session tells of its rows, where its agent keeps one that can be found. It is for
// commands that are about something else: what cannot be done is left, and nothing is said.
func (a *app) joinSession(d *archive.Dir, session string) []*audited {
	list, err := a.auditSession(d, session, &damageSeen{a: a, quiet: true})
	if err != nil {
		a.logger().Debug("no transcript is joined", "session", session, "err", err)
		return nil
	}
	for _, one := range list {
		if _, err := a.joinRows(d, one); err != nil {
			a.logger().Debug("the transcript cannot be joined", "session", session, "err", err)
		}
	}
	return list
}
