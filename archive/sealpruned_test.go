package archive_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"toolrun/archive"
	"toolrun/archive/internal/breakpoint"
)

// An older ledger is put back whose rows have been pruned since. With their traces or objects they are rows again, which make
// a further part; alone they are taken out again. So it goes too where the sealing is killed at any step.
func TestPrunedRowsThatArePutBackAreSealedAgainOrTakenOut(t *testing.T) {
	p := twoMonths(t)
	older := p.copied(t)
	seal(t, p.dir)
	d := open(t, p.dir)
	list, err := d.Prunable(time.Now())
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	if err := d.Prune(list); err != nil {
		t.Fatal(err)
	}
	d.Close()
	left := []string{"hot_1", "hot_2"}
	whole(t, p.dir, left)
	for name, c := range map[string]struct {
		put  string
		ids  []string
		made string
	}{
		"the ledger alone":                {"cp ledger.jsonl", left, "[]"},
		"with traces and objects":         {"cp -r ledger.jsonl runs store", p.ids, "[2024-12, part 2 2025-01, part 2]"},
		"with objects":                    {"cp -r ledger.jsonl store", p.ids, "[2024-12, part 2 2025-01, part 2]"},
		"the whole backup over it":        {"cp -r .", p.ids, "[2024-12, part 2 2025-01, part 2]"},
		"the whole backup, with archives": {"rm -r %s/archive/2025-01; cp -r .", p.ids, "[2024-12, part 2 2025-01]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			put := func() *past {
				q := &past{t: t, dir: p.copied(t)}
				text := c.put + " " + q.dir
				if strings.Contains(c.put, "%s") {
					text = fmt.Sprintf(c.put, q.dir) + " " + q.dir
				}
				cmd := exec.Command("sh", "-c", text)
				cmd.Dir = older
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				return q
			}
			check := func(dir string) {
				t.Helper()
				once(t, dir, left...)
				whole(t, dir, c.ids)
				if err := archive.RepairDerived(dir, archive.Options{}); err != nil {
					t.Error(err)
				}
				whole(t, dir, c.ids)
			}
			q := put()
			made := []string{}
			for _, m := range seal(t, q.dir) {
				made = append(made, m.Ref().String())
			}
			if fmt.Sprint(made) != c.made {
				t.Errorf("made %v, not %s", made, c.made)
			}
			check(q.dir)
			for n := 3; ; n += 29 {
				q := put()
				out, err := child(t, q.dir, "seal", fmt.Sprintf("%d %s", n, breakpoint.After)).Output()
				if err == nil {
					break
				}
				if !killed(err) {
					t.Fatalf("%v\n%s", err, out)
				}
				seal(t, q.dir)
				if check(q.dir); t.Failed() {
					t.Fatalf("killed after step %d", n)
				}
			}
		})
	}
}
