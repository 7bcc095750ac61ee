package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"toolrun/archive/internal/breakpoint"
)

func claim(t testing.TB, l *Ledger, id string) bool {
	t.Helper()
	fresh, err := l.Claim(id)
	if err != nil {
		t.Fatal(err)
	}
	return fresh
}

func TestClientsIDIsFreshOnce(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir, nil), open(t, dir, nil)
	if !claim(t, a, "toolu_1") || claim(t, a, "toolu_1") || claim(t, b, "toolu_1") || !claim(t, b, "toolu_2") || claim(t, a, "toolu_2") {
		t.Error("an id was free twice, or not at all")
	}
	a.Close()
	if claim(t, open(t, dir, nil), "toolu_2") {
		t.Error("an id of an earlier process was free")
	}
}

func TestFormsThatToolrunMakesAreNeverFresh(t *testing.T) {
	l := open(t, t.TempDir(), nil)
	for _, id := range []string{"3f2a9c10-1", "3f2a9c10-999999", "x#2", "x!1", "x@3f2a9c10", "toolu_1#2", "#3"} {
		if claim(t, l, id) {
			t.Errorf("%q was free", id)
		}
	}
	for _, id := range []string{"3f2a9c10", "3f2a9c1-1", "3F2A9C10-1", "x#", "x@3f2a9c1", "a@b", "call-1"} {
		if !claim(t, l, id) {
			t.Errorf("%q was not free", id)
		}
	}
}

func TestRunsShareNoFirstDigits(t *testing.T) {
	l := open(t, t.TempDir(), nil)
	for id, want := range map[string]bool{"3f2a9c10-aaaa": true, "4f2a9c10-aaaa": true} {
		if fresh, err := l.ClaimRun(id); err != nil || fresh != want {
			t.Errorf("%s: %v, %v", id, fresh, err)
		}
	}
	if fresh, err := l.ClaimRun("3f2a9c10-bbbb"); err != nil || fresh {
		t.Error("two runs have the same first digits", err)
	}
}

func TestTableOfIDsIsMadeAgainFromWhatIsThere(t *testing.T) {
	run := "3f2a9c10-0000-4000-8000-000000000000"
	for name, spoil := range map[string]func(path string) error{
		"missing": os.Remove,
		"empty":   func(path string) error { return os.Truncate(path, 0) },
		"cut":     func(path string) error { return os.Truncate(path, 5000) },
		"magic":   func(path string) error { return os.WriteFile(path, make([]byte, idsHeader+8*idsMinSlots), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := open(t, dir, nil)
			add(t, l, "in_the_ledger")
			if err := os.Mkdir(filepath.Join(dir, RunsName), 0o700); err != nil {
				t.Fatal(err)
			}
			trace := `{"type":"tool_call","run_id":"x","tool_call_id":"in_a_trace"}` + "\nnot JSON \"tool_call\"\n" + `{"type":"session","session_id":"tool_call"}` + "\n"
			if err := os.WriteFile(filepath.Join(dir, RunsName, run+".jsonl"), []byte(trace), 0o600); err != nil {
				t.Fatal(err)
			}
			claim(t, l, "only_in_the_table")
			if err := spoil(filepath.Join(dir, IDsName)); err != nil {
				t.Fatal(err)
			}
			l = open(t, dir, nil)
			if claim(t, l, "in_the_ledger") || claim(t, l, "in_a_trace") || !claim(t, l, "new") {
				t.Error("the table does not hold what is on the record")
			}
			if fresh, err := l.ClaimRun(run); err != nil || fresh {
				t.Error("the run's digits were free", err)
			}
		})
	}
}

func TestTableGrowsUnderAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir, nil), open(t, dir, nil)
	const n = idsMinSlots * 3
	for i := range n {
		l := a
		if i%3 == 0 {
			l = b
		}
		if !claim(t, l, fmt.Sprint("call_", i)) {
			t.Fatalf("id %d was not free", i)
		}
	}
	for i := range n {
		if claim(t, b, fmt.Sprint("call_", i)) {
			t.Fatalf("id %d was free again", i)
		}
	}
}

func TestFullDiskClaimsNothing(t *testing.T) {
	for _, prepared := range []bool{false, true} {
		for n := 1; ; n++ {
			dir := t.TempDir()
			l := open(t, dir, nil)
			if prepared {
				claim(t, l, "first")
			}
			undo := breakpoint.At(n, breakpoint.NoSpace, true)
			fresh, err := l.Claim("x")
			if undo() < n {
				break
			}
			if fresh || !errors.Is(err, ErrUnavailable) {
				t.Errorf("step %d: %v, %v", n, fresh, err)
			}
			if _, err := l.Claim("y"); err != nil {
				t.Errorf("step %d: space came back: %v", n, err)
			}
		}
	}
}

func TestProcessesNeverGetTheSameID(t *testing.T) {
	dir := t.TempDir()
	outs := make([]bytes.Buffer, 4)
	var wg sync.WaitGroup
	for i := range outs {
		wg.Go(func() {
			cmd := child(t, dir, "claim")
			cmd.Stdout = &outs[i]
			if err := cmd.Run(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	all := map[string]int{}
	for i := range outs {
		for _, id := range strings.Fields(outs[i].String()) {
			all[id]++
		}
	}
	for id, n := range all {
		if n != 1 {
			t.Errorf("id %s was free %d times", id, n)
		}
	}
	if len(all) != 400 {
		t.Errorf("%d ids were free", len(all))
	}
}

func BenchmarkClaim(b *testing.B) {
	l := open(b, b.TempDir(), nil)
	for i := 0; b.Loop(); i++ {
		claim(b, l, fmt.Sprint(i))
	}
}
