package index

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"toolrun/archive/joins"
)

// joinsMark tells one joins.jsonl from a later one.
func joinsMark(dir string) string {
	info, err := os.Stat(filepath.Join(dir, joins.FileName))
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
}

// join gives rows what was learned of them later, where they do not say it themselves: those from a place on, or all of them where
// more was learned. What a row said itself is kept in own, so that what is learned anew takes the place of what was learned.
func (l *load) join(s *state, mark string, from int64) error {
	const of = "turn, model, provider, input_tokens, output_tokens, estimated_cost_usd"
	if s.joins != mark {
		from = 0
		// What was learned before may be gone.
		if err := exec(l.db, "UPDATE tool_calls SET ("+of+", joined) = ("+"o.turn, o.model, o.provider, o.input_tokens, o.output_tokens, o.estimated_cost_usd, 0) FROM own o WHERE o.place = tool_calls.rowid",
			"DELETE FROM own"); err != nil {
			return err
		}
		if err := l.loadJoins(); err != nil {
			return err
		}
		s.joins = mark
	}
	if s.joins == "" {
		return nil
	}
	for _, statement := range []string{
		`INSERT OR IGNORE INTO own SELECT c.rowid, c.turn, c.model, c.provider, c.input_tokens, c.output_tokens, c.estimated_cost_usd
			FROM tool_calls c JOIN joins j ON j.tool_call_id = c.tool_call_id WHERE c.rowid >= ?`,
		`UPDATE tool_calls SET (` + of + `, joined) = (
			IIF(o.turn = 0, j.turn, o.turn), IFNULL(o.model, j.model), IFNULL(o.provider, j.provider), IFNULL(o.input_tokens, j.input_tokens),
			IFNULL(o.output_tokens, j.output_tokens), IFNULL(o.estimated_cost_usd, j.estimated_cost_usd),
			(o.turn = 0 AND j.turn > 0) OR (o.model IS NULL AND j.model IS NOT NULL) OR (o.provider IS NULL AND j.provider IS NOT NULL)
			OR (o.input_tokens IS NULL AND j.input_tokens IS NOT NULL) OR (o.output_tokens IS NULL AND j.output_tokens IS NOT NULL)
			OR (o.estimated_cost_usd IS NULL AND j.estimated_cost_usd IS NOT NULL))
			FROM own o, joins j WHERE o.place = tool_calls.rowid AND j.tool_call_id = tool_calls.tool_call_id AND o.place >= ?`,
	} {
		stmt, _, err := l.db.Prepare(statement)
		if err != nil {
			return err
		}
		if err := errors.Join(stmt.BindInt64(1, from), stmt.Exec(), stmt.Close()); err != nil {
			return err
		}
	}
	return nil
}

// loadJoins takes over joins.jsonl. Its damaged lines stand before those of the ledger.
func (l *load) loadJoins() error {
	var lines []damaged
	all, err := joins.Load(l.d.Path(), func(err error) {
		var bad *Damage
		if errors.As(err, &bad) {
			lines = append(lines, damaged{int64(-bad.Line), bad})
		}
	})
	if err != nil {
		return err
	}
	if err := exec(l.db, "DELETE FROM joins", "DELETE FROM damaged WHERE file = '"+joins.FileName+"'"); err != nil {
		return err
	}
	w, err := newWriter(l.db, l.d.Path())
	if err != nil {
		return err
	}
	defer w.close()
	if err := w.write(&batch{damage: lines}); err != nil {
		return err
	}
	stmt, _, err := l.db.Prepare("INSERT INTO joins VALUES (?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer stmt.Close()
	for id, j := range all {
		err := errors.Join(stmt.BindText(1, id), stmt.BindInt(2, j.Turn))
		for i, text := range []interface{ String() string }{j.Model, j.Provider} {
			if i == 0 && j.Model == nil || i == 1 && j.Provider == nil {
				err = errors.Join(err, stmt.BindNull(3+i))
			} else {
				err = errors.Join(err, stmt.BindText(3+i, text.String()))
			}
		}
		for i, n := range []*int64{j.InputTokens, j.OutputTokens} {
			if n == nil {
				err = errors.Join(err, stmt.BindNull(5+i))
			} else {
				err = errors.Join(err, stmt.BindInt64(5+i, *n))
			}
		}
		if j.EstimatedCostUSD == nil {
			err = errors.Join(err, stmt.BindNull(7))
		} else {
			err = errors.Join(err, stmt.BindFloat(7, *j.EstimatedCostUSD))
		}
		if err := errors.Join(err, stmt.Exec()); err != nil {
			return err
		}
	}
	return nil
}
