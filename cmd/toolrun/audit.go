package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"toolrun/archive"
	"toolrun/archive/claims"
	"toolrun/archive/ledger"
	"toolrun/archive/pairing"
	"toolrun/archive/query"
	"toolrun/archive/transcript"
)

func (a *app) auditCmd() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "audit [TRANSCRIPT...]",
		Short: "Hold an agent's transcript against the ledger: what it tells that did not happen, and what it does not tell.",
		Long: "Hold an agent's transcript against the ledger. Each call in it is paired with its row, and its result with what is\n" +
			"stored; told are calls without a row, results that are others, tools that do not exist, work done outside of toolrun, and\n" +
			"rows that the transcript does not have. What the final message claims is listed beside the rows that would have to say so.\n" +
			"Model, tokens, cost and turn go into joins.jsonl, for rows that have none. Without a TRANSCRIPT, that of --session, or of\n" +
			"the session that called last, is looked for where its agent keeps it. Known forms: Claude Code, Codex, Gemini CLI, OpenCode,\n" +
			"Qwen Code, and messages of the OpenAI and the Anthropic API. Status 3 where something is found.",
		Example:     "  toolrun audit\n  toolrun audit ~/.claude/projects/-home-me-app/0570aa78-8ef2-4656-9ba6-566e036ba4f9.jsonl",
		Annotations: exitsAlso(statusFound, statusData),
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			seen := damageSeen{a: a}
			list, err := a.audits(d, args, &seen)
			if err != nil {
				return err
			}
			findings := 0
			for _, one := range list {
				joined, err := a.joinRows(d, one)
				if err != nil {
					a.warn("what the transcript tells of rows cannot be kept: %v", err)
				}
				if err := a.printAudit(one, all, joined); err != nil {
					return err
				}
				findings += one.findings()
			}
			if findings > 0 {
				err = told(fmt.Errorf("%s: %w", count(findings, "finding"), errFound))
			}
			return errors.Join(err, seen.result())
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list every call, not only what was found")
	return cmd
}

// audited is one session: its transcripts, held against the record.
type audited struct {
	list   []*transcript.Transcript
	report *pairing.Report
	claims []claims.Claim
}

// findings is the number of what an honest session does not have.
func (x *audited) findings() int {
	n := x.report.Findings
	for _, c := range x.claims {
		if c.Mark != claims.Supported {
			n++
		}
	}
	return n
}

// audits reads the transcripts that are named, or those of the session, and pairs them.
func (a *app) audits(d *archive.Dir, paths []string, seen *damageSeen) ([]*audited, error) {
	session := a.flags.session
	if len(paths) > 0 {
		groups, err := a.readTranscripts(paths, seen)
		if err != nil {
			return nil, err
		}
		return a.pairAll(d, groups, session, seen)
	}
	if session == "" {
		last, err := lastSession(query.Rows(d, a.filter()), seen)
		if err != nil {
			return nil, err
		}
		if session = last; session == "" {
			return nil, fmt.Errorf("no calls in %s: name a transcript", d.Path())
		}
		seen.quiet = true
	}
	return a.auditSession(d, session, seen)
}

// auditSession finds the transcript of a session by its agent's own place.
func (a *app) auditSession(d *archive.Dir, session string, seen *damageSeen) ([]*audited, error) {
	rows, err := collect(query.Rows(d, query.Filter{Session: session}), seen)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, &foundError{fmt.Errorf("no calls of session %q in %s", session, d.Path())}
	}
	seen.quiet = true
	first, client := time.Time{}, ""
	for _, row := range rows {
		if at, err := time.Parse(time.RFC3339, row.StartedAt); err == nil && (first.IsZero() || at.Before(first)) {
			first = at
		}
		if row.Client != nil {
			client = row.Client.String()
		}
	}
	places := transcript.Places{Getenv: a.getenv}
	var best []*audited
	var unread error
	for _, path := range places.Find(transcript.FormatOf(client), session, first) {
		groups, err := a.readTranscripts([]string{path}, seen)
		if errors.Is(err, transcript.ErrFormat) {
			unread = err
			continue
		}
		if err != nil {
			return nil, err
		}
		list, err := a.pairAll(d, groups, session, seen)
		if err != nil {
			return nil, err
		}
		for _, one := range list {
			if one.pairedRows() > 0 || one.list[0].SessionID == session {
				best = append(best, one)
			}
		}
	}
	if len(best) == 0 && unread != nil {
		return nil, &foundError{fmt.Errorf("session %q: %w", session, unread)}
	}
	if len(best) == 0 {
		return nil, &foundError{fmt.Errorf("no transcript of session %q (client %q) where its agent keeps them: name the file", session, client)}
	}
	if len(best) > 1 { // of one session all files count together: what one lacks another has
		var groups [][]*transcript.Transcript
		var one []*transcript.Transcript
		for _, b := range best {
			one = append(one, b.list...)
		}
		return a.pairAll(d, append(groups, one), session, seen)
	}
	return best, nil
}

