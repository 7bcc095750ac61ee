package archive_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toolrun/archive"
	"toolrun/archive/audit"
	"toolrun/archive/evidence"
	"toolrun/archive/ledger"
)

// The power fails before and after every step of a run, and of what was not synced all, nothing or a part is on the disk.
// With durability = "row" every acknowledged row and all that it names is there, and there is nothing to be found. With
// "checkpoint" so is everything that a checkpoint covers which the process told of, and what else was lost is named.
func TestPowerFailsAtAnyStep(t *testing.T) {
	seeds, stride := 2, 5 // and every step, of more seeds, in `make soak`
	if os.Getenv("TOOLRUN_SOAK") != "" {
		seeds, stride = 4, 1
	}
	for _, mode := range []string{"row", "checkpoint"} {
		for seed := range seeds {
			t.Run(fmt.Sprint(mode, " ", seed), func(t *testing.T) {
				t.Parallel()
				steps, lost := 0, 0
				for n := 1 + seed*2%stride; ; n += stride {
					at := t.TempDir()
					dir, image := filepath.Join(at, "data"), filepath.Join(at, "image")
					durability(t, dir, mode)
					cmd := child(t, dir, "covered", "")
					cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d %d %s", childPower, n, seed, image))
					out, err := cmd.Output()
					if err == nil {
						break // there are no more steps
					}
					if !killed(err) {
						t.Fatal(err)
					}
					steps++
					lost += afterPowerLoss(t, image, mode, string(out))
					if t.Failed() {
						t.Fatalf("power failed at step %d", n)
					}
				}
				t.Logf("%d steps, %d findings", steps, lost)
				if steps < 100/stride {
					t.Errorf("only %d steps were seen", steps)
				}
			})
		}
	}
}

// afterPowerLoss lets a next process do its work on what the disk held and returns how much verify then finds.
func afterPowerLoss(t *testing.T, dir, mode, told string) int {
	t.Helper()
	acknowledged, covered, checkpoint := map[string]bool{}, int64(0), ""
	for line := range strings.Lines(told) {
		line = strings.TrimSpace(line)
		if n, err := fmt.Sscanf(line, "covered %d", &covered); n == 1 && err == nil {
			checkpoint = line
		} else {
			acknowledged[line] = true
		}
	}
	d := open(t, dir)
	if _, err := d.Recover("next"); err != nil {
		t.Fatal(err)
	}
	run := begin(t, d)
	doCall(t, d, run, run.ID()[:8]+"-1")
	if err := d.End(run, nil); err != nil {
		t.Fatal(err)
	}
	d.Close()
	noMarkers(t, dir)

	r := find(t, dir, checkpoint)
	rows := map[string]*ledger.Row{}
	for row, err := range ledger.Rows(dir) {
		var damage *ledger.Damage
		if err != nil && !errors.As(err, &damage) {
			t.Fatal(err)
		}
		if row != nil {
			rows[row.ToolCallID.String()] = row
		}
	}
	named := map[string]bool{}
	for _, f := range r.Findings {
		for _, id := range f.CallIDs {
			named[id] = true
		}
		switch f.Kind {
		case audit.ObjectMissing, audit.ObjectEmpty, audit.ObjectCorrupt, audit.DamagedLine, audit.SeqGap, audit.NoRow, audit.NoCall, audit.RunMissing, audit.RunUnreadable:
		default:
			t.Errorf("%+v", f)
		}
		if mode == "row" || f.File == ledger.FileName && int64(f.Line) <= covered {
			t.Errorf("%+v", f)
		}
	}
	for id := range acknowledged {
		switch seq := rows[id]; {
		case mode == "row" && (seq == nil || seq.Outcome != "ok" || named[id]):
			t.Errorf("acknowledged row %s is %v", id, rows[id])
		case seq != nil && seq.Seq < covered && (seq.Outcome != "ok" || named[id]):
			t.Errorf("covered row %s is %v", id, rows[id])
		}
	}
	return len(r.Findings)
}

// find verifies the directory, with a checkpoint that was kept elsewhere.
func find(t *testing.T, dir, kept string) *audit.Report {
	t.Helper()
	d, err := archive.Open(dir, archive.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var o audit.Options
	for _, n := range evidence.FindNotes(kept) {
		o.Kept = append(o.Kept, audit.Kept{Note: n, File: "kept"})
	}
	if kept != "" && len(o.Kept) == 0 {
		t.Fatalf("nothing signed in %q", kept)
	}
	r, err := audit.Verify(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
