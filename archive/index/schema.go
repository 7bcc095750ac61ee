package index

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"

	"toolrun/archive/ledger"
)

// uriPath is a path as SQLite reads it behind file:, whatever is in it.
func uriPath(path string) string { return (&url.URL{Path: path}).EscapedPath() }

// tables are the tables of the index. tool_calls has one column for each key of a row, in their order, and joined. Its rowid
// is the place of the row in the ledger, so that a seq that stands twice loses no row.
func tables() []string {
	var calls strings.Builder
	calls.WriteString("CREATE TABLE tool_calls (")
	for _, key := range ledger.Keys() {
		calls.WriteString(key + " " + affinity(key) + ", ")
	}
	calls.WriteString("joined INTEGER NOT NULL DEFAULT 0)")
	return []string{
		calls.String(),
		"CREATE TABLE offsets (place INTEGER PRIMARY KEY, offset INTEGER NOT NULL)",
		"CREATE TABLE damaged (place INTEGER PRIMARY KEY, file TEXT NOT NULL, line INTEGER NOT NULL, error TEXT NOT NULL)",
		"CREATE TABLE joins (tool_call_id TEXT PRIMARY KEY, turn, model, provider, input_tokens, output_tokens, estimated_cost_usd) WITHOUT ROWID",
		"CREATE TABLE own (place INTEGER PRIMARY KEY, turn, model, provider, input_tokens, output_tokens, estimated_cost_usd)",
		"CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
	}
}

// affinity is the type of a column.
func affinity(key string) string {
	switch ledger.ColumnOf(key).Shape() {
	case ledger.ShapeInteger, ledger.ShapeBool:
		return "INTEGER"
	case ledger.ShapeFloat:
		return "REAL"
	}
	return "TEXT"
}

// indexes are what makes the usual questions fast: they are answered from an index alone. The views are last.
var indexes = append([]string{
	"CREATE INDEX by_call ON tool_calls (tool_call_id)",
	"CREATE INDEX by_session ON tool_calls (session_id)",
	"CREATE INDEX by_tool ON tool_calls (tool_name, status)",
	"CREATE INDEX by_day ON tool_calls (date(started_at), provider, input_tokens, output_tokens, estimated_cost_usd)",
	"CREATE INDEX retried ON tool_calls (session_id, tool_name, status) WHERE attempt > 1",
	"CREATE INDEX unasked ON tool_calls (risk_class, started_at) WHERE approval_status = 'autonomous'",
}, views("CREATE VIEW ")...)

// View is a ready-made question.
type View struct{ Name, What, query string }

// Views are all of them.
var Views = []View{
	{"tool_failure_rates", "each tool with its calls, failures, refusals and the percentage that failed",
		"SELECT tool_name, COUNT(*) AS calls, SUM(status IN ('error', 'timeout', 'retry')) AS failures, SUM(status = 'blocked') AS refusals, " +
			"ROUND(100.0 * SUM(status IN ('error', 'timeout', 'retry')) / COUNT(*), 1) AS error_percent FROM tool_calls GROUP BY tool_name"},
	{"daily_spend", "each day (UTC) and provider with calls, tokens and estimated cost",
		"SELECT DATE(started_at) AS day, provider, COUNT(*) AS calls, SUM(input_tokens) AS input_tokens, SUM(output_tokens) AS output_tokens, " +
			"ROUND(SUM(estimated_cost_usd), 6) AS estimated_cost_usd FROM tool_calls GROUP BY DATE(started_at), provider"},
	{"retries_by_session", "each session with attempts after the first, and how many of these failed too",
		"SELECT session_id, COUNT(*) AS retries, SUM(status IN ('error', 'timeout', 'retry')) AS failures, COUNT(DISTINCT tool_name) AS tools " +
			"FROM tool_calls WHERE attempt > 1 GROUP BY session_id"},
	{"autonomous_calls", "SEND and DESTRUCTIVE calls that ran without anybody being asked",
		"SELECT started_at, risk_class, tool_name, status, session_id, tool_call_id, input_summary FROM tool_calls " +
			"WHERE approval_status = 'autonomous' AND risk_class IN ('SEND', 'DESTRUCTIVE')"},
}

func views(create string) (list []string) {
	for _, v := range Views {
		list = append(list, create+v.Name+" AS "+v.query)
	}
	return list
}

// version changes with the tables and with what stands in them; an index of another version is made anew.
func version() string {
	sum := sha256.Sum256([]byte("1\n" + strings.Join(append(tables(), indexes...), "\n")))
	return hex.EncodeToString(sum[:8])
}
