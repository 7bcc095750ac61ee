package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestTimesOfEveryForm(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"":                          {},
		"2026-11-30":                time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC),
		"2026-11-30T18:05:12.123Z":  time.Date(2026, 11, 30, 18, 5, 12, 123e6, time.UTC),
		"2026-11-30T18:05:12+02:00": time.Date(2026, 11, 30, 16, 5, 12, 0, time.UTC),
		"7d":                        now.Add(-7 * 24 * time.Hour),
		"90m":                       now.Add(-90 * time.Minute),
	} {
		got, err := parseTime(text, now)
		if err != nil || !got.Equal(want) {
			t.Errorf("parseTime(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"d", "-7d", "7", "yesterday", "2026-13-01", "99999999999d", "2147483647w"} {
		if got, err := parseTime(text, now); err == nil {
			t.Errorf("parseTime(%q) = %v, want an error", text, got)
		}
	}
}

func TestAWorkspaceThatHoldsTooMuchIsRefused(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, project := filepath.Join(top, "home"), filepath.Join(top, "home", "project")
	data := filepath.Join(top, "state", "toolrun")
	for _, dir := range []string{project, filepath.Dir(data)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(top, "link")
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	a := &app{getenv: func(key string) string { return map[string]string{"HOME": home}[key] }}
	for _, dir := range []string{"/", top, home, link, filepath.Dir(data), data, filepath.Join(project, "..")} {
		a.flags.workspace = dir
		got, err := a.workspace(data)
		var usage *usageError
		if !errors.As(err, &usage) && dir != data {
			t.Errorf("workspace %q: got %q, %v; want a refusal", dir, got, err)
		}
	}
	a.flags.workspace = project
	if got, err := a.workspace(data); err != nil || got != project {
		t.Errorf("workspace %q: got %q, %v", project, got, err)
	}
}
