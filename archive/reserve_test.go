package archive_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"toolrun/archive"
	"toolrun/archive/internal/skip"
	"toolrun/archive/redact"
)

// smallDisk is a data directory on a file system of its own.
func smallDisk(t *testing.T, size string) (dir string) {
	t.Helper()
	at := t.TempDir()
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		skip.For(t, "mount: ", err)
	}
	t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
	return filepath.Join(at, "data")
}

// fill takes all that is left of the disk.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(filepath.Dir(dir), "ballast")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for page := bytes.Repeat([]byte{'.'}, 4096); err == nil; {
		_, err = f.Write(page)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// The disk fills while 16 calls run, the usual number: each ends as capture_failed and is on the record, row and result,
// with no space given back by anybody. The next cannot begin, until there is space again.
func TestCallsThatBeganAreOnTheRecordOfAFullDisk(t *testing.T) {
	dir := smallDisk(t, "4m")
	d := open(t, dir)
	run := begin(t, d)
	var calls []*call
	for i := range 16 {
		c, err := newCall(d, run, fmt.Sprintf("%s-%d", run.ID()[:8], i+1))
		if err == nil {
			err = c.start()
		}
		if err != nil {
			t.Fatal(err)
		}
		argv, err := rules.JSON([]byte(`["` + strings.Repeat("x", 4000) + `"]`)) // a row as long as they get
		if err != nil {
			t.Fatal(err)
		}
		c.row.Argv = argv
		calls = append(calls, c)
	}
	free := fill(t, dir)
	for _, c := range calls {
		fill(t, dir) // whoever fills the disk takes what comes free
		if err := c.capture(); !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
		if err := errors.Join(c.commit(), c.result()); err != nil {
			t.Fatalf("call %s: %v", c.row.ToolCallID, err)
		}
	}
	begins := func() error {
		c, err := newCall(d, run, run.ID()[:8]+"-17")
		if err != nil {
			t.Fatal(err)
		}
		return c.start()
	}
	if err := begins(); !errors.Is(err, archive.ErrUnavailable) {
		t.Errorf("a call may begin whose row may find no space: %v", err)
	}
	rows := rowsOf(t, dir)
	if len(rows) != 16 || rows[calls[7].row.ToolCallID.String()].Outcome != "capture_failed" {
		t.Errorf("%d rows", len(rows))
	}
	free()
	if err := begins(); err != nil {
		t.Errorf("there is space again: %v", err)
	}
	if err := d.End(run, nil); err != nil {
		t.Error(err)
	}
	verify(t, dir)
}

// A run that ends on a full disk is left to the next process, which closes it, seals it and signs for it.
func TestRunThatEndsOnAFullDiskIsSignedForLater(t *testing.T) {
	dir := smallDisk(t, "4m")
	d := open(t, dir)
	run := begin(t, d)
	doCall(t, d, run, run.ID()[:8]+"-1")
	if _, err := d.Store.Put(redact.Plain("more")); err != nil {
		t.Fatal(err)
	}
	free := fill(t, dir)
	if err := d.End(run, nil); !errors.Is(err, archive.ErrUnavailable) {
		t.Errorf("ended with %v", err)
	}
	if r := verify(t, dir); r.Uncovered != 1 || r.Covered != 0 {
		t.Errorf("%+v", r)
	}
	free()
	if _, err := open(t, dir).Recover("next"); err != nil {
		t.Fatal(err)
	}
	noMarkers(t, dir)
	if r := verify(t, dir); r.Uncovered != 0 || r.Covered != 1 {
		t.Errorf("%+v", r)
	}
}

// A copy of the directory, whose reserve is a hole or is gone, takes the space when the first call begins.
func TestReserveIsTakenAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	open(t, dir).Close()
	path := filepath.Join(dir, "reserve")
	blocks := func() int64 {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			t.Fatal(err)
		}
		return st.Blocks * 512
	}
	whole := blocks()
	if whole < 128<<10 {
		t.Errorf("only %d bytes are kept", whole)
	}
	for _, damage := range []func(){
		func() { os.Truncate(path, 0) },
		func() { os.Truncate(path, 0); os.Truncate(path, whole) },
		func() { os.Remove(path) },
	} {
		d := open(t, dir)
		damage()
		run := begin(t, d)
		doCall(t, d, run, run.ID()[:8]+"-1")
		if got := blocks(); got < whole {
			t.Errorf("%d bytes are kept", got)
		}
		d.End(run, nil)
		d.Close()
	}
}
