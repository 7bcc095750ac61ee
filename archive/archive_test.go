package archive_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toolrun/archive"
	"toolrun/archive/redact"
)

func TestFoldersAndFilesAreForTheirOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "data")
	d := open(t, dir)
	run := begin(t, d)
	if _, err := d.Ledger.Claim("x"); err != nil {
		t.Fatal(err)
	}
	doCall(t, d, run, run.ID()[:8]+"-1")
	if err := d.Trust("/x/tools.toml", "hash", nil); err != nil {
		t.Fatal(err)
	}
	n := 0
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if n++; err == nil && info.Mode().Perm() != map[bool]os.FileMode{true: 0o700, false: 0o600}[e.IsDir()] {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil || n < 14 {
		t.Error(n, err)
	}
	d.End(run, nil)
}

func TestFolderOfOthersIsNotTakenOver(t *testing.T) {
	for name, c := range map[string]struct {
		file  string
		taken bool
	}{"empty": {"", true}, "a data directory": {"ledger.jsonl", true}, "only configured": {"config.toml", true}, "something else": {"notes.txt", false}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			os.Chmod(dir, 0o755)
			if c.file != "" {
				if err := os.WriteFile(filepath.Join(dir, c.file), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			d, err := archive.Open(dir, archive.Options{})
			if (err == nil) != c.taken || err != nil && !errors.Is(err, archive.ErrUnusable) {
				t.Fatal(err)
			}
			info, _ := os.Stat(dir)
			if c.taken != (info.Mode().Perm() == 0o700) {
				t.Errorf("mode %v", info.Mode())
			}
			if err == nil {
				d.Close()
			}
		})
	}
}

func TestUnusableDirectoriesAreNamedSo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range []archive.Options{{}, {ReadOnly: true}} {
		for _, path := range []string{file, filepath.Join(file, "below")} {
			if _, err := archive.Open(path, o); !errors.Is(err, archive.ErrUnusable) {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := archive.Open(missing, archive.Options{ReadOnly: true}); !errors.Is(err, archive.ErrUnusable) || !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("reading made it")
	}
}

func TestReadingChangesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	d := open(t, dir)
	d.Close()
	tear(t, filepath.Join(dir, "ledger.jsonl"), "torn")
	files := func() map[string]int64 {
		m := map[string]int64{}
		filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			info, _ := e.Info()
			m[path] = info.Size() + info.ModTime().UnixNano()
			return nil
		})
		return m
	}
	before := files()
	d, err := archive.Open(dir, archive.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range d.Rows() {
		if err == nil {
			t.Error("a torn line is a row")
		}
	}
	if _, err := d.Begin(header()); err == nil {
		t.Error("a run began")
	}
	if _, err := d.Recover("x"); err == nil {
		t.Error("it recovered")
	}
	if d.Trust("x", "y", nil) == nil || d.Commit(nil, nil) == nil {
		t.Error("it wrote")
	}
	if err := d.Close(); err != nil || !maps.Equal(files(), before) {
		t.Error("something changed", err)
	}
}

func TestDefaultDirectory(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"/d":                           {"TOOLRUN_DATA": "/d", "XDG_STATE_HOME": "/s", "HOME": "/h"},
		"/s/toolrun":                   {"XDG_STATE_HOME": "/s", "HOME": "/h"},
		"/h/.local/state/toolrun":      {"HOME": "/h"},
		"/h2/.local/state/toolrun":     {"XDG_STATE_HOME": "relative", "HOME": "/h2"},
		"data directory unusable: nei": {},
	} {
		got, err := archive.DefaultDir(func(k string) string { return env[k] })
		if err != nil {
			got = err.Error()
		}
		if got != want && !(err != nil && strings.HasPrefix(got, want)) {
			t.Errorf("%v: %s", env, got)
		}
	}
}

