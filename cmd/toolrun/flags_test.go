package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestAWorkspaceThatHoldsTooMuchIsRefused(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, project := filepath.Join(top, "home"), filepath.Join(top, "home", "project")
	data := filepath.Join(top, "state", "toolrun")
	for _, dir := range []string{project, filepath.Join(data, "store")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(top, "link")
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": home}
	a := &app{lookupEnv: func(key string) (string, bool) { value, ok := env[key]; return value, ok }}
	for _, dir := range []string{"/", top, home, link, filepath.Dir(data), data, filepath.Join(data, "store"), filepath.Join(project, "..")} {
		a.flags.workspace = dir
		got, err := a.workspace(data)
		var usage *usageError
		if !errors.As(err, &usage) {
			t.Errorf("workspace %q: got %q, %v; want a refusal", dir, got, err)
		}
	}
	a.flags.workspace = project
	if got, err := a.workspace(data); err != nil || got != project {
		t.Errorf("workspace %q: got %q, %v", project, got, err)
	}
}
