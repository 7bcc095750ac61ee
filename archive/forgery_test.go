package archive_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"toolrun/archive"
	"toolrun/archive/audit"
)

// forger works on a data directory of three runs of 8 calls each. He may write every file of it, and knows toolrun well.
type forger struct {
	t     *testing.T
	dir   string
	older string   // a copy from before the last run
	runs  []string // ids
	kept  string   // a copy of the checkpoints, out of his reach
	line  string   // the last one, from the log of a run
}

func newForger(t *testing.T) *forger {
	at := t.TempDir()
	f := &forger{t: t, dir: filepath.Join(at, "data"), older: filepath.Join(at, "older")}
	d := open(t, f.dir)
	for i := range 3 {
		if i == 2 {
			f.copy(f.dir, f.older)
		}
		run := begin(t, d)
		for n := range 8 {
			doCall(t, d, run, fmt.Sprintf("%s-%d", run.ID()[:8], n+1))
		}
		if err := d.End(run, nil); err != nil {
			t.Fatal(err)
		}
		f.runs = append(f.runs, run.ID())
	}
	f.kept, f.line = f.read("checkpoints"), "toolrun: "+d.Newest().OneLine()
	d.Close()
	return f
}

func (f *forger) copy(from, to string) {
	f.t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		f.t.Fatalf("%v: %s", err, out)
	}
}

func (f *forger) path(name string) string { return filepath.Join(f.dir, name) }
func (f *forger) trace(run int) string    { return "runs/" + f.runs[run] + ".jsonl" }
func (f *forger) id(run, n int) string    { return fmt.Sprintf("%s-%d", f.runs[run][:8], n) }

func (f *forger) read(name string) string {
	f.t.Helper()
	b, err := os.ReadFile(f.path(name))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(b)
}

func (f *forger) write(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(f.path(name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// edit changes the lines of a file.
func (f *forger) edit(name string, change func(lines []string) []string) {
	f.t.Helper()
	lines := strings.SplitAfter(f.read(name), "\n")
	f.write(name, strings.Join(change(lines[:len(lines)-1]), ""))
}

// replace changes the one line of a file that holds all of marks.
func (f *forger) replace(name, old, new string, marks ...string) {
	f.t.Helper()
	n := 0
	f.edit(name, func(lines []string) []string {
		for i, line := range lines {
			if !slices.ContainsFunc(append(marks, old), func(m string) bool { return !strings.Contains(line, m) }) {
				lines[i] = strings.Replace(line, old, new, 1)
				n++
			}
		}
		return lines
	})
	if n != 1 {
		f.t.Fatalf("%d lines of %s hold %q and %q", n, name, old, marks)
	}
}

// exitCode makes a call succeed that failed, or the other way, in its row and in its trace.
func (f *forger) exitCode(run, n int) {
	id := `"tool_call_id":"` + f.id(run, n) + `"`
	f.replace("ledger.jsonl", `"outcome":"ok","exit_code":0`, `"outcome":"exit","exit_code":1`, id)
	f.replace("ledger.jsonl", `"status":"success"`, `"status":"error"`, id)
	f.replace("ledger.jsonl", `"error_type":null`, `"error_type":"ExitError"`, id)
	f.replace(f.trace(run), `"exit_code":0`, `"exit_code":1`, id, `"type":"tool_result"`)
}

// remove takes a call out of the ledger and its trace, with its objects, and numbers the rows behind it anew.
func (f *forger) remove(run, n int) {
	id := `"` + f.id(run, n) + `"`
	for _, name := range []string{"ledger.jsonl", f.trace(run)} {
		f.edit(name, func(lines []string) []string {
			return slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, id) })
		})
	}
	for _, text := range []string{`{"text":"` + f.id(run, n) + `"}`, "output of " + f.id(run, n)} {
		sum := sha256.Sum256([]byte(text))
		h := hex.EncodeToString(sum[:])
		if err := os.Remove(f.path("store/" + h[:2] + "/" + h + ".txt")); err != nil {
			f.t.Fatal(err)
		}
	}
	f.number()
}

func (f *forger) number() {
	f.edit("ledger.jsonl", func(lines []string) []string {
		for i, line := range lines {
			head, rest, _ := strings.Cut(line, `,"seq":`)
			_, rest, _ = strings.Cut(rest, ",")
			lines[i] = fmt.Sprintf(`%s,"seq":%d,%s`, head, i, rest)
		}
		return lines
	})
}

// cut takes the last n calls out, and the runs of which nothing is left.
func (f *forger) cut(n int) {
	for i := 24; i > 24-n; i-- {
		f.remove((i-1)/8, (i-1)%8+1)
	}
	for run := range f.runs {
		if 24-n <= run*8 {
			os.Remove(f.path(f.trace(run)))
		}
	}
}

