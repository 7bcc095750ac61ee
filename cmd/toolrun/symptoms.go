package main

import (
	"fmt"
	"slices"
	"strings"

	"toolrun/archive/claims"
	"toolrun/archive/ledger"
	"toolrun/archive/pairing"
	"toolrun/catalog"
)

// comparison is a run beside another one.
type comparison struct {
	run, other *ranRun // other: nil where there is none
	changes    []catalog.Change
}

// symptom is one line of a diagnosis.
type symptom struct {
	Symptom string   `json:"symptom"`
	Tools   []string `json:"tools"`
	CallIDs []string `json:"tool_call_ids"`
	Checked string   `json:"checked"`
	Hashes  string   `json:"hashes"` // "match", "differ", or "unknown": no other run
	Cause   string   `json:"cause"`
	Fields  []field  `json:"fields"` // that changed
}

// Causes, in the words of the table in README.md.
const (
	causeWrongCatalog = "the wrong catalog was shipped"
	causeInvented     = "the model invented a tool"
	causeDrift        = "the definition of the tool drifted"
	causeArguments    = "argument validation: the model's arguments do not fit the schema"
	causeMixed        = "files of different runs are mixed"
	causePairing      = "a pairing bug of the runtime"
	causeRecovery     = "the recovery hid a catalog miss"
	causePapered      = "the answer papered over the error"
	causeUnknown      = "unknown: there is no other run to compare with"
)

// symptoms looks for each in the order of the table.
func (c *comparison) symptoms() (list []symptom) {
	for _, look := range []func() *symptom{c.inventedNames, c.rejectedArguments, c.strayResults, c.greenSummary} {
		if s := look(); s != nil {
			list = append(list, *s)
		}
	}
	return list
}

// hashes compares the names, and the schemas of these tools.
func (c *comparison) hashes(tools ...string) string {
	if c.other == nil {
		return "unknown"
	}
	if len(tools) == 0 {
		if c.drifted() {
			return "differ"
		}
		return "match"
	}
	for _, tool := range tools {
		if c.run.frozen.schemas[tool] != c.other.frozen.schemas[tool] {
			return "differ"
		}
	}
	return "match"
}

// drifted tells whether the two runs cannot be compared: their names or their schemas differ.
func (c *comparison) drifted() bool {
	return slices.ContainsFunc(c.changes, func(x catalog.Change) bool { return x.Kind != catalog.ChangeDefinition })
}

func (c *comparison) cause(hashes, differ, match string) string {
	switch hashes {
	case "differ":
		return differ
	case "match":
		return match
	}
	return causeUnknown
}

// inventedNames are names that were called and are not in the catalog, those that the client refused among them.
func (c *comparison) inventedNames() *symptom {
	s := &symptom{Symptom: "invented name"}
	for _, row := range c.run.rows {
		if row.Outcome == ledger.OutcomeUnknownTool {
			s.add(row.ToolName.String(), row.ToolCallID.String())
		}
	}
	for _, item := range c.run.pairing {
		if item.Kind == pairing.Invented && item.Row() == nil {
			s.add(item.Tool, item.CallID)
		}
	}
	if len(s.Tools) == 0 {
		return nil
	}
	s.Hashes = "unknown"
	s.Checked = fmt.Sprintf("%s not in catalog_names", strings.Join(s.Tools, ", "))
	if c.other != nil {
		s.Hashes = map[bool]string{true: "match", false: "differ"}[c.run.header.CatalogSHA256 == c.other.header.CatalogSHA256]
		has := slices.DeleteFunc(slices.Clone(s.Tools), func(name string) bool { return !slices.Contains(c.other.header.CatalogNames, name) })
		switch {
		case len(has) > 0:
			s.Checked += fmt.Sprintf("; the catalog of the other run has %s", strings.Join(has, ", "))
		case s.Hashes == "differ":
			s.Checked += "; the catalog of the other run, which is another, does not have it either: the model may have invented it as well"
		}
	}
	s.Cause = c.cause(s.Hashes, causeWrongCatalog, causeInvented)
	return s
}

// rejectedArguments are calls of tools of the catalog that were refused for their arguments.
func (c *comparison) rejectedArguments() *symptom {
	s := &symptom{Symptom: "same name, rejected arguments"}
	for _, row := range c.run.rows {
		if row.Known && row.Outcome == ledger.OutcomeInvalidArguments {
			s.add(row.ToolName.String(), row.ToolCallID.String())
		}
	}
	if len(s.Tools) == 0 {
		return nil
	}
	s.Hashes = c.hashes(s.Tools...)
	s.Checked = "schema_sha256 of " + strings.Join(s.Tools, ", ")
	s.Cause = c.cause(s.Hashes, causeDrift, causeArguments)
	for _, change := range c.changes {
		if !slices.Contains(s.Tools, change.Tool) {
			continue
		}
		for _, f := range change.Fields {
			s.Fields = append(s.Fields, field{change.Tool + "." + f.Key, f.From, f.To})
		}
	}
	return s
}

