package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestEveryPromiseOfTheThreatModelNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	text := document(t, "sandbox/THREATS.md")
	exists := map[string]bool{}
	for _, pattern := range []string{"../sandbox/*_test.go", "../sandbox/*/*_test.go", "../runner/*_test.go", "*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(source), -1) {
				exists[m[1]] = true
			}
		}
	}
	_, section, _ := strings.Cut(text, "\n## Tests\n")
	section, _, _ = strings.Cut(section, "\n## ")
	held := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| (.+) \|$`).FindAllStringSubmatch(section, -1) {
		tests := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(row[2], -1)
		for _, m := range tests {
			if !exists[m[1]] {
				t.Errorf("THREATS.md names %s, which is no test", m[1])
			}
		}
		held[row[1]] = len(tests) > 0
	}
	_, walls, _ := strings.Cut(text, "| wall (`enforced`)")
	walls, _, _ = strings.Cut(walls, "\n\n")
	_, promises, _ := strings.Cut(text, "\n## Guaranteed\n")
	promises, _, _ = strings.Cut(promises, "\n## ")
	var wanted []string
	for _, m := range regexp.MustCompile(`(?m)^(\d+)\. `).FindAllStringSubmatch(promises, -1) {
		wanted = append(wanted, m[1])
	}
	for _, m := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(walls, -1) {
		if name := m[1]; name != "---" {
			wanted = append(wanted, strings.Split(name, ", ")...)
		}
	}
	if len(wanted) < 20 {
		t.Fatalf("only %d promises are found: %v", len(wanted), wanted)
	}
	for _, promise := range wanted {
		found := false
		for names, ok := range held {
			for name := range strings.SplitSeq(names, ", ") {
				found = found || ok && name == promise
			}
		}
		if !found {
			t.Errorf("THREATS.md names no test for %q", promise)
		}
	}
}
