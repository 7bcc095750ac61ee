package archive

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
	"toolrun/archive/month"
)

// sealPlan is what is due, by month.
type sealPlan struct {
	ranges map[string][]ledger.Range
	runs   map[string][]month.Run
}

// isDue tells whether a month is sealed: it is over, and its last instant is older than keep.
func isDue(m string, now time.Time, keep time.Duration) bool {
	return m != "" && !month.End(m).Add(max(keep, 0)).After(now)
}

// readLines gives every line of ledger.jsonl a month: that of its started_at. A line that is no row goes with the row before
// it, or behind it where there is none before; one over the bound stays, and so does what no newline ends.
func (p *sealPlan) readLines(ctx context.Context, hot *ledger.Hot) error {
	for _, piece := range hot.Pieces() {
		if piece.Cut != nil {
			continue
		}
		last, waiting := "", []ledger.Range(nil)
		for raw, err := range jsonl.Lines(hot.Reader(piece, piece.Offset)) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
			if raw.Torn {
				break
			}
			r := ledger.Range{Line: piece.Line + int64(raw.No) - 1, Lines: 1, Offset: piece.Offset + raw.Offset, Bytes: raw.Length}
			if raw.Long {
				waiting = nil
				continue
			}
			m := month.Of(ledger.StartedAt(raw.Text))
			switch {
			case m == "" && last == "":
				waiting = append(waiting, r)
				continue
			case m == "":
				m = last
			}
			for _, before := range waiting {
				p.put(m, before)
			}
			waiting, last = nil, m
			p.put(m, r)
		}
	}
	return nil
}

// put gives lines to a month.
func (p *sealPlan) put(m string, r ledger.Range) {
	list := p.ranges[m]
	if n := len(list); n > 0 && list[n-1].Line+list[n-1].Lines == r.Line {
		list[n-1].Lines += r.Lines
		list[n-1].Bytes += r.Bytes
		return
	}
	p.ranges[m] = append(list, r)
}

// readRuns gives every trace of a run that has ended a month: that of the latest time in its lines.
func (p *sealPlan) readRuns(ctx context.Context, d *Dir) error {
	folder := filepath.Join(d.path, runsName)
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		id, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok || !isRunID(id) || d.Marked(id) {
			continue
		}
		run, end, err := readRun(id, filepath.Join(folder, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // of a run that died before its first line
		}
		if err != nil {
			return err
		}
		if m := month.Of(end); m != "" {
			p.runs[m] = append(p.runs[m], run)
		}
	}
	return nil
}

func readRun(id, path string) (run month.Run, end string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return run, "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return run, "", err
	}
	facts, err := month.ReadTrace(path, f)
	return month.Run{ID: id, Path: path, Bytes: info.Size(), Objects: facts.Objects, Defines: facts.Defines}, facts.End, err
}

// isRunID tells whether the name of a trace is one that can be sealed.
func isRunID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") == ""
}

// months are the months that have something due, sorted.
func (p *sealPlan) months(due func(string) bool) []string {
	set := map[string]bool{}
	for m := range p.ranges {
		set[m] = due(m)
	}
	for m := range p.runs {
		set[m] = due(m)
	}
	var list []string
	for m, ok := range set {
		if ok {
			list = append(list, m)
		}
	}
	slices.Sort(list)
	return list
}
