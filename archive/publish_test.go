package archive_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toolrun/archive"
	"toolrun/archive/evidence"
)

// publishing opens a data directory whose checkpoints go where config says, and returns what it logs.
func publishing(t *testing.T, config string) (dir string, d *archive.Dir, log *bytes.Buffer) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte("[checkpoints]\n"+config), 0o600); err != nil {
		t.Fatal(err)
	}
	log = &bytes.Buffer{}
	d, err := archive.Open(dir, archive.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return dir, d, log
}

func endedRun(t *testing.T, d *archive.Dir) {
	t.Helper()
	run := begin(t, d)
	doCall(t, d, run, run.ID()[:8]+"-1")
	if err := d.End(run, nil); err != nil {
		t.Fatal(err)
	}
}

// What lies elsewhere is enough to find what was done here with everything, the key too.
func TestCheckpointsGoElsewhereAsTheyAreMade(t *testing.T) {
	at := t.TempDir()
	file, piped := filepath.Join(at, "file"), filepath.Join(at, "piped")
	dir, d, log := publishing(t, fmt.Sprintf("file = %q\ncommand = [\"sh\", \"-c\", \"cat >> %s\"]\n", file, piped))
	endedRun(t, d)
	endedRun(t, d)
	if log.Len() > 0 {
		t.Error(log)
	}
	local, err := os.ReadFile(filepath.Join(dir, "checkpoints"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, piped} {
		b, err := os.ReadFile(path)
		if err != nil || !strings.HasSuffix(string(local), string(b)) {
			t.Fatalf("%s: %v: %s", path, err, b)
		}
		kinds := ""
		for _, n := range evidence.FindNotes(string(b)) {
			if n.Seal != nil {
				kinds += " seal"
			} else {
				kinds += fmt.Sprint(" ", n.Checkpoint.Tree.N)
			}
		}
		if kinds != " seal 1 seal 2" {
			t.Error(kinds)
		}
		if r := find(t, dir, string(b)); len(r.Findings) > 0 {
			t.Errorf("%+v", r.Findings)
		}
	}
}

func TestACopyThatFailsIsToldAndTheCheckpointStands(t *testing.T) {
	for config, want := range map[string]string{
		`file = "/nowhere/at/all"`:                                    "no such file",
		`command = ["false"]`:                                         "exit status 1",
		`command = ["no-such-program"]`:                               "executable file not found",
		`command = ["sh", "-c", "echo no route to host >&2; exit 3"]`: "no route to host",
	} {
		dir, d, log := publishing(t, config)
		endedRun(t, d)
		if text := log.String(); !strings.Contains(text, "level=ERROR msg=\"the checkpoint was not copied\"") || !strings.Contains(text, want) {
			t.Errorf("%s: %s", config, text)
		}
		if r := verify(t, dir); r.Covered != 1 {
			t.Errorf("%+v", r)
		}
	}
}
