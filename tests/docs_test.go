package tests

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// document reads a file of the top folder.
func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// says runs toolrun with a flag or command that needs no catalog, and gives its stdout.
func says(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, toolrun, args...).Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("toolrun %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

var (
	fences    = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	codeSpans = regexp.MustCompile("`([^`\n]+)`")
)

// code is what stands in a document as code: the blocks between fences, and the spans.
func code(text string) (pieces []string) {
	for _, m := range fences.FindAllStringSubmatch(text, -1) {
		pieces = append(pieces, m[2])
	}
	for _, m := range codeSpans.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
		pieces = append(pieces, m[1])
	}
	return pieces
}

// section is what a help text has under a heading, one entry a line.
func section(help, heading string) (lines []string) {
	_, rest, _ := strings.Cut(help, "\n"+heading+":\n")
	for line := range strings.Lines(rest) {
		if strings.TrimSpace(line) == "" {
			break
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// firstWords are the names that a section lists.
func firstWords(lines []string) (words []string) {
	for _, line := range lines {
		word, _, _ := strings.Cut(line, " ")
		words = append(words, word)
	}
	return words
}

func TestEveryCommandOfTheReadmeExists(t *testing.T) {
	t.Parallel()
	readme := document(t, "README.md")
	commands := firstWords(section(says(t, "--help"), "Commands"))
	ofCatalog := firstWords(section(says(t, "catalog", "--help"), "Commands"))
	if len(commands) < 5 || len(ofCatalog) < 3 {
		t.Fatalf("help lists %v and %v", commands, ofCatalog)
	}
	named := map[string]bool{}
	for _, piece := range code(readme) {
		for _, m := range regexp.MustCompile(`\btoolrun ([a-z]+)\b(?: ([a-z]+)\b)?`).FindAllStringSubmatch(piece, -1) {
			named[m[1]] = true
			if !slices.Contains(commands, m[1]) {
				t.Errorf("README.md has %q, but there is no such command", m[0])
			}
			if m[1] == "catalog" && !slices.Contains(ofCatalog, m[2]) {
				t.Errorf("README.md has %q, but there is no such command", m[0])
			}
		}
	}
	for _, command := range commands {
		if !named[command] {
			t.Errorf("README.md does not name toolrun %s", command)
		}
	}
}

func TestExitStatusesOfTheReadmeAreThoseOfTheHelp(t *testing.T) {
	t.Parallel()
	readme := document(t, "README.md")
	for heading, help := range map[string]string{
		"Exit status of all commands but call": says(t, "--help"),
		"Exit status of `toolrun call`":        says(t, "call", "--help"),
	} {
		_, rest, found := strings.Cut(readme, heading)
		if !found {
			t.Errorf("README.md has no %q", heading)
			continue
		}
		_, rest, _ = strings.Cut(rest, "|---|---|\n")
		var have, want []string
		for line := range strings.Lines(rest) {
			cells := strings.Split(line, "|")
			if len(cells) != 4 {
				break
			}
			have = append(have, strings.TrimSpace(cells[1])+" "+strings.TrimSpace(cells[2]))
		}
		for _, line := range section(help, "Exit status") {
			if status, meaning, _ := strings.Cut(line, " "); strings.ContainsAny(status[:1], "0123456789") {
				want = append(want, status+" "+strings.TrimSpace(meaning))
			}
		}
		if len(want) < 5 || !slices.Equal(have, want) {
			t.Errorf("%s\nREADME.md: %s\n--help:    %s", heading, strings.Join(have, "; "), strings.Join(want, "; "))
		}
	}
}

// The README has one catalog with a tool of which every key is written with the value that it has anyway.
func TestDefaultsOfTheReadmeAreTheDefaults(t *testing.T) {
	t.Parallel()
	found := 0
	for _, block := range fences.FindAllStringSubmatch(document(t, "README.md"), -1) {
		if block[1] != "toml" {
			continue
		}
		dir := t.TempDir()
		full, bare := filepath.Join(dir, "full.toml"), filepath.Join(dir, "bare.toml")
		if err := os.WriteFile(full, []byte(block[2]), 0o644); err != nil {
			t.Fatal(err)
		}
		// That this host lacks a program is no fault of the document.
		out := says(t, "catalog", "check", full)
		rest := regexp.MustCompile(`(?m)^warning: .* is not found in PATH; .*\n`).ReplaceAllString(out, "")
		if strings.Contains(rest, "warning: ") || !strings.Contains(rest, " warning") {
			t.Errorf("a catalog of README.md is not good: %s\n%s", out, block[2])
		}
		before, keys, ok := strings.Cut(block[2], "[tools.every_key]\n")
		if !ok {
			continue
		}
		found++
		tool := "[tools.every_key]\n"
		for line := range strings.Lines(keys) {
			if key, _, _ := strings.Cut(line, " "); slices.Contains([]string{"description", "command", "risk"}, key) {
				tool += line
			}
		}
		if err := os.WriteFile(bare, []byte(before+tool), 0o644); err != nil {
			t.Fatal(err)
		}
		if out := says(t, "catalog", "diff", bare, full); out != "no difference\n" {
			t.Errorf("README.md has defaults that are none:\n%s", out)
		}
	}
	if found != 1 {
		t.Errorf("README.md has %d catalogs with every key, want 1", found)
	}
}

// rooms are the folders at the top that paths in documents begin with.
var rooms = []string{"archive", "catalog", "cmd", "runner", "sandbox", "tests"}

func TestEveryPathOfTheDocumentsExists(t *testing.T) {
	t.Parallel()
	isFile := regexp.MustCompile(`^[\w./-]+\.(go|s|md)$`)
	for _, name := range []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"} {
		text := document(t, name)
		var paths []string
		for _, m := range codeSpans.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
			room, _, inRoom := strings.Cut(m[1], "/")
			if isFile.MatchString(m[1]) || inRoom && slices.Contains(rooms, room) && !strings.ContainsAny(m[1], " …*<") {
				paths = append(paths, m[1])
			}
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(text, -1) {
			paths = append(paths, m[1])
		}
		if name == "ARCHITECTURE.md" && len(paths) < 50 {
			t.Errorf("%s names %d paths only: are they still found?", name, len(paths))
		}
		for _, path := range paths {
			if _, err := os.Stat(filepath.Join("..", path)); err != nil {
				t.Errorf("%s names %s: %v", name, path, errors.Unwrap(err))
			}
		}
	}
}

func TestArchitectureNamesEveryPackageOfTheBinaryAndEveryDependency(t *testing.T) {
	t.Parallel()
	text := document(t, "ARCHITECTURE.md")
	cmd := exec.Command("go", "list", "-deps", "./cmd/toolrun")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	names := slices.DeleteFunc(strings.Fields(string(out)), func(name string) bool { return !strings.HasPrefix(name, "toolrun/") })
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+/\S+) v\S+$`).FindAllStringSubmatch(document(t, "go.mod"), -1) {
		names = append(names, m[1]) // no "// indirect" behind it
	}
	if len(names) < 20 {
		t.Errorf("only %d packages and dependencies: %v", len(names), names)
	}
	for _, name := range names {
		if name = strings.TrimPrefix(name, "toolrun/"); !strings.Contains(text, "`"+name+"`") {
			t.Errorf("ARCHITECTURE.md does not name `%s`", name)
		}
	}
}
