package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// hiding declares a tool that runs a script where these paths of the workspace are hidden.
func hiding(paths ...string) string {
	return shTool + fmt.Sprintf("[tools.sh.sandbox]\nhide = [\"%s\"]\n", strings.Join(paths, `", "`))
}

func TestHiddenLinksOfEveryKindHideWhatTheyLeadTo(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.write("dots/bashrc", "sentinel-5301", 0o644)
	p.write("elsewhere/ssh/id", "sentinel-5302", 0o644)
	p.write("plain", "seen\n", 0o644)
	for link, target := range map[string]string{".bashrc": "dots/bashrc", ".ssh": filepath.Join(p.work, "elsewhere/ssh"), ".netrc": "no/such/file"} {
		if err := os.Symlink(target, filepath.Join(p.work, link)); err != nil {
			t.Fatal(err)
		}
	}
	p.writeCatalog("[catalog]\nname = \"tests\"\n" + hiding(".bashrc", ".ssh", ".netrc"))
	s := p.serve()
	f := s.call("sh", sh("echo ok"))
	expect(t, f, 0)
	if f.Stdout != "ok\n" {
		t.Errorf("stdout %q", f.Stdout)
	}
	f = s.call("sh", sh("cat .bashrc dots/bashrc .ssh/id elsewhere/ssh/id .netrc; ln dots/bashrc hard; cat hard; cat plain"))
	if f.Stdout != "seen\n" {
		t.Errorf("what is hidden was read: %q", f.Text)
	}
}

func TestSwapsOfTheWorkspaceDuring200CallsReachNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	secret := filepath.Join(p.root, "home", "secret")
	if err := os.WriteFile(secret, []byte("sentinel-5601"), 0o644); err != nil {
		t.Fatal(err)
	}
	p.write("p/x/f", "mine\n", 0o644)
	p.write("key", "sentinel-5602", 0o644)
	p.writeCatalog("[catalog]\nname = \"tests\"\n" + hiding("key"))
	s := p.serve()
	x, y := filepath.Join(p.work, "p/x"), filepath.Join(p.work, "p/y")
	stop, done := make(chan bool), make(chan int)
	go func() { // outside, with all rights
		swaps := 0
		for {
			select {
			case <-stop:
				done <- swaps
				return
			default:
				os.Rename(x, y)
				os.Symlink(filepath.Dir(secret), x)
				os.Remove(x)
				os.Rename(y, x)
				swaps++
			}
		}
	}()
	// Inside: what the link leads to; a hard link to what is hidden; the same by way of /proc and of a renamed parent.
	script := "cat p/x/secret p/x/f; ln key h; cat h; cat /proc/self/cwd/key /proc/self/root" + secret + "; mv key k; cat k; cat " + secret + "; echo end"
	together(t, 200, func(int) {
		f := s.call("sh", sh(script))
		if !strings.HasSuffix(f.Stdout, "end\n") || strings.Contains(f.Text, "sentinel-56") {
			t.Errorf("%s", f.Text)
		}
	})
	close(stop)
	if n := <-done; n < 10 {
		t.Errorf("only %d swaps", n)
	}
	for _, sentinel := range []string{"sentinel-5601", "sentinel-5602"} {
		if files := grep(p.data, sentinel); len(files) > 0 {
			t.Errorf("%s is in %v", sentinel, files)
		}
	}
}

func TestAStalePidIsNobodysToKill(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	p.damaged = true // the trace is edited
	canary := exec.Command("sleep", "1022.9")
	if err := canary.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- canary.Wait() }()
	defer canary.Process.Kill()
	s := p.serve()
	id := s.begin("sh", sh("echo up; sleep 61.9"))
	eventually(t, patience, "the call", func() bool { return len(processes("sleep 61.9")) > 0 })
	s.kill()
	runs, err := filepath.Glob(filepath.Join(p.data, "runs", "*.jsonl"))
	if err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	text, err := os.ReadFile(runs[0])
	if err != nil {
		t.Fatal(err)
	}
	edited := regexp.MustCompile(`"pid":\d+`).ReplaceAll(text, fmt.Appendf(nil, `"pid":%d`, canary.Process.Pid))
	if string(edited) == string(text) {
		t.Fatalf("call %d: no pid in %s", id, text)
	}
	if err := os.WriteFile(runs[0], edited, 0o600); err != nil {
		t.Fatal(err)
	}
	next := p.serve()
	expect(t, next.call("sh", sh("true")), 0)
	next.stop()
	noProcess(t, "sleep 61.9")
	select {
	case err := <-ended:
		t.Errorf("the process of that number was ended: %v", err)
	default:
	}
}
