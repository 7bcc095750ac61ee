package tests

import (
	"os/exec"
	"strings"
	"testing"
)

// TestRoomsImportOnlyDownwards keeps the arrows of ARCHITECTURE.md: cmd → runner → {catalog, sandbox, archive}, and
// these three never each other.
func TestRoomsImportOnlyDownwards(t *testing.T) {
	t.Parallel()
	forbidden := map[string][]string{
		"catalog": {"sandbox", "archive", "runner", "cmd"},
		"sandbox": {"catalog", "archive", "runner", "cmd"},
		"archive": {"catalog", "sandbox", "runner", "cmd"},
		"runner":  {"cmd"},
	}
	for room, others := range forbidden {
		cmd := exec.Command("go", "list", "-deps", "./"+room+"/...")
		cmd.Dir = ".."
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, dep := range strings.Fields(string(out)) {
			for _, other := range others {
				if dep == "toolrun/"+other || strings.HasPrefix(dep, "toolrun/"+other+"/") {
					t.Errorf("%s imports %s", room, dep)
				}
			}
		}
	}
}
