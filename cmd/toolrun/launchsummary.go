package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"toolrun/archive"
	"toolrun/archive/ledger"
	"toolrun/archive/pairing"
	"toolrun/archive/query"
)

// serveEndWait is how long launch waits, after the agent's end, for the servers that it leaves: the rows of their last
// calls belong to the summary.
const serveEndWait = 3 * time.Second

// tellLaunch says on stderr what the agent is given, and what it keeps beside it.
func (a *app) tellLaunch(l *launching) {
	with := ""
	if l.session != "" {
		with = ", session " + l.session
	}
	a.warn("%s with %s of %s%s", l.title(), count(len(l.catalog.Names()), "tool"), l.catalog.Path(), with)
	for _, note := range l.notes {
		a.warn("%s", note)
	}
}

// launchSummary is what the runs of a launch did; its JSON is the line of launch --json.
type launchSummary struct {
	Agent    string   `json:"agent"`
	Exit     int      `json:"exit_status"`
	Seconds  float64  `json:"seconds"`
	Runs     []string `json:"run_ids"`
	Sessions []string `json:"session_ids"`
	Calls    int      `json:"calls"`
	Failures int      `json:"failures"`
	Refusals int      `json:"refusals"`
	CostUSD  *float64 `json:"estimated_cost_usd"`
	Priced   int      `json:"priced_calls"`

	Audited  bool           `json:"audited"`  // the agent's transcript was found, and held against the record
	Findings int            `json:"findings"` // of the audit
	Bypassed map[string]int `json:"bypassed"` // calls of tools that worked outside of toolrun, by name
}

// tellSummary says on stderr what the session did: stdout is the agent's.
func (a *app) tellSummary(l *launching, end ended, took time.Duration) error {
	s := launchSummary{Agent: l.title(), Exit: end.status(), Seconds: took.Seconds(), Runs: []string{}, Sessions: []string{}, Bypassed: map[string]int{}}
	entries, err := os.ReadDir(l.run.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if isRunID(e.Name()) {
			s.Runs = append(s.Runs, e.Name())
		}
	}
	if err := a.readRuns(&s, l.end); err != nil {
		return err
	}
	if a.flags.json {
		return printJSON(a.stderr, s)
	}
	for _, line := range s.lines(a, end, took) {
		a.warn("%s", line)
	}
	return nil
}

// readRuns counts the rows of the runs, which stand behind an end of the ledger, when their servers have ended.
func (a *app) readRuns(s *launchSummary, end int64) error {
	if len(s.Runs) == 0 {
		return nil
	}
	d, err := a.openForReading()
	if err != nil {
		return err
	}
	deadline := a.now().Add(serveEndWait)
	for slices.ContainsFunc(s.Runs, d.Live) && a.now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	if d.HasDead() {
		a.closeDead()
	}
	if err := s.read(d, end); err != nil {
		return err
	}
	for _, id := range s.Sessions {
		s.hold(a.joinSession(d, id))
	}
	return s.read(d, end) // with what the transcript told of the rows
}

// hold takes what the audit of a session found.
func (s *launchSummary) hold(list []*audited) {
	for _, one := range list {
		s.Audited = true
		s.Findings += one.findings()
		for _, item := range one.report.Items {
			if item.Kind == pairing.Bypassed {
				s.Bypassed[item.Tool]++
			}
		}
	}
}

// read counts the rows. Damaged lines are not of these runs, as far as anybody can say; every other command names them.
func (s *launchSummary) read(d *archive.Dir, end int64) error {
	var n tally
	var usd float64
	s.Priced = 0
	for row, err := range query.Joined(d, query.Behind(d, end)) {
		var damage *ledger.Damage
		if errors.As(err, &damage) {
			continue
		}
		if err != nil {
			return err
		}
		if !slices.Contains(s.Runs, row.RunID) {
			continue
		}
		n.add(row)
		if id := row.SessionID.String(); !slices.Contains(s.Sessions, id) {
			s.Sessions = append(s.Sessions, id)
		}
		if row.EstimatedCostUSD != nil {
			usd += *row.EstimatedCostUSD
			s.Priced++
		}
	}
	s.Calls, s.Failures, s.Refusals = n.calls, n.failures, n.refusals
	if s.Priced > 0 {
		s.CostUSD = &usd
	}
	return nil
}

// lines are the summary for people, most important first.
func (s *launchSummary) lines(a *app, end ended, took time.Duration) []string {
	first := fmt.Sprintf("%s %v after %s", s.Agent, end, duration(took))
	if len(s.Runs) == 0 {
		return []string{first + "; it started no toolrun server, so that nothing is on the record"}
	}
	n := tally{s.Calls, s.Failures, s.Refusals}
	first += ": " + n.String()
	if s.CostUSD != nil {
		first += fmt.Sprintf(", $%s for %s of known price", dollars([]*float64{s.CostUSD})[0], count(s.Priced, "call"))
	}
	lines := []string{first}
	if len(s.Bypassed) > 0 {
		var parts []string
		for _, tool := range slices.Sorted(maps.Keys(s.Bypassed)) {
			parts = append(parts, fmt.Sprintf("%s (%s)", tool, count(s.Bypassed[tool], "call")))
		}
		lines = append(lines, "bypassed toolrun, and is not on the record: "+strings.Join(parts, ", "))
	}
	for _, id := range s.Sessions {
		lines = append(lines, "more: "+a.sameRecord("toolrun session "+shellWord(id)))
		if s.Findings > 0 {
			lines = append(lines, fmt.Sprintf("%s in what it tells of itself: %s", count(s.Findings, "finding"), a.sameRecord("toolrun audit --session "+shellWord(id))))
		}
	}
	return lines
}

// shellWord is s as a word of a shell.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// isRunID tells the files that servers leave in the folder of a launch from the agent's configuration.
func isRunID(name string) bool { return len(name) == 36 && strings.Count(name, "-") == 4 }

// joinLaunch tells the launch that started this server, if one did, which run it is.
func (a *app) joinLaunch(runID string) {
	dir := a.getenv(launchVariable)
	if dir == "" {
		return
	}
	root, err := os.OpenRoot(dir)
	if err == nil {
		defer root.Close()
		var f *os.File
		if f, err = root.OpenFile(runID, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
			err = f.Close()
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a server may outlive its launch
		a.logger().Warn("the launch cannot be told of this run", "err", err)
	}
}