func (x *audited) pairedRows() (n int) {
	for _, item := range x.report.Items {
		if item.Call != nil {
			n += len(item.Rows)
		}
	}
	return n
}

// readTranscripts reads files, and puts those of one session together.
func (a *app) readTranscripts(paths []string, seen *damageSeen) (groups [][]*transcript.Transcript, err error) {
	byID := map[string]int{}
	for _, path := range paths {
		list, err := transcript.Read(path)
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			for _, damage := range t.Damaged {
				if err := seen.note(damage); err != nil {
					return nil, err
				}
			}
			key := t.Format + " " + t.SessionID
			if i, ok := byID[key]; ok && t.SessionID != "" {
				groups[i] = append(groups[i], t)
				continue
			}
			byID[key] = len(groups)
			groups = append(groups, []*transcript.Transcript{t})
		}
	}
	return groups, nil
}

// pairAll holds each session against the record.
func (a *app) pairAll(d *archive.Dir, groups [][]*transcript.Transcript, session string, seen *damageSeen) (list []*audited, err error) {
	rec := newRecord(d)
	rows, err := candidates(d, groups, session, seen)
	if err != nil {
		return nil, err
	}
	for _, group := range groups {
		one := &audited{list: group}
		one.report = pairing.Pair(group, pairing.Record{Rows: rows, Session: session, Catalog: rec.catalog, Content: rec.content})
		if last := group[len(group)-1]; last.Final != "" {
			one.claims = claims.Judge(last.Final, one.report.Rows, rec.names(one.report.Rows), rec.content)
		}
		list = append(list, one)
	}
	return list, nil
}

// candidates are the rows that may belong to the transcripts: of their sessions, with their ids, in their time; and all rows
// of the runs of these.
func candidates(d *archive.Dir, groups [][]*transcript.Transcript, session string, seen *damageSeen) ([]*ledger.Row, error) {
	ids, sessions := map[string]bool{}, map[string]bool{}
	var first, last time.Time
	for _, group := range groups {
		for _, t := range group {
			sessions[t.SessionID] = t.SessionID != ""
			for _, c := range t.Calls {
				ids[c.ID] = c.ID != ""
			}
		}
		from, to := pairing.Span(group)
		if first.IsZero() || from.Before(first) {
			first = from
		}
		if to.After(last) {
			last = to
		}
	}
	since, until := ledger.FormatTime(first), ledger.FormatTime(last)
	runs := map[string]bool{}
	for row, err := range query.Rows(d, query.Filter{Session: session}) {
		if err != nil {
			if err := seen.note(err); err != nil {
				return nil, err
			}
			continue
		}
		if session != "" || sessions[row.SessionID.String()] || ids[text(row.ClientCallID)] || !first.IsZero() && row.StartedAt >= since && row.StartedAt <= until {
			runs[row.RunID] = true
		}
	}
	again := damageSeen{a: seen.a, quiet: true}
	all, err := collect(query.Rows(d, query.Filter{Session: session}), &again)
	if err != nil {
		return nil, err
	}
	kept := all[:0]
	for _, row := range all {
		if runs[row.RunID] {
			kept = append(kept, row)
		}
	}
	return kept, nil
}
