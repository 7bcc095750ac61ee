package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommittedRulesAreThoseOfThePinnedVersion(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}\t{{.Version}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	source, version, _ := strings.Cut(strings.TrimSpace(string(out)), "\t")
	rules, err := Rules(version)
	if err != nil {
		t.Fatal(err)
	}
	licence, err := os.ReadFile(filepath.Join(source, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{"../../gitleaks.go": rules, "../../LICENSE.gitleaks": licence} {
		got, err := os.ReadFile(name)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what go generate makes: %v", name, err)
		}
	}
}
