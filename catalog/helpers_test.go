package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write puts files into a new folder, makes it the working directory, and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	return dir
}

// loadText loads a catalog that must be in order.
func loadText(t *testing.T, text string) *Catalog {
	t.Helper()
	write(t, map[string]string{"tools.toml": text})
	c, err := Load("tools.toml")
	if err != nil {
		t.Fatalf("Load:\n%v", err)
	}
	return c
}

// refusal returns the faults of a catalog that must not be in order, one a line.
func refusal(t *testing.T, files map[string]string) string {
	t.Helper()
	write(t, files)
	c, err := Load("tools.toml")
	if err == nil || c != nil {
		t.Fatalf("Load accepted\n%s", files["tools.toml"])
	}
	return err.Error()
}

// tool returns the only tool of a catalog.
func tool(t *testing.T, text string) *Tool {
	t.Helper()
	tools := loadText(t, text).Tools()
	if len(tools) != 1 {
		t.Fatalf("%d tools, want 1", len(tools))
	}
	return tools[0]
}

// head begins a tool that needs only more keys, on line 4 and after.
const head = "[tools.a]\ncommand = [\"true\"]\nrisk = \"READ\"\n"

// lines joins lines of a catalog.
func lines(l ...string) string { return strings.Join(l, "\n") + "\n" }