// strayResults are results whose call was never issued, in the trace or in the transcript.
func (c *comparison) strayResults() *symptom {
	s := &symptom{Symptom: "result without a call", CallIDs: slices.Clone(c.run.strays)}
	for _, item := range c.run.pairing {
		if item.Kind == pairing.IDMismatch {
			s.CallIDs = append(s.CallIDs, item.CallID)
		}
	}
	if len(s.CallIDs) == 0 {
		return nil
	}
	s.Hashes = c.hashes()
	s.Checked = "the index of tool_call_id"
	s.Cause = c.cause(s.Hashes, causeMixed, causePairing)
	return s
}

// greenSummary is a final message that claims what the rows do not say, after a call that failed or was refused.
func (c *comparison) greenSummary() *symptom {
	s := &symptom{Symptom: "green summary after a failed tool"}
	for _, row := range c.run.rows {
		if row.Status != ledger.StatusSuccess {
			s.add(row.ToolName.String(), row.ToolCallID.String())
		}
	}
	for _, item := range c.run.pairing {
		if item.Kind == pairing.Invented && item.Row() == nil {
			s.add(item.Tool, item.CallID)
		}
	}
	var said []string
	for _, claim := range c.run.claims {
		if claim.Mark != claims.Supported {
			said = append(said, fmt.Sprintf("%q (%s)", claim.Sentence, claim.Mark))
		}
	}
	if len(s.Tools) == 0 || len(said) == 0 {
		return nil
	}
	s.Hashes = c.hashes()
	s.Checked = "the final message says " + strings.Join(said, ", ")
	if c.run.ended && len(c.run.unused) > 0 {
		s.Checked += "; never called: " + strings.Join(c.run.unused, ", ")
	}
	s.Cause = c.cause(s.Hashes, causeRecovery, causePapered)
	return s
}

func (s *symptom) add(tool, call string) {
	if !slices.Contains(s.Tools, tool) {
		s.Tools = append(s.Tools, tool)
	}
	s.CallIDs = append(s.CallIDs, call)
}

// printDiagnosis prints drift first, then the symptoms.
func (a *app) printDiagnosis(c *comparison, found []symptom) error {
	if a.flags.json {
		return a.printDiagnosisJSON(c, found)
	}
	other := "no other run"
	if c.other != nil {
		other = "run " + c.other.id + " of " + c.other.header.StartedAt
	}
	if len(c.changes) > 0 {
		if _, err := a.stdout.Write([]byte(changesText(c.changes))); err != nil {
			return err
		}
	}
	if err := a.say("run %s of %s, against %s", c.run.id, c.run.header.StartedAt, other); err != nil {
		return err
	}
	t := &table{columns: []column{{}, {gives: true}}}
	for _, s := range found {
		t.add(cell{"symptom", bold}, cell{s.Symptom, red})
		if len(s.Tools) > 0 {
			t.text("  tools", strings.Join(s.Tools, ", "))
		}
		t.text("  calls", strings.Join(s.CallIDs, ", "))
		t.text("  checked", s.Checked)
		t.text("  hashes", s.Hashes)
		t.add(cell{text: "  likely"}, cell{s.Cause, yellow})
		for _, f := range s.Fields {
			t.text("  changed", f.Key+": "+orNothing(f.From)+" -> "+orNothing(f.To))
		}
	}
	if err := t.print(a.stdout, a.screen()); err != nil {
		return err
	}
	if len(found) == 0 {
		if err := a.say("no symptom: every name is in the catalog, no arguments were refused, every result has its call"); err != nil {
			return err
		}
	}
	if !c.run.story {
		return a.say("not checked: what the agent claimed at the end, for no transcript was found (--transcript names one)")
	}
	return nil
}

func (a *app) printDiagnosisJSON(c *comparison, found []symptom) error {
	type headLine struct {
		Type       string `json:"type"`
		Run        string `json:"run_id"`
		Against    string `json:"against"`
		Comparable bool   `json:"comparable"`
		Transcript bool   `json:"transcript"`
	}
	head := headLine{"diagnosis", c.run.id, "", c.other != nil && !c.drifted(), c.run.story}
	if c.other != nil {
		head.Against = c.other.id
	}
	if err := printJSON(a.stdout, head); err != nil {
		return err
	}
	for _, x := range c.changes {
		if err := printJSON(a.stdout, struct {
			Type string `json:"type"`
			change
		}{"drift", changeLine(x)}); err != nil {
			return err
		}
	}
	for _, s := range found {
		s.Tools, s.CallIDs, s.Fields = append([]string{}, s.Tools...), append([]string{}, s.CallIDs...), append([]field{}, s.Fields...)
		if err := printJSON(a.stdout, struct {
			Type string `json:"type"`
			symptom
		}{"symptom", s}); err != nil {
			return err
		}
	}
	return nil
}
