package tests

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// shTool runs any script; most tests need no more.
const shTool = `
[tools.sh]
description = "Runs a script with sh."
command = ["sh", "-c", "{script}"]
risk = "READ"
[tools.sh.params.script]
type = "string"
required = true
`

// sh are the arguments of shTool.
func sh(script string) object { return object{"script": script} }

// fixed declares a tool that always runs the same script, with further keys of the tool.
func fixed(name, script string, more ...string) string {
	script = strings.ReplaceAll(script, "{", "{{") // a brace of the script, not a parameter
	return fmt.Sprintf("[tools.%s]\ndescription = \"A test.\"\ncommand = [\"sh\", \"-c\", '''%s''']\nrisk = \"READ\"\n%s\n", name, script, strings.Join(more, "\n"))
}

// expect fails where a call did not end as the test says: an exit code, or an outcome name.
func expect(t *testing.T, f facts, end any) {
	t.Helper()
	switch end := end.(type) {
	case int:
		if f.ExitCode == nil || *f.ExitCode != end || f.Signal != nil {
			t.Fatalf("exit_code %s, signal %s, outcome %s, want exit code %d\n%s", show(f.ExitCode), show(f.Signal), f.Outcome, end, f.Text)
		}
	case string:
		if f.Outcome != end {
			t.Fatalf("outcome %s, exit_code %s, signal %s, want outcome %s\n%s", f.Outcome, show(f.ExitCode), show(f.Signal), end, f.Text)
		}
	}
}

// together makes n calls, at most eight at a time, and stops early where the test has failed.
func together(t *testing.T, n int, call func(i int)) {
	t.Helper()
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := range n {
		slots <- struct{}{}
		if t.Failed() {
			break
		}
		wg.Go(func() { defer func() { <-slots }(); call(i) })
	}
	wg.Wait()
}

func TestTimeoutEndsEveryMemberOfAPipeline(t *testing.T) {
	t.Parallel()
	p := newPlace(t, fixed("pipeline", "echo up; sleep 61.7 | cat", `timeout = "1s"`))
	s := p.serve()
	f := s.facts(s.begin("pipeline", nil), 4*time.Second)
	expect(t, f, "timeout")
	if f.Stdout != "up\n" || f.ExitCode != nil {
		t.Errorf("stdout %q, exit_code %s", f.Stdout, show(f.ExitCode))
	}
	noProcess(t, "sleep 61.7")
	if n := len(p.rows()); n != 1 {
		t.Errorf("%d rows", n)
	}
}

func TestBackgroundGrandchildDoesNotHoldTheCallNorFailIt(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	s := p.serve()
	start := time.Now()
	f := s.call("sh", sh("echo started; sleep 31.9 & exit 0"))
	expect(t, f, 0)
	if f.Stdout != "started\n" || f.Outcome != "ok" || time.Since(start) > 2*time.Second {
		t.Errorf("stdout %q, outcome %s after %v", f.Stdout, f.Outcome, time.Since(start))
	}
	noProcess(t, "sleep 31.9")
}

func TestTimeoutEndsEveryShapeOfShellScript(t *testing.T) {
	t.Parallel()
	shapes := []string{"sleep 20.1", "sleep 20.1; true", "sleep 20.1 & wait", "(sleep 20.1)", "sleep 20.1 | cat"}
	catalog := ""
	for i, shape := range shapes {
		for _, shell := range []string{"dash", "bash"} {
			catalog += fmt.Sprintf("[tools.%s_%d]\ndescription = \"A test.\"\ncommand = [\"%s\", \"-c\", \"%s\"]\nrisk = \"READ\"\ntimeout = \"2s\"\n", shell, i, shell, shape)
		}
	}
	p := newPlace(t, catalog)
	s := p.serve()
	var ids []int
	for i := range shapes {
		ids = append(ids, s.begin(fmt.Sprintf("dash_%d", i), nil), s.begin(fmt.Sprintf("bash_%d", i), nil))
	}
	for _, id := range ids {
		f := s.facts(id, 10*time.Second)
		expect(t, f, "timeout")
		if f.DurationMS < 2000 || f.DurationMS > 5000 {
			t.Errorf("%d ms", f.DurationMS)
		}
	}
	noProcess(t, "sleep 20.1")
}