// hashes makes the hashes of the tree fit the ledger, which needs no key.
func (f *forger) hashes() {
	f.t.Helper()
	text := f.read("ledger.jsonl")
	other := filepath.Join(f.t.TempDir(), "other")
	d := open(f.t, other)
	if err := os.WriteFile(filepath.Join(other, "ledger.jsonl"), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if _, err := d.Checkpoint(); err != nil {
		f.t.Fatal(err)
	}
	d.Close()
	b, err := os.ReadFile(filepath.Join(other, "hashes"))
	if err != nil {
		f.t.Fatal(err)
	}
	f.write("hashes", string(b))
}

// sign signs the directory as it is with the key that lies in it, as if it had never been signed.
func (f *forger) sign() {
	f.t.Helper()
	for _, name := range []string{"checkpoints", "checkpoint.pub", "hashes"} {
		if err := os.Remove(f.path(name)); err != nil {
			f.t.Fatal(err)
		}
	}
	d := open(f.t, f.dir)
	if _, err := d.Checkpoint(); err != nil {
		f.t.Fatal(err)
	}
	d.Close()
}

// notes are those of the file of checkpoints: one of no rows, and a seal and a checkpoint of each run.
func (f *forger) notes() []string {
	return regexp.MustCompile(`(?s).+?\n— [^\n]+\n\n`).FindAllString(f.read("checkpoints"), -1)
}

func (f *forger) cutCheckpoints(keep int) { f.write("checkpoints", strings.Join(f.notes()[:keep], "")) }

// found are the kinds of what verify finds, and where, without the traces' and with the calls' number only.
func (f *forger) found(kept string) string {
	f.t.Helper()
	r := find(f.t, f.dir, kept)
	var list []string
	for _, x := range r.Findings {
		place, _, _ := strings.Cut(x.File, "/")
		place, _, _ = strings.Cut(place, ".jsonl")
		text := x.Kind + " " + place
		if x.Line > 0 && place == "ledger" {
			text += fmt.Sprint(":", x.Line)
		}
		list = append(list, text)
	}
	return strings.Join(slices.Compact(list), ", ")
}

// Each is something that a clever person would try. here is what verify finds with nothing but the directory; kept, what it
// finds with the last checkpoint that was kept elsewhere, where only that shows it.
func TestForgeriesAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		forge      func(*forger)
		here, kept string
	}{
		"nothing": {func(f *forger) {}, "", ""},

		"an exit code changed":                {func(f *forger) { f.exitCode(1, 3) }, "ROW_EDITED ledger:11, RUN_EDITED runs", ""},
		"… and the hashes made to fit":        {func(f *forger) { f.exitCode(1, 3); f.hashes() }, "LEDGER_CHANGED ledger:9, RUN_EDITED runs", ""},
		"… and all signed anew with the key":  {func(f *forger) { f.exitCode(1, 3); f.sign() }, "", "CHECKPOINT_MISSING kept, LEDGER_CHANGED ledger:9, RUN_EDITED"},
		"a row removed with all that it left": {func(f *forger) { f.remove(1, 3) }, "ROW_EDITED ledger:11, ROW_EDITED ledger:12, ROW_EDITED ledger:13, ROW_EDITED ledger:14, ROW_EDITED ledger:15, ROW_EDITED ledger:16, ROW_EDITED ledger:17, ROW_EDITED ledger:18, ROW_EDITED ledger:19, ROW_EDITED ledger:20, ROW_EDITED ledger:21, ROW_EDITED ledger:22, ROW_EDITED ledger:23, LEDGER_CUT ledger:24, RUN_EDITED runs", ""},
		"… and all signed anew":               {func(f *forger) { f.remove(1, 3); f.sign() }, "", "CHECKPOINT_MISSING kept, LEDGER_CUT ledger:24, LEDGER_CHANGED ledger:9"},
		"two rows swapped": {func(f *forger) {
			f.edit("ledger.jsonl", func(l []string) []string { l[10], l[11] = l[11], l[10]; return l })
			f.number()
		}, "ROW_EDITED ledger:11, ROW_EDITED ledger:12", ""},
		"two rows swapped, signed anew": {func(f *forger) {
			f.edit("ledger.jsonl", func(l []string) []string { l[10], l[11] = l[11], l[10]; return l })
			f.number()
			f.sign()
		}, "", "CHECKPOINT_MISSING kept, LEDGER_CHANGED ledger:9"},
		"the last row cut with its trace":          {func(f *forger) { f.cut(1) }, "LEDGER_CUT ledger:24, RUN_EDITED runs", ""},
		"the last 10 rows cut":                     {func(f *forger) { f.cut(10) }, "LEDGER_CUT ledger:15, RUN_EDITED runs, RUN_MISSING runs", ""},
		"all rows cut":                             {func(f *forger) { f.cut(24) }, "LEDGER_CUT ledger:1, RUN_MISSING runs", ""},
		"all rows cut, and the hashes":             {func(f *forger) { f.cut(24); os.Remove(f.path("hashes")) }, "LEDGER_CUT ledger:1, RUN_MISSING runs", ""},
		"the ledger deleted":                       {func(f *forger) { os.Remove(f.path("ledger.jsonl")) }, "NO_ROW runs, LEDGER_CUT ledger:1", ""},
		"the last row cut, signed anew":            {func(f *forger) { f.cut(1); f.sign() }, "", "CHECKPOINT_MISSING kept, LEDGER_CUT ledger:24"},
		"the last 10 rows cut, signed anew":        {func(f *forger) { f.cut(10); f.sign() }, "", "CHECKPOINT_MISSING kept, LEDGER_CUT ledger:15"},
		"all rows cut, signed anew":                {func(f *forger) { f.cut(24); f.sign() }, "", "CHECKPOINT_MISSING kept, LEDGER_CUT ledger:1"},
		"the checkpoints cut back with the ledger": {func(f *forger) { f.cut(8); f.hashes(); f.cutCheckpoints(5) }, "", "CHECKPOINT_MISSING kept, LEDGER_CUT ledger:17"},
		"an older copy of all put in its place":    {func(f *forger) { os.RemoveAll(f.dir); f.copy(f.older, f.dir) }, "", "CHECKPOINT_MISSING kept, LEDGER_CUT ledger:17"},
		"only the checkpoints cut back":            {func(f *forger) { f.cutCheckpoints(5) }, "NOT_COVERED ledger:17, RUN_UNSEALED runs", ""},
		"the checkpoints deleted":                  {func(f *forger) { os.Remove(f.path("checkpoints")) }, "NO_CHECKPOINT ledger:1, NO_CHECKPOINT ledger:9, NO_CHECKPOINT ledger:17, RUN_UNSEALED runs", ""},
		"checkpoints and keys deleted": {func(f *forger) {
			os.Remove(f.path("checkpoints"))
			os.Remove(f.path("checkpoint.pub"))
			os.Remove(f.path("checkpoint.key"))
		}, "NO_CHECKPOINT ledger:1, NO_CHECKPOINT ledger:9, NO_CHECKPOINT ledger:17", ""},
		"the public key deleted":                     {func(f *forger) { os.Remove(f.path("checkpoint.pub")) }, "KEY_BAD checkpoint.pub", ""},
		"a key of his own, and all signed with that": {func(f *forger) { f.exitCode(1, 3); os.Remove(f.path("checkpoint.key")); f.sign() }, "", "CHECKPOINT_BAD kept"},
		"a checkpoint by another key": {func(f *forger) {
			other := newForger(f.t)
			f.write("checkpoints", f.read("checkpoints")+other.read("checkpoints"))
		}, "CHECKPOINT_BAD checkpoints", ""},
		"a checkpoint made up": {func(f *forger) {
			f.write("checkpoints", f.read("checkpoints")+strings.Replace(f.kept[strings.LastIndex(f.kept, "\ntoolrun/")+1:], "\n24\n", "\n25\n", 1))
		}, "CHECKPOINT_BAD checkpoints", ""},
		"an older checkpoint put last": {func(f *forger) {
			f.write("checkpoints", f.read("checkpoints")+f.notes()[2])
		}, "CHECKPOINT_BAD checkpoints", ""},
		"a row added by hand": {func(f *forger) {
			f.edit("ledger.jsonl", func(l []string) []string {
				return append(l, strings.Replace(l[23], `"`+f.id(2, 8)+`"`, `"made-up"`, 1))
			})
			f.number()
			f.edit(f.trace(2), func(l []string) []string {
				return append(l, strings.Replace(l[len(l)-3], `"`+f.id(2, 8)+`"`, `"made-up"`, 1), strings.Replace(l[len(l)-2], `"`+f.id(2, 8)+`"`, `"made-up"`, 1))
			})
		}, "NOT_COVERED ledger:25, RUN_EDITED runs, IDS_WRONG ids", ""},
		"a row added by hand between others": {func(f *forger) {
			f.edit("ledger.jsonl", func(l []string) []string {
				return slices.Insert(l, 5, strings.Replace(l[23], `"`+f.id(2, 8)+`"`, `"made-up"`, 1))
			})
		}, "SEQ_GAP", ""},
		"the file of a run: an exit code": {func(f *forger) {
			f.replace(f.trace(0), `"exit_code":0`, `"exit_code":1`, `"`+f.id(0, 2)+`"`)
		}, "ROW_DIFFERS runs, RUN_EDITED runs", ""},
		"the file of a run: arguments": {func(f *forger) {
			f.replace(f.trace(0), `"arguments":{"text":"`+f.id(0, 2)+`"}`, `"arguments":{"text":"harmless"}`, `"`+f.id(0, 2)+`"`, `"type":"tool_call"`)
		}, "ROW_DIFFERS runs, RUN_EDITED runs", ""},
		"the file of a run: arguments, sealed anew": {func(f *forger) {
			f.replace(f.trace(0), `"arguments":{"text":"`+f.id(0, 2)+`"}`, `"arguments":{"text":"harmless"}`, `"`+f.id(0, 2)+`"`, `"type":"tool_call"`)
			f.sign()
		}, "ROW_DIFFERS runs", ""},
		"the file of a run: its first line": {func(f *forger) { f.replace(f.trace(0), `"host":"here"`, `"host":"there"`) }, "RUN_EDITED runs", ""},
		"the file of a run: a line removed": {func(f *forger) {
			f.edit(f.trace(0), func(l []string) []string { return l[:len(l)-1] })
		}, "RUN_EDITED runs", ""},
		"the file of a run: deleted": {func(f *forger) { os.Remove(f.path(f.trace(0))) }, "RUN_MISSING runs", ""},
		"the file of a run: its first line, sealed anew": {func(f *forger) {
			f.replace(f.trace(0), `"host":"here"`, `"host":"there"`)
			f.sign()
		}, "", "CHECKPOINT_MISSING kept, RUN_EDITED runs"},
		"an object changed": {func(f *forger) {
			sum := sha256.Sum256([]byte("output of " + f.id(1, 1)))
			h := hex.EncodeToString(sum[:])
			f.write("store/"+h[:2]+"/"+h+".txt", "output of another")
		}, "OBJECT_CORRUPT store", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newForger(t)
			c.forge(f)
			here := f.found("")
			if !strings.HasPrefix(here, c.here) || (c.here == "") != (here == "") {
				t.Errorf("by itself it finds  %s\nwant %s", here, c.here)
			}
			with := f.found(f.kept)
			switch {
			case c.kept != "" && !strings.HasPrefix(with, c.kept):
				t.Errorf("with checkpoints that were kept it finds  %s\nwant %s", with, c.kept)
			case c.kept == "" && (with == "") != (here == ""):
				t.Errorf("with checkpoints that were kept it finds  %s\nwithout %s", with, here)
			}
			// One line of a log is as good as a copy of all, but for what only a seal shows.
			if line := f.found(f.line); (line == "") != (with == "") && !strings.Contains(with, "RUN_EDITED") {
				t.Errorf("with the line of a log it finds  %s\nand with a copy  %s", line, with)
			}
		})
	}
}

