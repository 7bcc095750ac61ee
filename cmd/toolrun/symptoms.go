package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
	Hashes  string   `json:"hashes"` // "match", "differ", or "unknown": nothing to compare with
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
	causeNoSuchTool   = "unknown: the other run has no such tool to compare with"
)

// symptoms looks for each in the order of the table.
func (c *comparison) symptoms() (list []symptom) {
	for _, look := range []func() []symptom{c.inventedNames, c.rejectedArguments, c.strayResults, c.greenSummary} {
		list = append(list, look()...)
	}
	return list
}

// hashes compares the names and the schemas of the two runs.
func (c *comparison) hashes() string {
	switch {
	case c.other == nil:
		return "unknown"
	case c.drifted():
		return "differ"
	}
	return "match"
}

// schemas compares those of one tool.
func (c *comparison) schemas(tool string) string {
	switch {
	case c.other == nil || !c.otherHas(tool):
		return "unknown"
	case c.run.frozen.schemas[tool] != c.other.frozen.schemas[tool]:
		return "differ"
	}
	return "match"
}

// otherHas tells whether the catalog of the other run has a tool of this name.
func (c *comparison) otherHas(tool string) bool {
	return c.other != nil && slices.Contains(c.other.header.CatalogNames, tool)
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

// inventedNames are names that were called and are not in the catalog, those that the client refused among them: first those
// that the other run's catalog has.
func (c *comparison) inventedNames() []symptom {
	s := kinds("invented name", 2)
	add := func(tool, call string) {
		if c.otherHas(tool) {
			s[0].add(tool, call)
		} else {
			s[1].add(tool, call)
		}
	}
	for _, row := range c.run.rows {
		if row.Outcome == ledger.OutcomeUnknownTool {
			add(row.ToolName.String(), row.ToolCallID.String())
		}
	}
	for _, item := range c.run.pairing {
		if item.Kind == pairing.Invented && item.Row() == nil {
			add(item.Tool, item.CallID)
		}
	}
	hashes := "unknown"
	if c.other != nil {
		hashes = map[bool]string{true: "match", false: "differ"}[c.run.header.CatalogSHA256 == c.other.header.CatalogSHA256]
	}
	for i := range s {
		s[i].Hashes = hashes
		s[i].Checked = fmt.Sprintf("%s not in catalog_names", strings.Join(s[i].Tools, ", "))
		switch {
		case i == 0:
			s[i].Checked += "; the catalog of the other run has " + strings.Join(s[i].Tools, ", ")
		case hashes == "differ":
			s[i].Checked += "; nor in those of the other run, whose catalog is another: the model may have invented it as well"
		}
		s[i].Cause = c.cause(hashes, causeWrongCatalog, causeInvented)
	}
	return present(s)
}

// rejectedArguments are calls of tools of the catalog that were refused for their arguments: those of another schema than in
// the other run, those of the same, and those that it does not have.
func (c *comparison) rejectedArguments() []symptom {
	verdicts := []string{"differ", "match", "unknown"}
	s := kinds("same name, rejected arguments", len(verdicts))
	for _, row := range c.run.rows {
		if row.Known && row.Outcome == ledger.OutcomeInvalidArguments {
			tool := row.ToolName.String()
			s[slices.Index(verdicts, c.schemas(tool))].add(tool, row.ToolCallID.String())
		}
	}
	for i := range s {
		s[i].Hashes = verdicts[i]
		s[i].Checked = "schema_sha256 of " + strings.Join(s[i].Tools, ", ")
		s[i].Cause = c.cause(s[i].Hashes, causeDrift, causeArguments)
		if s[i].Hashes == "unknown" && c.other != nil {
			s[i].Cause = causeNoSuchTool
		}
		for _, change := range c.changes {
			if !slices.Contains(s[i].Tools, change.Tool) {
				continue
			}
			for _, f := range change.Fields {
				s[i].Fields = append(s[i].Fields, field{change.Tool + "." + f.Key, f.From, f.To})
			}
		}
	}
	return present(s)
}

// strayResults are results whose call was never issued, in the trace or in the transcript: those of a call that the record has
// in another run, and those of none.
func (c *comparison) strayResults() []symptom {
	s := kinds("result without a call", 2)
	var runs []string
	for _, id := range c.run.strays {
		run := c.run.others[id]
		if run == "" {
			s[1].CallIDs = append(s[1].CallIDs, id)
			continue
		}
		s[0].CallIDs = append(s[0].CallIDs, id)
		if !slices.Contains(runs, run) {
			runs = append(runs, run)
		}
	}
	s[0].Hashes, s[1].Hashes = c.hashes(), c.hashes()
	s[0].Checked = "the index of tool_call_id: on the record in run " + strings.Join(runs, ", ")
	s[1].Checked = "the index of tool_call_id: not on the record of another run"
	s[0].Cause, s[1].Cause = causeMixed, c.cause(s[1].Hashes, causeMixed, causePairing)
	return present(s)
}

// greenSummary is a final message that claims what the rows do not say, after a call that failed or was refused.
func (c *comparison) greenSummary() []symptom {
	s := symptom{Symptom: "green summary after a failed tool"}
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
		if claim.Mark.Finding() {
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
	return []symptom{s}
}

// kinds are n symptoms of one name, each for calls of another cause.
func kinds(name string, n int) []symptom {
	list := make([]symptom, n)
	for i := range list {
		list[i].Symptom = name
	}
	return list
}

// present leaves those of which there are calls.
func present(list []symptom) []symptom {
	return slices.DeleteFunc(list, func(s symptom) bool { return len(s.CallIDs) == 0 })
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
	switch n := len(c.run.unread); {
	case n > 0:
		why := slices.Compact(slices.Sorted(maps.Values(c.run.unread)))
		if err := a.say("not judged whole: of %s the row %s", count(n, "call"), strings.Join(why, "; ")); err != nil {
			return err
		}
	case len(found) == 0:
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
		Unread     int    `json:"unread"` // calls whose rows were pruned, or are sealed and left out by --hot
		Comparable bool   `json:"comparable"`
		Transcript bool   `json:"transcript"`
	}
	head := headLine{"diagnosis", c.run.id, "", len(c.run.unread), c.other != nil && !c.drifted(), c.run.story}
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
