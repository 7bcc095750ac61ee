package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/catalog"
	"toolrun/catalog/canon"
	"toolrun/catalog/prices"
	"toolrun/sandbox"
)

// summaryChars bounds summaries and messages of a row.
const summaryChars = 300

// begin makes the row of a call: what is true of it whatever comes.
func (c *call) begin() {
	r := c.r
	name, masked := bounded(r.cfg.Rules, c.req.Name, maxIDBytes)
	c.rules = r.cfg.Rules
	c.row = &ledger.Row{
		ToolName:      name,
		Attempt:       1,
		Seq:           noSeq,
		RunID:         r.cfg.Run.ID(),
		CatalogSHA256: r.cfg.Catalog.SHA256(),
		Payloads:      r.cfg.Payloads,
		Role:          boundedOrNil(r.cfg.Rules, r.cfg.Role),
		Flags:         []string{},
		Enforced:      []string{},
		Redactions:    masked,
	}
	if t, known := r.cfg.Catalog.Lookup(c.req.Name); known {
		c.tool = t
		c.row.Known = true
		c.row.RiskClass = ledger.OrNull(t.Risk)
		c.row.SchemaSHA256 = ledger.OrNull(t.SchemaSHA256)
		c.row.DefinitionSHA256 = ledger.OrNull(t.DefinitionSHA256)
	}
}

// read checks the arguments and redacts them. What it finds wrong is policy's to judge.
func (c *call) read() {
	arguments := c.req.Arguments
	if v := bytes.TrimSpace(arguments); len(v) == 0 || string(v) == "null" {
		arguments = json.RawMessage("{}")
	}
	if c.tool != nil {
		if !c.tool.Redact {
			c.rules = c.r.onlyDeclared
		}
		c.check(arguments)
	}
	c.take(c.redactInput(arguments))
}

// take makes input the call's.
func (c *call) take(input redact.JSON) {
	c.input = input
	// What only its key made a secret in the arguments is one in argv and output too.
	c.rules = c.rules.With(input)
	c.row.Redactions += input.Redactions()
	c.flagRedacted()
	if c.r.cfg.Payloads != PayloadsHash {
		c.row.InputSummary = redact.Summary(input.Text(), summaryChars)
	}
}

// check holds the arguments against the schema, and their paths against the tool's view.
func (c *call) check(arguments json.RawMessage) {
	args, err := c.tool.Check(arguments)
	if err != nil {
		c.problem = err
		return
	}
	if c.tool.Terminal != (catalog.Terminal{}) && !new(sandbox.Line).Type(args.Stdin()) {
		c.problem = &catalog.ArgumentError{Field: strings.Join(c.tool.StdinParams(), ", "), Problem: lineTooLong}
		return
	}
	if plan := c.r.plans[c.tool.Name]; plan != nil {
		for _, p := range args.PathParams() {
			if err := plan.view.check(p.Value); err != nil {
				c.problem = &catalog.ArgumentError{Field: p.Name, Problem: err.Error()}
				return
			}
		}
	}
	c.args = args
}

// redactInput makes the input object: the canonical JSON of the redacted arguments. Where the name had to be cut it holds
// the whole name beside them; arguments that are no JSON, or in which a key stands twice, stand in it as a string.
func (c *call) redactInput(arguments json.RawMessage) redact.JSON {
	if len(c.req.Name) > maxIDBytes && strings.HasSuffix(c.row.ToolName.String(), "...") {
		whole, err := json.Marshal(map[string]any{"name": c.req.Name, "arguments": arguments})
		if err == nil {
			arguments = whole
		}
	}
	input, err := c.rules.Canonical(arguments, canon.Canonicalize)
	if err == nil {
		return input
	}
	if c.problem == nil {
		c.problem = &catalog.ArgumentError{Problem: "are not valid JSON"}
	}
	// No escape may hide a secret from redaction.
	plain, err := jsontext.AppendFormat(nil, arguments, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		plain = bytes.ToValidUTF8(arguments, []byte("\uFFFD"))
	}
	text, err := json.Marshal(string(plain))
	if err == nil {
		input, err = c.rules.Canonical(text, canon.Canonicalize)
	}
	if err != nil {
		panic(fmt.Errorf("a JSON string is not canonical: %w", err))
	}
	return input
}

// identify gives the call its id, session, turn, origin and cost.
func (c *call) identify() (err error) {
	r, o, row := c.r, c.req.Origin, c.row
	row.SessionID, row.SessionFrom = r.sessionID(o)
	c.session = r.sessions.get(row.SessionID.String())
	row.Turn = c.session.turn(o.Turn, o.TurnID)
	rules := r.cfg.Rules
	row.Model = boundedOrNil(rules, o.Model)
	row.Provider = boundedOrNil(rules, o.Provider)
	row.ParentCallID = boundedOrNil(rules, o.ParentCallID)
	row.Client = boundedOrNil(rules, o.Client)
	row.InputTokens, row.OutputTokens = count(o.InputTokens), count(o.OutputTokens)
	row.EstimatedCostUSD = cost(r.cfg.Prices, o)
	row.TraceID, row.SpanID = hexID(o.TraceID, 32), hexID(o.SpanID, 16)
	if c.id, err = r.ids.take(o.CallID); err != nil {
		return err
	}
	row.ToolCallID, row.ClientCallID = c.id.ID, c.id.Client
	return nil
}

// sessionID is the caller's session, else the run.
func (r *Runner) sessionID(o Origin) (id redact.Text, from string) {
	if o.SessionID == "" {
		return redact.Plain(r.cfg.Run.ID()), "run"
	}
	id, _ = bounded(r.cfg.Rules, o.SessionID, maxIDBytes)
	if o.SessionFrom == "" {
		return id, "meta"
	}
	return id, o.SessionFrom
}

// cost is the estimated price, nil unless provider and both token counts are known and a table has a price.
func cost(table prices.Table, o Origin) *float64 {
	if o.Provider == "" || count(o.InputTokens) == nil || count(o.OutputTokens) == nil {
		return nil
	}
	usd, ok := table.Cost(o.Provider, o.Model, *o.InputTokens, *o.OutputTokens)
	if !ok {
		return nil
	}
	return &usd
}

// count takes a number of tokens; a negative one is none.
func count(n *int64) *int64 {
	if n == nil || *n < 0 {
		return nil
	}
	return n
}

// hexID takes an id of W3C trace context, which is lower-case hex of a fixed length; anything else is no id.
func hexID(s string, length int) ledger.OrNull {
	if len(s) != length {
		return ""
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return ""
		}
	}
	return ledger.OrNull(s)
}
