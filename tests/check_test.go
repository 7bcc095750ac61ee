package tests

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// first24 are the keys that other programs rely on, in their order, each with what its JSON text must look like.
var first24 = []struct {
	key  string
	text *regexp.Regexp
}{
	{"tool_call_id", textOf(`".+"`)},
	{"session_id", textOf(`".+"`)},
	{"turn", natural},
	{"tool_name", textOf(`".*"`)},
	{"risk_class", textOf(`"(READ|DRAFT|SEND|DESTRUCTIVE)"|null`)},
	{"status", textOf(`"(success|error|timeout|blocked|retry)"`)},
	{"attempt", textOf(`[1-9][0-9]*`)},
	{"started_at", timestamp},
	{"ended_at", timestamp},
	{"duration_ms", natural},
	{"input_summary", textOf(`".*"`)},
	{"input_hash", textOf(`"[0-9a-f]{64}"`)},
	{"output_summary", textOf(`".*"`)},
	{"output_hash", textOf(`"[0-9a-f]{64}"|null`)},
	{"output_bytes", natural},
	{"error_type", textOf(`"[A-Za-z]+"|null`)},
	{"error_message", textOf(`".*"|null`)},
	{"model", textOf(`".*"|null`)},
	{"provider", textOf(`".*"|null`)},
	{"input_tokens", textOf(`[0-9]+|null`)},
	{"output_tokens", textOf(`[0-9]+|null`)},
	{"estimated_cost_usd", textOf(`[0-9]+(\.[0-9]{1,6})?|null`)},
	{"parent_call_id", textOf(`".*"|null`)},
	{"approval_status", textOf(`"(approved|denied|autonomous)"|null`)},
}

var (
	natural   = textOf(`0|[1-9][0-9]*`)
	timestamp = textOf(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`)
)

func textOf(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?s)^(` + pattern + `)$`) }

// outcomes is the table of archive/FORMAT.md: outcome → status and error_type.
var outcomes = map[string]struct{ status, errorType string }{
	"ok":                   {"success", ""},
	"exit":                 {"error", "ExitError"},
	"signal":               {"error", "SignalError"},
	"cpu_limit":            {"error", "CpuLimitError"},
	"oom":                  {"error", "OutOfMemoryError"},
	"output_limit":         {"error", "OutputLimitError"},
	"interrupted":          {"error", "InterruptedError"},
	"spawn_failed":         {"error", "SpawnError"},
	"capture_failed":       {"error", "CaptureError"},
	"timeout":              {"timeout", "TimeoutError"},
	"cancelled":            {"error", "CancelledError"}, // blocked where nothing was started
	"unknown_tool":         {"blocked", "UnknownTool"},
	"invalid_arguments":    {"blocked", "InvalidArguments"},
	"duplicate_id":         {"blocked", "DuplicateId"},
	"policy":               {"blocked", "PolicyDenied"},
	"declined":             {"blocked", "Declined"},
	"approval_unavailable": {"blocked", "ApprovalUnavailable"},
	"sandbox_unavailable":  {"blocked", "SandboxUnavailable"},
	"busy":                 {"blocked", "Busy"},
}

// checkData holds a data directory that no process uses against what must always hold of it, and names what does not.
func checkData(data string) (problems []error) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	rows, damage := readRows(data)
	problems = append(problems, damage...)
	problems = append(problems, checkSigned(data)...)
	runs, damage := readRuns(data)
	problems = append(problems, damage...)

	byID := map[string]row{}
	for i, r := range rows {
		problems = append(problems, checkRow(data, r)...)
		if r.Seq != int64(i) {
			bad("row %d has seq %d", i, r.Seq)
		}
		if other, twice := byID[r.ToolCallID]; twice {
			bad("rows %d and %d share tool_call_id %q", other.Seq, r.Seq, r.ToolCallID)
		}
		byID[r.ToolCallID] = r
	}

	traced := map[string]string{} // tool_call_id → the run that has its tool_call line
	for _, run := range slices.Sorted(maps.Keys(runs)) {
		problems = append(problems, checkRun(run, runs[run], byID)...)
		for _, l := range runs[run] {
			if l.Type == "tool_call" {
				if other, twice := traced[l.ToolCallID]; twice {
					bad("tool_call %q stands in runs %s and %s", l.ToolCallID, other, run)
				}
				traced[l.ToolCallID] = run
			}
		}
	}
	for _, r := range rows {
		if traced[r.ToolCallID] != r.RunID {
			bad("row %q is of run %s, its tool_call line is in %q", r.ToolCallID, r.RunID, traced[r.ToolCallID])
		}
	}
	return append(problems, checkFiles(data)...)
}

