package tests

import (
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/creack/pty"
)

var update = flag.Bool("update", false, "write what is printed now into the golden files")

// golden compares a text with a file of testdata.
func golden(t testing.TB, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := readFile(t, path); text != want {
		t.Errorf("%s: go test ./tests -run %s -update writes what is printed now\n%s", path, t.Name(), firstDifference(text, want))
	}
}

// firstDifference shows the first line that differs.
func firstDifference(have, want string) string {
	a, b := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return "have " + x + "\nwant " + y
		}
	}
	return ""
}

// asking is a subcommand that finds the data directory by its environment: what it prints has no path of this test in it.
func (p *place) asking(args ...string) *exec.Cmd {
	cmd := exec.Command(toolrun, args...)
	cmd.Dir, cmd.Env = p.root, append(slices.Clone(p.env), "TOOLRUN_DATA="+p.data)
	return cmd
}

// onTerminal runs a subcommand at a terminal of so many columns and returns what the terminal was sent.
func (p *place) onTerminal(columns int, args ...string) (text string, code int) {
	p.t.Helper()
	cmd := p.asking(args...)
	cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: uint16(columns)})
	if err != nil {
		p.t.Fatal(err)
	}
	defer master.Close()
	out, _ := io.ReadAll(master) // an EIO is the end
	cmd.Wait()
	return strings.ReplaceAll(string(out), "\r\n", "\n"), cmd.ProcessState.ExitCode()
}

var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// columnsOf is how many columns a line takes that has nothing in it but text and colours, and no characters that are wider
// than one column but those of Chinese and Japanese.
func columnsOf(line string) int {
	line = sgr.ReplaceAllString(line, "")
	wide := 0
	for _, r := range line {
		if r >= 0x2e80 && r < 0xa4d0 {
			wide++
		}
	}
	return utf8.RuneCountInString(line) + wide
}