func TestProcessSubstitutionIsWaitedFor(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[tools.tee]
description = "A test."
command = ["bash", "-c", "exec > >(cat) 2>&1; echo hi"]
risk = "READ"
`)
	s := p.serve()
	together(t, 50, func(int) {
		f := s.call("tee", nil)
		if f.Stdout != "hi\n" || show(f.ExitCode) != "0" || f.DurationMS > 5000 {
			t.Errorf("stdout %q, exit_code %s", f.Stdout, show(f.ExitCode))
		}
	})
}

func TestStdinOfTheServerIsNotTheTools(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "[tools.cat]\ndescription = \"A test.\"\ncommand = [\"cat\"]\nrisk = \"READ\"\n")
	s := p.serve()
	s.send(callLine(2, "cat", nil), request(3, "ping", nil))
	f := s.facts(2, patience)
	s.answer(3, patience)
	if f.Stdout != "" || f.StdoutBytes != 0 {
		t.Errorf("the tool read %q", f.Stdout)
	}
	if files := grep(p.data, `"ping"`); len(files) > 0 {
		t.Errorf("the next request is in %v", files)
	}
}

func TestOutputIsComplete(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "[tools.seq]\ndescription = \"A test.\"\ncommand = [\"seq\", \"1\", \"100000\"]\nrisk = \"READ\"\n")
	s := p.serve()
	const want = "b2bc7d3f8b652d2ec96865b68ad8f80e22cca174abe1aed7889e242a747d590f"
	together(t, 50, func(int) {
		f := s.call("seq", nil)
		if f.StdoutBytes != 588895 || show(f.OutputHash) != want {
			t.Errorf("%d bytes, hash %s", f.StdoutBytes, show(f.OutputHash))
		}
	})
}

func TestPreviewHasHeadMarkAndTail(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	s := p.serve()
	f := s.call("sh", sh(`i=1; while [ $i -le 400 ]; do printf 'line %d %0990d\n' $i 0; i=$((i+1)); done; echo FATAL-LAST; exit 2`))
	expect(t, f, 2)
	for _, part := range []string{"line 1 0", "FATAL-LAST"} {
		if !strings.Contains(f.Stdout, part) || !strings.Contains(f.Text, part) {
			t.Errorf("the preview lacks %q", part)
		}
	}
	full := p.object(*f.OutputHash)
	if int64(len(full)) != f.StdoutBytes || !strings.HasSuffix(full, "FATAL-LAST\n") {
		t.Errorf("the object has %d bytes of %d", len(full), f.StdoutBytes)
	}
	if len(f.Stdout) > 12<<10 || !strings.Contains(f.Stdout, "bytes") {
		t.Errorf("preview of %d bytes without a mark", len(f.Stdout))
	}
}

func TestOneHugeLineHasAPreview(t *testing.T) {
	t.Parallel()
	const xs = `head -c 300000 /dev/zero | tr '\0' x`
	catalog := shTool
	capped := []string{xs, xs + "; echo", `head -c 2097152 /dev/zero | tr '\0' y | dd bs=2097152 iflag=fullblock status=none`}
	for i, script := range capped {
		catalog += fixed(fmt.Sprintf("capped%d", i), script, `limits = { output = "50KiB" }`)
	}
	p := newPlace(t, catalog)
	s := p.serve()
	for script, bytes := range map[string]int64{xs + "; echo": 300001, xs: 300000, `head -c 2097152 /dev/zero | tr '\0' y | dd bs=2097152 iflag=fullblock status=none`: 2097152} {
		f := s.call("sh", sh(script))
		if len(f.Stdout) < 1000 || f.StdoutBytes != bytes {
			t.Errorf("%d bytes gave a preview of %d: %.100q", f.StdoutBytes, len(f.Stdout), f.Stdout)
		}
		if bytes == 300000 && show(f.OutputHash) != "29927e273accc68286005017f7fa6e4f27bddb4db3083ff8b8d4c3667905b7fa" {
			t.Errorf("hash %s", show(f.OutputHash))
		}
	}
	for i, bytes := range []int64{300000, 300001, 2097152} {
		if f := s.call(fmt.Sprintf("capped%d", i), nil); !f.Truncated || f.StdoutBytes != bytes || len(f.Stdout) < 1000 {
			t.Errorf("capped %d: truncated %t, %d bytes, preview of %d", i, f.Truncated, f.StdoutBytes, len(f.Stdout))
		}
	}
}

func TestEndlessOutputDoesNotFillTheDisk(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "[tools.yes]\ndescription = \"A test.\"\ncommand = [\"yes\"]\nrisk = \"READ\"\ntimeout = \"3s\"\nlimits = { output = \"1MiB\", output_total = \"256MiB\" }\n")
	s := p.serve()
	id := s.begin("yes", nil)
	var most int64
	eventually(t, 10*time.Second, "an answer", func() bool {
		most = max(most, usage(p.data))
		_, err := s.tryAnswer(fmt.Sprint(id), time.Nanosecond)
		return err == nil
	})
	f := s.facts(id, patience)
	if f.Outcome != "output_limit" && f.Outcome != "timeout" || !f.Truncated {
		t.Errorf("outcome %s, truncated %t", f.Outcome, f.Truncated)
	}
	if most > 3<<20 {
		t.Errorf("the data directory grew to %d bytes", most)
	}
}