// A public key that is there and not good is not told to be missing too.
func TestABadPublicKeyIsNamedOnce(t *testing.T) {
	f := newForger(t)
	f.write("checkpoint.pub", strings.Replace(f.read("checkpoint.pub"), "toolrun/", "toolrum/", 1))
	found := find(t, f.dir, "").Findings
	if len(found) != 1 || found[0].Kind != audit.KeyBad || strings.Contains(found[0].Text, "missing") {
		t.Errorf("%+v", found)
	}
}

// Whatever was forged, the next run does not sign over it: it says so and signs nothing.
func TestNothingIsSignedOverAForgery(t *testing.T) {
	for name, forge := range map[string]func(*forger){
		"a cut":              func(f *forger) { f.cut(10) },
		"a cut to nothing":   func(f *forger) { f.cut(24); os.Remove(f.path("hashes")) },
		"an edit":            func(f *forger) { f.exitCode(2, 8) },
		"an edit and hashes": func(f *forger) { f.exitCode(1, 3); f.hashes() },
		"no checkpoints":     func(f *forger) { os.Remove(f.path("checkpoints")) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newForger(t)
			forge(f)
			d := open(t, f.dir)
			run := begin(t, d)
			doCall(t, d, run, run.ID()[:8]+"-1")
			if err := d.End(run, nil); err == nil || !strings.Contains(err.Error(), archive.ErrContradiction.Error()) {
				t.Errorf("ended with %v", err)
			}
			if d.Newest() != nil {
				t.Error("something was signed")
			}
			noMarkers(t, f.dir)
			if f.found("") == "" {
				t.Error("nothing is found")
			}
		})
	}
}
