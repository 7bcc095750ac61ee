package trace

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
)

// object appends one JSON object key by key, in the order of the calls.
type object struct {
	b []byte
	n int
}

func (o *object) key(name string) {
	if o.n == 0 {
		o.b = append(o.b, '{')
	} else {
		o.b = append(o.b, ',')
	}
	o.n++
	o.b = append(append(append(o.b, '"'), name...), '"', ':')
}

func (o *object) str(name, v string) { o.key(name); o.b = jsonl.AppendString(o.b, v) }

func (o *object) orNull(name, v string) {
	o.key(name)
	if v == "" {
		o.b = append(o.b, "null"...)
	} else {
		o.b = jsonl.AppendString(o.b, v)
	}
}

func (o *object) text(name string, v *redact.Text) {
	o.key(name)
	if v == nil {
		o.b = append(o.b, "null"...)
	} else {
		o.b = jsonl.AppendString(o.b, v.String())
	}
}

func (o *object) num(name string, v int64)     { o.key(name); o.b = strconv.AppendInt(o.b, v, 10) }
func (o *object) boolean(name string, v bool)  { o.key(name); o.b = strconv.AppendBool(o.b, v) }
func (o *object) list(name string, v []string) { o.key(name); o.b = jsonl.AppendStrings(o.b, v) }
func (o *object) at(name string, t time.Time)  { o.str(name, ledger.FormatTime(t)) }
func (o *object) json(name string, v redact.JSON) {
	o.key(name)
	o.b = jsonl.AppendJSON(o.b, v.Raw())
}
func (o *object) end() []byte          { return append(o.b, '}') }
func (o *object) line(typ, run string) { o.str("type", typ); o.str("run_id", run) }
func (o *object) where(has bool, write func()) {
	if has {
		write()
	}
}

func (o *object) hashes(name string, v map[string]string) {
	o.key(name)
	inner := object{b: o.b}
	for _, k := range slices.Sorted(maps.Keys(v)) {
		if inner.n == 0 {
			inner.b = append(inner.b, '{')
		} else {
			inner.b = append(inner.b, ',')
		}
		inner.n++
		inner.b = append(jsonl.AppendString(inner.b, k), ':')
		inner.b = jsonl.AppendString(inner.b, v[k])
	}
	if inner.n == 0 {
		inner.b = append(inner.b, '{')
	}
	o.b = append(inner.b, '}')
}

func appendHeader(dst []byte, h Header) []byte {
	o := object{b: dst}
	o.line(TypeCatalog, h.RunID)
	o.at("started_at", h.StartedAt)
	o.list("catalog_names", h.CatalogNames)
	o.str("catalog_sha256", h.CatalogSHA256)
	o.hashes("schema_sha256", h.SchemaSHA256)
	o.hashes("definition_sha256", h.DefinitionSHA256)
	o.str("catalog_definition_sha256", h.CatalogDefinitionSHA256)
	o.text("role", h.Role)
	o.str("toolrun_version", h.Version)
	o.str("host", h.Host)
	o.num("pid", int64(h.PID))
	o.where(len(h.Autonomous) > 0, func() { o.list("autonomous", h.Autonomous) })
	return o.end()
}

func appendSession(dst []byte, run string, at time.Time, s Session, role *redact.Text) []byte {
	o := object{b: dst}
	o.line(TypeSession, run)
	o.at("ts", at)
	o.str("session_id", s.SessionID.String())
	o.text("client", s.Client)
	o.orNull("protocol", s.Protocol)
	o.text("role", role)
	return o.end()
}

