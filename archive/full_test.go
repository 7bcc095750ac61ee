package archive_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"toolrun/archive"
	"toolrun/archive/internal/breakpoint"
)

// The disk is full from each step of a run on, for a while. What cannot be recorded does not start; what was started is
// on the record once space is back; nothing that was acknowledged is lost, and nothing is glued.
func TestDiskThatIsFullFromAnyStepOn(t *testing.T) {
	for _, mode := range []string{"checkpoint", "row"} {
		for _, how := range []string{breakpoint.NoSpace, breakpoint.Short} {
			steps := 0
			for n := 1; ; n++ {
				dir := filepath.Join(t.TempDir(), "data")
				durability(t, dir, mode)
				d := open(t, dir)
				undo := breakpoint.At(n, how, true)
				started := fullLife(t, d, undo)
				if err := d.Close(); err != nil {
					t.Fatal(err)
				}
				rows := rowsOf(t, dir)
				for _, id := range started {
					if rows[id] == nil {
						t.Errorf("call %s was started and is not on the record", id)
					}
					delete(rows, id)
				}
				for id, row := range rows { // announced, but not synced, and so not started
					if row.Outcome != "interrupted" {
						t.Errorf("call %s was not started, and ended as %s", id, row.Outcome)
					}
				}
				noMarkers(t, dir)
				verify(t, dir)
				if t.Failed() {
					t.Fatalf("%s, %s from step %d on", mode, how, n)
				}
				if len(started) == 3 {
					break // nothing failed before the space came back
				}
				steps++
			}
			if steps < 5 {
				t.Errorf("only %d steps were seen", steps)
			}
		}
	}
}

// fullLife makes two calls on the disk that may be full, and a third after space has come back, as the runner does: what
// of an ended call cannot be written is written later.
func fullLife(t *testing.T, d *archive.Dir, undo func() int) (started []string) {
	t.Helper()
	restored := false
	defer func() {
		if !restored {
			undo()
		}
	}()
	run, err := d.Begin(header())
	if err != nil {
		t.Fatal(err)
	}
	var owed []func() error
	for i := range 3 {
		if i == 2 {
			undo()
			restored = true
			for _, step := range owed {
				if err := step(); err != nil {
					t.Fatal(err)
				}
			}
			owed = nil
		}
		c, err := newCall(d, run, fmt.Sprintf("%s-%d", run.ID()[:8], i+1))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.start(); err != nil {
			if !errors.Is(err, archive.ErrUnavailable) {
				t.Error(err)
			}
			continue
		}
		started = append(started, c.row.ToolCallID.String())
		if err := c.capture(); err != nil && !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
		pay := func() error {
			if c.row.Seq < 0 {
				if err := c.commit(); err != nil && c.row.Seq < 0 {
					return err
				}
			}
			return c.result()
		}
		if err := pay(); err != nil {
			if !errors.Is(err, archive.ErrUnavailable) {
				t.Error(err)
			}
			owed = append(owed, pay)
		}
	}
	if err := d.End(run, nil); err != nil {
		t.Fatal(err)
	}
	return started
}

func TestRunThatBeginsOnAFullDiskBeginsLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	d := open(t, dir)
	undo := breakpoint.At(1, breakpoint.NoSpace, true)
	run := begin(t, d)
	c, err := newCall(d, run, run.ID()[:8]+"-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.start(); !errors.Is(err, archive.ErrUnavailable) {
		t.Errorf("a tool may start that is not on the record: %v", err)
	}
	if undo() == 0 {
		t.Error("no step failed")
	}
	// Meanwhile another process finds nothing that it could take for a dead run.
	if n, err := open(t, dir).Recover("other"); n != 0 || err != nil {
		t.Error(n, err)
	}
	if err := c.all(); err != nil {
		t.Fatal(err)
	}
	if err := d.End(run, nil); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(run.Path())
	if !strings.HasPrefix(string(text), `{"type":"catalog","run_id":"`+run.ID()) || strings.Count(string(text), "\n") != 4 {
		t.Errorf("%s", text)
	}
	verify(t, dir)
}
