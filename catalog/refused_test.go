package catalog

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what Load says into testdata/refused")

// Each archive of testdata/refused holds catalogs that Load must refuse, NAME/tools.toml with the files it needs, and in
// NAME/want every fault that it must name, with file, line and key.
func TestEveryFaultIsNamedWithFileLineAndKey(t *testing.T) {
	archives, err := filepath.Glob("testdata/refused/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, name := range archives {
		path, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		cases := make(map[string]map[string]string)
		for _, f := range archive.Files {
			dir, file, _ := strings.Cut(f.Name, "/")
			if cases[dir] == nil {
				cases[dir] = make(map[string]string)
			}
			cases[dir][file] = string(f.Data)
		}
		for dir, files := range cases {
			t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar")+"/"+dir, func(t *testing.T) {
				got := refusal(t, files) + "\n"
				if *update {
					i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == dir+"/want" })
					archive.Files[i].Data = []byte(got)
				} else if got != files["want"] {
					t.Errorf("for\n%s\ngot\n%s\nwant\n%s", files["tools.toml"], got, files["want"])
				}
			})
		}
		if *update {
			if err := os.WriteFile(path, txtar.Format(archive), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