func checkRow(data string, r row) (problems []error) {
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("ledger.jsonl:%d (%s): %w", r.line, r.ToolCallID, fmt.Errorf(format, args...)))
	}
	order, values, err := keys(r.raw)
	if err != nil {
		bad("%w", err)
		return problems
	}
	for i, want := range first24 {
		if i >= len(order) || order[i] != want.key {
			bad("key %d is not %q", i, want.key)
			return problems
		}
		if !want.text.Match(values[want.key]) {
			bad("%s is %.100s", want.key, values[want.key])
		}
	}
	want, ok := outcomes[r.Outcome]
	if r.Outcome == "cancelled" && r.OutputHash == nil {
		want.status = "blocked"
	}
	errorType := ""
	if r.ErrorType != nil {
		errorType = *r.ErrorType
	}
	if !ok || r.Status != want.status && r.Status != "retry" || errorType != want.errorType {
		bad("outcome %q with status %q and error_type %q", r.Outcome, r.Status, errorType)
	}
	if r.ExitCode != nil && (r.Signal != nil || *r.ExitCode < 0) || r.Outcome == "ok" && r.ExitCode == nil && string(values["argv"]) != "null" {
		bad("outcome %q with exit_code %v and signal %v", r.Outcome, show(r.ExitCode), show(r.Signal))
	}
	started, _ := time.Parse(time.RFC3339, r.StartedAt)
	ended, _ := time.Parse(time.RFC3339, r.EndedAt)
	if ended.Sub(started) != time.Duration(r.DurationMS)*time.Millisecond {
		bad("%s to %s is not %d ms", r.StartedAt, r.EndedAt, r.DurationMS)
	}
	if n := len([]rune(r.InputSummary)); n > 303 || strings.ContainsAny(r.InputSummary+r.OutputSum, "\n\t\r") {
		bad("input_summary of %d characters or with white space", n)
	}
	if r.Status == "blocked" && (r.OutputHash != nil || r.OutputBytes != 0 || r.DurationMS != 0 || r.ExitCode != nil) {
		bad("blocked, but something ran: %s", r.raw)
	}
	if _, err := checkObject(data, r.InputHash); err != nil {
		bad("input: %w", err)
	}
	if r.OutputHash != nil {
		if n, err := checkObject(data, *r.OutputHash); err != nil || n != r.StoredBytes {
			bad("output of %d bytes, stored_bytes %d: %v", n, r.StoredBytes, err)
		}
	} else if r.OutputBytes != 0 && r.Outcome != "capture_failed" {
		bad("output_bytes %d without an object", r.OutputBytes)
	}
	if r.StderrHash != nil {
		if _, err := checkObject(data, *r.StderrHash); err != nil {
			bad("stderr: %w", err)
		}
	}
	return problems
}

func show[T any](p *T) string {
	if p == nil {
		return "null"
	}
	return fmt.Sprint(*p)
}

// checkRun holds the trace of one run against the rows.
func checkRun(run string, lines []traceLine, rows map[string]row) (problems []error) {
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("run %s: %w", run, fmt.Errorf(format, args...)))
	}
	if len(lines) == 0 || lines[0].Type != "catalog" {
		bad("does not begin with its catalog")
		return problems
	}
	names := lines[0].CatalogNames
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	if !slices.IsSorted(names) || sha256Hex("["+strings.Join(quoted, ",")+"]") != lines[0].Catalog {
		bad("catalog_sha256 %s is not that of %v", lines[0].Catalog, names)
	}
	open, closed := map[string]bool{}, map[string]bool{}
	for i, l := range lines[1:] {
		switch l.Type {
		case "tool_call":
			r, ok := rows[l.ToolCallID]
			switch {
			case !ok:
				bad("tool_call %q has no row", l.ToolCallID)
			case r.RunID != run || r.ToolName != l.Name || r.InputHash != l.ArgsSHA256:
				bad("tool_call %q does not fit its row: %+v %s", l.ToolCallID, l, r.raw)
			}
			open[l.ToolCallID] = true
		case "tool_result":
			r := rows[l.ToolCallID]
			if !open[l.ToolCallID] || closed[l.ToolCallID] {
				bad("tool_result %q without its own tool_call before it", l.ToolCallID)
			}
			if show(r.ExitCode) != show(l.ExitCode) || r.OutputBytes != l.OutputBytes {
				bad("tool_result %q does not fit its row: %+v %s", l.ToolCallID, l, r.raw)
			}
			closed[l.ToolCallID] = true
		case "approval":
			if !open[l.ToolCallID] || closed[l.ToolCallID] {
				bad("approval of %q outside of its call", l.ToolCallID)
			}
		case "session", "rejected_line":
		case "catalog_unused":
			if i != len(lines)-2 && !closedLater(lines[i+2:]) {
				bad("lines after catalog_unused")
			}
		default:
			bad("a line of type %q", l.Type)
		}
	}
	for id := range open {
		if !closed[id] {
			bad("tool_call %q has no tool_result", id)
		}
	}
	return problems
}

func closedLater(lines []traceLine) bool {
	return !slices.ContainsFunc(lines, func(l traceLine) bool { return l.ClosedBy == "" })
}

var objectName = regexp.MustCompile(`^store/([0-9a-f]{2})/([0-9a-f]{64})\.txt$`)

// checkFiles names files that should not be there, and permissions that are too wide.
func checkFiles(data string) (problems []error) {
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			problems = append(problems, fmt.Errorf("%s has mode %v", path, info.Mode()))
		}
		name, _ := filepath.Rel(data, path)
		if strings.Contains(filepath.Base(name), "tmp") {
			problems = append(problems, fmt.Errorf("a temporary file is left: %s", name))
		}
		if strings.HasPrefix(name, "store/") && d.Type().IsRegular() {
			if m := objectName.FindStringSubmatch(name); m == nil || !strings.HasPrefix(m[2], m[1]) {
				problems = append(problems, fmt.Errorf("no object has this name: %s", name))
			}
		}
		return nil
	})
	if err != nil && !os.IsNotExist(err) {
		problems = append(problems, err)
	}
	return problems
}