func TestConfigIsStrict(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "",
		"# nothing\n":                 "",
		"durability = \"checkpoint\"": "",
		"durability = \"row\"":        "",
		"durability = \"rwo\"":        `config.toml:1: durability: want "checkpoint" or "row"`,
		"durability = 1":              `config.toml:1: durability: want`,
		"\n\nDurability = \"row\"":    "config.toml:3: Durability: unknown key (the key is durability)",
		"x = 1\ndurabilty = \"row\"":  "config.toml:2: durabilty: unknown key",
		"# keep = 1\nkeep = \"-1d\"":  "config.toml:2: keep: want how long",
		"keep = 30":                   "config.toml:1: keep: want how long",
		"[telemetry]\nx = 1":          "config.toml:1: telemetry: not in this version",
		"check.every = 1":             "config.toml:1: check: every: unknown key",
		"[[checkpoints]]":             "config.toml:1: checkpoints: want a table",
		"[checkpoints]":               "",
		"[checkpoints]\ninterval = \"10s\"\nfile = \"/x/y\"\ncommand = [\"logger\", \"-t\"]": "",
		"[checkpoints]\ninterval = \"10\"":                                                   "config.toml:2: checkpoints: interval: want a duration",
		"[checkpoints]\ninterval = \"1ms\"":                                                  "config.toml:2: checkpoints: interval: want a duration of at least 1s",
		"[checkpoints]\nfile = \"x\"":                                                        "config.toml:2: checkpoints: file: want an absolute path",
		"[checkpoints]\ncommand = \"logger\"":                                                "config.toml:2: checkpoints: command: want a program",
		"[checkpoints]\ncommand = [\"\"]":                                                    "config.toml:2: checkpoints: command: want a program",
		"[checkpoints]\ncommand = [\"x\", 1]":                                                "config.toml:2: checkpoints: command: want a program",
		"[checkpoints]\nevery = 1":                                                           "config.toml:2: checkpoints: every: unknown key",
		"[check]\n# a comment\nnight = [1, 5]\nsession_calls = 0":                            "config.toml:4: check: session_calls: want a whole",
		"keep = \"30d\"\n[check]\nscore = 0\n[checkpoints]\n\"interval\" = \"1ms\"":          "config.toml:5: checkpoints: interval: want a duration",
		"[checkpoints]\ninterval = \"1m\"\n[check]\ninterval = 1":                            "config.toml:4: check: interval: unknown key",
		"\n[check]\nscore = 0\nsamples = 0":                                                  "config.toml:3: check: score: want",
		"durability = \"row\"\ncheck = { score = 0 }":                                        "config.toml:2: check: score: want",
		"check.samples = 20\ncheck.score = 0":                                                "config.toml:2: check: score: want",
		"approval_wait = \"90s\"":                                                            "",
		"approval_wait = 5":                                                                  "config.toml:1: approval_wait: want a duration above 0",
		"approval_wait = \"0s\"":                                                             "config.toml:1: approval_wait: want a duration above 0",
		"approval_wait = \"999h\"":                                                           "config.toml:1: approval_wait: want a duration above 0 and up to 168h",
		"Approval_Wait = \"5m\"":                                                             "config.toml:1: Approval_Wait: unknown key (the key is approval_wait)",
		"durability = \"row\"\ndurability = 1":                                               "config.toml:2: ",
		"durability":                                                                         "config.toml:1: ",
		"\n\"durability\" = 3":                                                               "config.toml:2: durability",
	} {
		dir := t.TempDir()
		os.Chmod(dir, 0o700)
		if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := archive.Open(dir, archive.Options{})
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, archive.ErrUnusable)):
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		if err == nil {
			if want := strings.Contains(text, "row"); (d.Config.Durability == archive.PerRow) != want {
				t.Errorf("%q gives %s", text, d.Config.Durability)
			}
			d.Close()
		}
	}
}

func TestTrustIsOfOneCatalogAndItsFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	d := open(t, dir)
	if _, _, ok := d.Trusted("/a/tools.toml"); ok {
		t.Error("trusted before it was")
	}
	if err := d.Trust("/a/tools.toml", "one", map[string]redact.Text{"/a/tools.toml": redact.Plain("text\n")}); err != nil {
		t.Fatal(err)
	}
	hash, files, ok := d.Trusted("/a/tools.toml")
	if !ok || hash != "one" || files["/a/tools.toml"].String() != "text\n" {
		t.Error(hash, files, ok)
	}
	if _, _, ok := d.Trusted("/b/tools.toml"); ok {
		t.Error("another catalog is trusted")
	}
	if err := d.Trust("/a/tools.toml", "two", nil); err != nil {
		t.Fatal(err)
	}
	if hash, _, _ := d.Trusted("/a/tools.toml"); hash != "two" {
		t.Error(hash)
	}
	entries, _ := os.ReadDir(filepath.Join(dir, "trusted"))
	if len(entries) != 1 {
		t.Errorf("%v", entries)
	}
	if err := os.WriteFile(filepath.Join(dir, "trusted", entries[0].Name()), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := d.Trusted("/a/tools.toml"); ok {
		t.Error("a damaged record is trust")
	}
}

func TestRunIDsAreUUIDsOfTheirOwnDigits(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "data"))
	seen := map[string]bool{}
	for range 100 {
		id, err := d.NewRunID()
		if err != nil || len(id) != 36 || id[14] != '4' || seen[id[:8]] {
			t.Fatal(id, err)
		}
		seen[id[:8]] = true
	}
}
