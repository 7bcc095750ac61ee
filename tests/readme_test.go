package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The loops of README.md are run as they stand there, in the project that it describes, and print what it says.
func TestLoopsOfTheReadmeDoWhatItSays(t *testing.T) {
	t.Parallel()
	blocks := fences.FindAllStringSubmatch(document(t, "README.md"), -1)
	found := 0
	for i, block := range blocks {
		loop, ok := map[string]struct {
			file     string
			programs []string
		}{
			"python": {"loop.py", []string{"/usr/bin/python3", "python3"}},
			"ts":     {"loop.mjs", []string{"node"}}, // it has no types that are not inferred, so that any Node runs it
		}[block[1]]
		if !ok {
			continue
		}
		found++
		t.Run(block[1], func(t *testing.T) {
			t.Parallel()
			program := ""
			for _, name := range loop.programs {
				if path, err := exec.LookPath(name); err == nil && program == "" {
					program = path
				}
			}
			if program == "" {
				skipFor(t, fmt.Sprintf("needs one of %q", loop.programs))
			}
			p := launchPlace(t)
			p.write("notes.txt", "buy milk\n", 0o644)
			cmd := exec.Command(program, p.writeOutside(loop.file, block[2]))
			cmd.Dir, cmd.Env = p.work, append(p.env, "TOOLRUN_DATA="+p.data)
			got := finish(t, cmd)
			if want := blocks[i+1][2]; got.code != 0 || got.stdout != want {
				t.Errorf("status %d\n%s\nstdout %q\nREADME %q", got.code, got.stderr, got.stdout, want)
			}
			rows := p.rows()
			if len(rows) != 2 {
				t.Fatalf("%d rows", len(rows))
			}
			first := string(rows[0].raw)
			for _, want := range []string{
				`"session_id":"loop-`, `"session_from":"env"`, `"turn":1`, `"model":"claude-sonnet-4-5"`, `"provider":"anthropic"`,
				`"input_tokens":1200`, `"output_tokens":80`, `"estimated_cost_usd":0.0048`, `"client_call_id":"call_`,
			} {
				if !strings.Contains(first, want) {
					t.Errorf("the row lacks %s: %s", want, first)
				}
			}
		})
	}
	if found != 2 {
		t.Errorf("README.md has %d loops, want one in Python and one in TypeScript", found)
	}
}

// writeOutside makes a file beside the workspace.
func (p *place) writeOutside(name, content string) string {
	p.t.Helper()
	path := filepath.Join(p.root, name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		p.t.Fatal(err)
	}
	return path
}