func appendCall(dst []byte, run string, at time.Time, c Call) []byte {
	row := c.Row
	o := object{b: dst}
	o.line(TypeToolCall, run)
	o.at("ts", at)
	o.str("catalog_sha256", row.CatalogSHA256)
	o.str("tool_call_id", row.ToolCallID.String())
	o.str("name", row.ToolName.String())
	o.boolean("known", row.Known)
	o.orNull("schema_sha256", string(row.SchemaSHA256))
	o.str("args_sha256", row.InputHash)
	o.key("arguments")
	if args := c.Arguments.Raw(); len(args) <= maxArgumentsBytes && !deeper(args, maxArgumentsDepth) {
		o.b = jsonl.AppendJSON(o.b, args)
	} else {
		o.b = append(append(append(o.b, `{"sha256":"`...), row.InputHash...), `"}`...)
	}
	o.list("flags", row.Flags)

	// What a row needs that another process writes, where this one dies: only what is set.
	o.str("session_id", row.SessionID.String())
	o.str("session_from", row.SessionFrom)
	o.where(row.Turn != 0, func() { o.num("turn", int64(row.Turn)) })
	o.where(row.Attempt > 1, func() { o.num("attempt", int64(row.Attempt)) })
	o.where(row.RiskClass != "", func() { o.str("risk_class", string(row.RiskClass)) })
	o.where(row.DefinitionSHA256 != "", func() { o.str("definition_sha256", string(row.DefinitionSHA256)) })
	o.where(c.Held, func() { o.boolean("held", true) })
	o.where(row.ApprovalStatus != "", func() { o.str("approval_status", string(row.ApprovalStatus)) })
	o.where(!row.ApprovedBy.IsNull(), func() { o.json("approved_by", row.ApprovedBy) })
	o.where(row.ClientCallID != nil, func() { o.text("client_call_id", row.ClientCallID) })
	o.where(row.ParentCallID != nil, func() { o.text("parent_call_id", row.ParentCallID) })
	o.where(row.Model != nil, func() { o.text("model", row.Model) })
	o.where(row.Provider != nil, func() { o.text("provider", row.Provider) })
	o.where(row.InputTokens != nil, func() { o.num("input_tokens", *row.InputTokens) })
	o.where(row.OutputTokens != nil, func() { o.num("output_tokens", *row.OutputTokens) })
	o.where(row.Role != nil, func() { o.text("role", row.Role) })
	o.where(row.Client != nil, func() { o.text("client", row.Client) })
	o.where(row.TraceID != "", func() { o.str("trace_id", string(row.TraceID)) })
	o.where(row.SpanID != "", func() { o.str("span_id", string(row.SpanID)) })
	o.where(row.Redactions != 0, func() { o.num("redactions", int64(row.Redactions)) })
	o.where(row.Payloads != "", func() { o.str("payloads", row.Payloads) })
	return o.end()
}

func appendApproval(dst []byte, run string, at time.Time, a Approval) []byte {
	o := object{b: dst}
	o.line(TypeApproval, run)
	o.at("ts", at)
	o.str("tool_call_id", a.Row.ToolCallID.String())
	o.str("name", a.Row.ToolName.String())
	o.str("approval_status", a.Answer)
	o.json("by", a.By)
	return o.end()
}

func appendResult(dst []byte, run string, at time.Time, r Result) []byte {
	row := r.Row
	o := object{b: dst}
	o.line(TypeToolResult, run)
	o.at("ts", at)
	o.str("tool_call_id", row.ToolCallID.String())
	o.str("name", row.ToolName.String())
	o.key("exit_code")
	if row.ExitCode == nil {
		o.b = append(o.b, "null"...)
	} else {
		o.b = strconv.AppendInt(o.b, int64(*row.ExitCode), 10)
	}
	o.num("output_bytes", row.OutputBytes)
	o.str("output_head", cut(r.Head.String(), OutputHeadChars))
	o.list("flags", row.Flags)
	o.where(row.ClosedBy != "", func() { o.str("closed_by", row.ClosedBy) })
	return o.end()
}

func appendRejected(dst []byte, run string, at time.Time, code int, bytes int64, sha256 string) []byte {
	o := object{b: dst}
	o.line(TypeRejectedLine, run)
	o.at("ts", at)
	o.num("code", int64(code))
	o.num("bytes", bytes)
	o.str("sha256", sha256)
	return o.end()
}

func appendUnused(dst []byte, run string, names []string) []byte {
	flags := []string{}
	if len(names) > 0 {
		flags = append(flags, FlagUnusedTool)
	}
	o := object{b: dst}
	o.line(TypeUnused, run)
	o.list("unused_names", names)
	o.list("flags", flags)
	return o.end()
}

// deeper tells whether arrays and objects of valid JSON are nested in more than max levels.
func deeper(value []byte, max int) bool {
	if len(value) <= 2*max {
		return false
	}
	depth, quoted := 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > max {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// cut returns the first n characters of s.
func cut(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
