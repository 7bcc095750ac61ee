package tests

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// typed runs a subcommand at a terminal of 100 columns, types what stands there, each line when the one before was answered, and
// then the end of input. It returns what came after each.
func (p *place) typed(lines []string, args ...string) (answers []string, code int) {
	p.t.Helper()
	cmd := exec.Command(toolrun, append(args, "--data", p.data)...)
	cmd.Dir, cmd.Env = p.root, append(p.env, "NO_COLOR=1")
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 100})
	if err != nil {
		p.t.Fatal(err)
	}
	defer master.Close()
	prompt := func() string {
		var seen strings.Builder
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			seen.Write(buf[:n])
			text := strings.ReplaceAll(seen.String(), "\r\n", "\n")
			for _, end := range []string{"\nsql> ", "\n...> "} {
				if before, ok := strings.CutSuffix(text, end); ok {
					return before
				}
			}
			if err != nil {
				return text
			}
		}
	}
	prompt()
	for _, line := range lines {
		if _, err := io.WriteString(master, line+"\n"); err != nil {
			p.t.Fatal(err)
		}
		_, answer, _ := strings.Cut(prompt(), line) // the terminal echoes what is typed
		answers = append(answers, strings.TrimPrefix(answer, "\n"))
	}
	io.WriteString(master, "\x04")
	rest, _ := io.ReadAll(master) // an EIO is the end
	answers = append(answers, strings.ReplaceAll(string(rest), "\r\n", "\n"))
	cmd.Wait()
	return answers, cmd.ProcessState.ExitCode()
}

func TestTheShellOfSQLReadsStatementsAndSaysWhatThereIs(t *testing.T) {
	t.Parallel()
	p := barePlace(t, "")
	p.damaged = true // rows only
	h := newPast(p)
	for i := range 3 {
		h.row(theRow(i))
	}
	steps := []struct{ typed, want string }{
		{"SELECT COUNT(*)", ""}, // goes on
		{"  AS n -- a comment; and more", ""},
		{"FROM tool_calls; SELECT ';' AS b;", "n\n3\nb\n;"},
		{"SELECT tool_name,", ""},
		{"  nosuch FROM tool_calls;", "toolrun: sql: line 2, column 3: no such column: nosuch: 'toolrun sql .schema' lists the columns"},
		{"SELECT MAX(seq) AS last FROM tool_calls;", "last\n   2"}, // an error ended the statement only
		{"DELETE FROM tool_calls;", "toolrun: only statements that read are allowed: SELECT, WITH, VALUES, EXPLAIN and PRAGMA table_info"},
		{"SELECT COUNT(*) AS n FROM tool_calls;", "n\n3"},
		{".tables", "name                type\ntool_calls          table\nautonomous_calls    view\ndaily_spend         view\nretries_by_session  view\ntool_failure_rates  view"},
		{".schema tool_failure_rates", "column         type\ntool_name      TEXT\ncalls\nfailures\nrefusals\nerror_percent"},
		{".schema nosuch", "nosuch: no table or view; .tables lists them"},
		{".nosuch", ".nosuch: not known; .help lists what is"},
		{"help", ".tables         the table and the views\n.schema [NAME]  the columns of tool_calls, or of a view\n.views          what each view answers\n" +
			".help           this\n.quit           ends, as Ctrl-D does\nSELECT ...;     any statement that only reads, over as many lines as it takes, up to a semicolon"},
		{"SELECT 5", ""},
	}
	var lines []string
	for _, s := range steps {
		lines = append(lines, s.typed)
	}
	answers, code := p.typed(lines, "sql")
	for i, s := range steps {
		if answers[i] != s.want {
			t.Errorf("%s\nhave %q\nwant %q", s.typed, answers[i], s.want)
		}
	}
	if last := answers[len(answers)-1]; code != 0 || !strings.Contains(last, "the last statement had no semicolon and was not asked") {
		t.Errorf("the end of input: status %d, %q", code, last)
	}
	if _, code := p.typed([]string{".schema"}, "sql", "--session", "s"); code != 0 {
		t.Errorf("with a session: status %d", code)
	}
	for _, file := range grep(p.root, "SELECT COUNT") {
		t.Errorf("what was typed is kept in %s", file)
	}
	if entries, err := os.ReadDir(p.root + "/home"); err != nil || len(entries) > 0 {
		t.Errorf("the shell left something at home: %v %v", entries, err)
	}
	// Without a terminal stdin is read whole.
	cmd := exec.Command(toolrun, "sql", "--json", "--data", p.data)
	cmd.Env, cmd.Stdin = p.env, strings.NewReader("SELECT 1 AS a;\nSELECT 'x''y;' AS b")
	if got := finish(t, cmd); got.code != 0 || got.stdout != "{\"a\":1}\n{\"b\":\"x'y;\"}\n" {
		t.Errorf("from a pipe: %+v", got)
	}
	cmd = exec.Command(toolrun, "sql", "--data", p.data)
	cmd.Env, cmd.Stdin = p.env, strings.NewReader("SELECT 1 AS a;\nSELECT FROM")
	if got := finish(t, cmd); got.code != 1 || got.stdout != "a\n1\n" || got.stderr != "toolrun: sql: line 2, column 8: near \"FROM\": syntax error\n" {
		t.Errorf("a wrong statement in a pipe: %+v", got)
	}
	for statement, want := range map[string]ran{
		".schema daily_spend":  {"column", "", 0},
		".nosuch":              {"", "toolrun: .nosuch: not known; .help lists what is\n", 1},
		"SELECT * FROM calls;": {"", "toolrun: sql: no such table: calls: the table is tool_calls, and 'toolrun sql .views' lists the views\n", 1},
	} {
		if got := p.query("sql", statement); got.code != want.code || !strings.HasPrefix(got.stdout, want.stdout) || got.stderr != want.stderr {
			t.Errorf("%s: %d\n%s%s", statement, got.code, got.stdout, got.stderr)
		}
	}
	if got := p.query("sql", "SELECT 1", "--csv", "--json"); got.code != 2 {
		t.Errorf("two forms: %+v", got)
	}
	p.query("verify")
	if _, err := os.Stat(filepath.Join(p.data, "index.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("index.db, which nothing signs, after verify: %v", err)
	}
}
