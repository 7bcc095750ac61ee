package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestDeathBySignalIsNeverAnExitCode(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	s := p.serve()
	for _, name := range []string{"KILL", "TERM", "SEGV"} {
		f := s.call("sh", sh("ulimit -c 0; printf before; kill -"+name+" $$"))
		if f.Outcome != "signal" || show(f.Signal) != "SIG"+name || f.ExitCode != nil || !f.IsError || f.Stdout != "before" {
			t.Errorf("%s: outcome %s, signal %s, exit_code %s, stdout %q", name, f.Outcome, show(f.Signal), show(f.ExitCode), f.Stdout)
		}
	}
	for _, code := range []int{137, 255, 1} {
		f := s.call("sh", sh(fmt.Sprintf("exit %d", code)))
		expect(t, f, code)
		if f.Outcome != "exit" {
			t.Errorf("exit %d: outcome %s", code, f.Outcome)
		}
	}
	for _, r := range p.rows() {
		if strings.Contains(string(r.raw), "-1") && (r.ExitCode != nil && *r.ExitCode < 0) {
			t.Errorf("a row holds -1: %s", r.raw)
		}
	}
}

func TestExitErrorCarriesTheLastLineOfStderr(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	s := p.serve()
	expect(t, s.call("sh", sh("echo first >&2; echo 'what went wrong' >&2; echo >&2; exit 3")), 3)
	if got := show(p.rows()[0].ErrorMessage); got != "exit status 3: what went wrong" {
		t.Errorf("error_message %q", got)
	}
}

func TestProgramThatCannotStartIsSpawnFailed(t *testing.T) {
	t.Parallel()
	p := barePlace(t, "")
	needSandbox(t)
	plain := p.write("plain", "no program", 0o644)
	script := p.write("script", "#!/no/such/interpreter\n", 0o755)
	commands := []struct{ name, path, why string }{
		{"missing", "/no/such", "no such file"},
		{"directory", filepath.Dir(plain), "permission denied"},
		{"plain", plain, "permission denied"},
		{"script", script, "no such file"},
	}
	catalog := "[catalog]\nname = \"tests\"\n"
	for _, c := range commands {
		catalog += fmt.Sprintf("[tools.%s]\ndescription = \"A test.\"\ncommand = [%q]\nrisk = \"READ\"\n", c.name, c.path)
	}
	p.writeCatalog(catalog)
	s := p.serve()
	for i, c := range commands {
		f := s.facts(s.begin(c.name, nil), 5*time.Second)
		expect(t, f, "spawn_failed")
		if f.ExitCode != nil || f.Signal != nil || !f.IsError {
			t.Errorf("%s: exit_code %s, signal %s, isError %t", c.name, show(f.ExitCode), show(f.Signal), f.IsError)
		}
		r := p.rows()[i]
		if why := show(r.ErrorMessage); !strings.Contains(why, c.path) || !strings.Contains(strings.ToLower(why), c.why) {
			t.Errorf("%s: error_message %q", c.name, why)
		}
	}
	s.send(request(1, "ping", nil))
	s.answer(1, patience)
}

func TestFreshlyWrittenExecutableRuns(t *testing.T) {
	t.Parallel()
	const programs = 8
	catalog := shTool
	for i := range programs {
		catalog += fmt.Sprintf("[tools.run%d]\ndescription = \"A test.\"\ncommand = [\"./x%d\"]\nrisk = \"READ\"\n", i, i)
	}
	p := newPlace(t, catalog)
	s := p.serve()
	var wg sync.WaitGroup
	for i := range programs {
		wg.Go(func() {
			for round := range 25 {
				write := fmt.Sprintf("rm -f x%d; printf '#!/bin/sh\\necho %d' > x%d; chmod 755 x%d", i, round, i, i)
				if round%2 == 0 {
					write = fmt.Sprintf("rm -f x%d; cat /bin/true > x%d; chmod 755 x%d", i, i, i)
				}
				if f := s.call("sh", sh(write)); f.Status != "success" {
					t.Errorf("write: %s", f.Text)
				}
				if f := s.call(fmt.Sprintf("run%d", i), nil); f.Status != "success" {
					t.Errorf("run: %s", f.Text)
				}
			}
		})
	}
	wg.Wait()
}

func TestProgramIsLookedUpInTheToolsPath(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	a := filepath.Dir(p.write("a/mytool", "#!/bin/sh\necho A\n", 0o755))
	b := filepath.Dir(p.write("b/mytool", "#!/bin/sh\necho B\n", 0o755))
	p.env[0] = "PATH=" + a + ":" + strings.TrimPrefix(p.env[0], "PATH=")
	p.writeCatalog(fmt.Sprintf("[catalog]\nname = \"tests\"\n[tools.mytool]\ndescription = \"A test.\"\ncommand = [\"mytool\"]\nrisk = \"READ\"\nenv = { PATH = %q }\n", b+":/usr/bin:/bin"))
	s := p.serve()
	if f := s.call("mytool", nil); f.Stdout != "B\n" {
		t.Errorf("stdout %q\n%s", f.Stdout, f.Text)
	}
}

