package tests

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A month that does not fit is not sealed, is said so, and leaves the calls that run meanwhile half of what is free. With
// room for it, it is.
func TestSealingLeavesSpaceToTheCallsThatRunMeanwhile(t *testing.T) {
	p := barePlace(t, "")
	p.damaged = true
	tinyData(t, p, "24m")
	h, random := newPast(p), rand.NewChaCha8([32]byte{})
	var calls []pastCall
	for i := range 14 {
		out := make([]byte, 512<<10)
		random.Read(out)
		calls = append(calls, pastCall{at: timeOf(t, "2025-01-01T00:00:00Z").AddDate(0, 0, i), id: fmt.Sprint("call_", i), out: hex.EncodeToString(out)})
	}
	h.run(calls...)
	p.query("sessions") // signs what the past left
	free := func() int64 {
		var st unix.Statfs_t
		if err := unix.Statfs(p.data, &st); err != nil {
			t.Error(err)
		}
		return int64(st.Bavail) * st.Bsize
	}
	before, least := free(), make(chan int64)
	ended := make(chan struct{})
	go func() {
		n, look := before, time.NewTicker(time.Millisecond)
		defer look.Stop()
		for {
			select {
			case <-ended:
				least <- n
				return
			case <-look.C:
				n = min(n, free())
			}
		}
	}()
	got := p.query("archive")
	close(ended)
	if n := <-least; n < before/2-256<<10 || n > before*3/4 {
		t.Errorf("of %d bytes that were free %d were left", before, n)
	}
	said := regexp.MustCompile(`not enough free space on the file system of "` + regexp.QuoteMeta(filepath.Join(p.data, "archive")) + `.*": \d+\.\d MiB are free.*; \d+\.\d MiB would do`)
	if got.code != 1 || !said.MatchString(got.stderr) || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("status %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	p.whole(idsOfCalls(calls))
	if err := unix.Mount("", p.data, "", unix.MS_REMOUNT, "size=60m"); err != nil {
		t.Fatal(err)
	}
	p.archived(0)
	p.whole(idsOfCalls(calls))
	if rows := p.rows(); len(rows) > 0 {
		t.Errorf("still hot: %d rows", len(rows))
	}
}
