package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPathsAreResolvedAndMustLieInTheView(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool+`
[tools.list]
description = "A test."
command = ["ls", "-d", "--", "{path}"]
risk = "READ"
[tools.list.params.path]
type = "string"
format = "path"
required = true
`)
	p.write("p/sub/f", "x", 0o644)
	p.write("p-evil/f", "x", 0o644)
	outside := filepath.Join(p.root, "w-evil")
	if err := os.MkdirAll(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(p.root, "home", "secret")
	if err := os.WriteFile(secret, []byte("sentinel-5501"), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"p/link": filepath.Join(p.root, "home"), "p/link2": "sub", "p/dangling": "/no/such"} {
		if err := os.Symlink(target, filepath.Join(p.work, link)); err != nil {
			t.Fatal(err)
		}
	}
	s := p.serve()
	for _, path := range []string{outside, "../w-evil", p.work + "/../w-evil", p.work + "-evil", "p/link", "p/link/secret", p.data, filepath.Join(p.data, "ledger.jsonl"), ""} {
		f := s.call("list", object{"path": path})
		if f.Status != "blocked" || f.Outcome != "invalid_arguments" {
			t.Errorf("%q: %s %s", path, f.Outcome, f.Text)
		}
	}
	for _, path := range []string{"p/./", "p/link2", "p/link2/f", p.work + "/p", "."} {
		if f := s.call("list", object{"path": path}); f.Status != "success" {
			t.Errorf("%q: %s", path, f.Text)
		}
	}
	f := s.call("sh", sh("cat p/link/secret; cat "+secret+"; ls "+p.data+"; true"))
	if strings.Contains(f.Text, "sentinel-5501") || strings.Contains(f.Text, "ledger") {
		t.Errorf("the tool saw what lies outside: %s", f.Text)
	}
}

func TestEnvironmentOfTheServerIsNotTheTools(t *testing.T) {
	t.Parallel()
	tool := func(name, more string) string {
		return fmt.Sprintf("[tools.%s]\ndescription = \"A test.\"\ncommand = [\"env\"]\nrisk = \"READ\"\n%s\n", name, more)
	}
	p := newPlace(t, tool("none", "")+tool("some", `env = { A = "1" }`)+tool("pass", `env_pass = ["PASSED"]`))
	p.env = append(p.env, "FAKE_API_KEY=sentinel-7731", "PASSED=along")
	s := p.serve()
	for tool, want := range map[string]string{"none": "PATH=", "some": "\nA=1\n", "pass": "\nPASSED=along\n"} {
		f := s.call(tool, nil)
		expect(t, f, 0)
		if out := "\n" + f.Stdout; strings.Contains(out, "sentinel-7731") || !strings.Contains(out, want) || !strings.Contains(out, "\nPATH=") || !strings.Contains(out, "\nLANG=") {
			t.Errorf("%s: %s", tool, out)
		}
	}
	if files := grep(p.data, "sentinel-7731"); len(files) > 0 {
		t.Errorf("the server's environment is in %v", files)
	}
}

func TestServerIsOutOfTheToolsReach(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	p.env = append(p.env, "FAKE_API_KEY=sentinel-7732")
	s := p.serve()
	pid := s.cmd.Process.Pid
	script := fmt.Sprintf(`for p in $PPID %d 1; do tr '\0' '\n' < /proc/$p/environ; echo '{"jsonrpc":"2.0","id":99,"result":{}}' > /proc/$p/fd/1; done
kill -0 %d && echo reached; ls /proc/self/fd | wc -l; echo end`, pid, pid)
	f := s.call("sh", sh(script))
	if strings.Contains(f.Stdout, "sentinel-7732") || strings.Contains(f.Stdout, "reached") || !strings.HasSuffix(f.Stdout, "end\n") {
		t.Errorf("stdout %q", f.Stdout)
	}
	if !strings.Contains(f.Stdout, "\n4\nend\n") && f.Stdout != "4\nend\n" { // 0, 1, 2 and the folder that ls reads
		t.Errorf("descriptors were inherited: %q", f.Stdout)
	}
	s.send(request(1, "ping", nil))
	s.answer(1, patience)
	if _, err := s.tryAnswer("99", 1); err == nil {
		t.Error("the tool wrote to the client")
	}
}