const printTool = `
[tools.print]
description = "A test."
command = ["printf", "%s", "{s}"]
risk = "READ"
[tools.print.params.s]
type = "string"
required = true
dash = true
[tools.feed]
description = "A test."
command = ["cat"]
stdin = "{s}"
risk = "READ"
[tools.feed.params.s]
type = "string"
required = true
`

func TestNULInAnArgumentIsRefusedAndReachesStdin(t *testing.T) {
	t.Parallel()
	p := newPlace(t, printTool)
	s := p.serve()
	f := s.call("print", object{"s": "a\x00b"})
	expect(t, f, "invalid_arguments")
	if !strings.Contains(f.Text, "s") || f.Stdout != "" {
		t.Errorf("%s", f.Text)
	}
	f = s.call("feed", object{"s": "a\x00b"})
	expect(t, f, 0)
	if got := p.object(*f.OutputHash); got != "a\x00b" {
		t.Errorf("%q arrived", got)
	}
}

func TestArgumentsAreNeverShell(t *testing.T) {
	t.Parallel()
	p := newPlace(t, printTool+`
[tools.grep]
description = "A test."
command = ["grep", "{pattern}", "f.txt"]
risk = "READ"
[tools.grep.params.pattern]
type = "string"
required = true
[tools.grep_after]
description = "A test."
command = ["grep", "--", "{pattern}", "f.txt"]
risk = "READ"
[tools.grep_after.params.pattern]
type = "string"
required = true
`)
	p.write("f.txt", "a --help line\n", 0o644)
	s := p.serve()
	text := "$(touch PWN); `touch PWN` | touch PWN\n\" touch PWN"
	if f := s.call("print", object{"s": text}); f.Stdout != text {
		t.Errorf("stdout %q", f.Stdout)
	}
	if _, err := os.Stat(filepath.Join(p.work, "PWN")); err == nil {
		t.Error("PWN exists")
	}
	for _, pattern := range []string{"--help", "-f/etc/passwd", "-"} {
		expect(t, s.call("grep", object{"pattern": pattern}), "invalid_arguments")
	}
	if f := s.call("grep_after", object{"pattern": "--help"}); f.Stdout != "a --help line\n" {
		t.Errorf("stdout %q\n%s", f.Stdout, f.Text)
	}
}

func TestUnreadStdinIsNoError(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `
[tools.ignore]
description = "A test."
command = ["true"]
stdin = "{s}"
risk = "READ"
[tools.ignore.params.s]
type = "string"
required = true
[tools.three]
description = "A test."
command = ["sh", "-c", "head -c 3; exec <&-; sleep 1"]
stdin = "{s}"
risk = "READ"
[tools.three.params.s]
type = "string"
required = true
`)
	s := p.serve()
	big := object{"s": strings.Repeat("abcdefgh", 128<<10)}
	f := s.call("ignore", big)
	expect(t, f, 0)
	f = s.facts(s.begin("three", big), 5*time.Second)
	expect(t, f, 0)
	if f.Stdout != "abc" || f.Outcome != "ok" {
		t.Errorf("stdout %q, outcome %s", f.Stdout, f.Outcome)
	}
}

func TestToolsSpeakUTF8(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	for i, v := range p.env {
		if strings.HasPrefix(v, "LANG=") {
			p.env[i] = "LANG=C"
		}
	}
	s := p.serve()
	if f := s.call("sh", sh("locale charmap")); f.Stdout != "UTF-8\n" {
		t.Errorf("charmap %q\n%s", f.Stdout, f.Text)
	}
	if f := s.call("sh", sh(`printf '\342\206\222\n'`)); f.Stdout != "→\n" {
		t.Errorf("stdout %q", f.Stdout)
	}
}

func TestNobodyButTheCatalogSetsATimeout(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	s := p.serve()
	for _, name := range []string{"timeout", "timeout_ms"} {
		f := s.call("sh", object{"script": "true", name: 90000})
		expect(t, f, "invalid_arguments")
		if !strings.Contains(f.Text, name) {
			t.Errorf("the refusal does not name %s: %s", name, f.Text)
		}
	}
	for _, value := range []string{`0`, `-1`, `1.5`, `5`, `"0s"`, `"-1s"`, `"5"`, `"999999999h"`} {
		q := barePlace(t, fixed("slow", "true", "timeout = "+value))
		got := q.run("serve")
		if got.code != 2 || !strings.Contains(got.stderr, "timeout") || !strings.Contains(got.stderr, "tools.toml:") {
			t.Errorf("timeout = %s: exit %d, %s", value, got.code, got.stderr)
		}
	}
}
