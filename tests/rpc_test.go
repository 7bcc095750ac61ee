package tests

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

func TestLongLinesAreReadAndTooLongOnesAnswered(t *testing.T) {
	t.Parallel()
	p := newPlace(t, printTool)
	s := p.serve()
	f := s.call("feed", object{"s": strings.Repeat("a", 1<<20)})
	if f.StdoutBytes != 1<<20 {
		t.Errorf("%d bytes came back", f.StdoutBytes)
	}
	for i, length := range []int{65535, 65536, 65537} {
		line := callLine(10+i, "feed", object{"s": ""})
		pad := length - len(line)
		s.send(strings.Replace(line, `"s":""`, `"s":"`+strings.Repeat("b", pad)+`"`, 1))
		if f := s.facts(10+i, patience); f.StdoutBytes != int64(pad) {
			t.Errorf("line of %d bytes: %d of %d came back", length, f.StdoutBytes, pad)
		}
	}
	s.send(callLine(20, "feed", object{"s": strings.Repeat("c", 20<<20)}), request(21, "ping", nil))
	s.answer(21, patience)
	a, err := s.tryAnswer("20", time.Second)
	if err != nil {
		a = s.answer("null", patience)
	}
	if a.Error == nil || a.Error.Code != -32600 && a.Error.Code != -32700 {
		t.Errorf("answer to the too long line: %s", toJSON(a))
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if _, rest, ok := strings.Cut(string(status), "VmHWM:"); ok {
		var kib int64
		fmt.Sscan(rest, &kib)
		if kib > 400<<10 {
			t.Errorf("the server took %d MiB", kib>>10)
		}
	}
}

func TestRowIsWrittenAlthoughNobodyReadsTheAnswer(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	s := p.serve("--eof-grace", "10s")
	s.begin("sh", sh("sleep 1; echo x"))
	eventually(t, 10*time.Second, "the call has begun", func() bool { return len(grep(p.data+"/runs", `"tool_call"`)) > 0 })
	s.stdout.Close()
	eventually(t, 10*time.Second, "a row", func() bool { rows, _ := readRows(p.data); return len(rows) == 1 })
	s.stdin.Close()
	if code := s.wait(10 * time.Second); code != 0 {
		t.Errorf("the server ended with %d", code)
	}
	if r := p.rows()[0]; r.Outcome != "ok" || show(r.ExitCode) != "0" || r.OutputBytes != 2 {
		t.Errorf("row %s", r.raw)
	}
}

func TestServersEndWithTheirClient(t *testing.T) {
	t.Parallel()
	for i, way := range []struct {
		name string
		end  func(*server)
	}{
		{"both pipes closed", func(s *server) { s.stdout.Close(); s.stdin.Close() }},
		{"stdin closed", func(s *server) { s.stdin.Close() }},
		{"SIGTERM", func(s *server) { s.cmd.Process.Signal(syscall.SIGTERM) }},
		{"SIGHUP", func(s *server) { s.cmd.Process.Signal(syscall.SIGHUP) }},
		{"SIGINT", func(s *server) { s.cmd.Process.Signal(os.Interrupt) }},
	} {
		marker := fmt.Sprintf("sleep 66.%d", 61+i)
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, shTool)
			const servers = 10
			var all []*server
			for range servers {
				s := p.serve("--eof-grace", "2s")
				s.begin("sh", sh("echo begun; "+marker))
				all = append(all, s)
			}
			eventually(t, 20*time.Second, "all calls run", func() bool {
				return len(processes(marker)) >= servers && len(grep(p.data+"/runs", `"tool_call"`)) == servers
			})
			for _, s := range all {
				way.end(s)
			}
			for _, s := range all {
				s.wait(10 * time.Second) // 2 s of grace, 2 s to end, and a machine that runs fifty of them
			}
			noProcess(t, marker)
			rows := p.rows()
			if len(rows) != servers {
				t.Fatalf("%d rows", len(rows))
			}
			for _, r := range rows {
				if r.Outcome != "interrupted" {
					t.Errorf("outcome %s", r.Outcome)
				}
			}
		})
	}
}

func TestRequestsReadBeforeEOFAreAnswered(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	s := p.serve()
	var ids []int
	for i := range 20 {
		ids = append(ids, s.begin("sh", sh(fmt.Sprintf("sleep 0.3; echo %d", i))))
	}
	s.stdin.Close()
	for i, id := range ids {
		if f := s.facts(id, patience); f.Stdout != fmt.Sprintln(i) {
			t.Errorf("call %d: %q", i, f.Stdout)
		}
	}
	if code := s.wait(10 * time.Second); code != 0 {
		t.Errorf("the server ended with %d", code)
	}
}

func TestCancelAtAnyMomentGivesOneRowAndAtMostOneAnswer(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "[tools.quick]\ndescription = \"A test.\"\ncommand = [\"true\"]\nrisk = \"READ\"\n")
	s := p.serve()
	const calls = 2000
	cancel := func(id any) string {
		return request(nil, "notifications/cancelled", object{"requestId": id, "reason": "AbortError"})
	}
	for id := 1; id <= calls; id++ {
		s.send(callLine(id, "quick", nil))
		pause := time.After(time.Duration(rand.IntN(5000)) * time.Microsecond)
		<-pause
		s.send(cancel(id), cancel(id+100000), cancel(fmt.Sprint(id)), cancel(id))
		if id%16 == 0 {
			s.send(request(fmt.Sprintf("p%d", id), "ping", nil))
			s.answer(fmt.Sprintf("%q", fmt.Sprintf("p%d", id)), patience)
		}
	}
	eventually(t, patience, "a row for each call", func() bool { rows, _ := readRows(p.data); return len(rows) == calls })
	s.send(request(0, "ping", nil))
	s.answer(0, patience)
	for _, r := range p.rows() {
		if r.Outcome != "ok" && r.Outcome != "cancelled" {
			t.Errorf("outcome %s", r.Outcome)
		}
	}
}

func TestCancelledCallIsKilledAndNotAnswered(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	s := p.serve()
	s.send(callLine(5, "sh", sh("echo captured; touch printed; sleep 62.7")))
	eventually(t, 10*time.Second, "the call runs", func() bool { return exists(p.work + "/printed") })
	s.send(request(nil, "notifications/cancelled", object{"requestId": 5}))
	eventually(t, 5*time.Second, "a row", func() bool { rows, _ := readRows(p.data); return len(rows) == 1 })
	noProcess(t, "sleep 62.7")
	r := p.rows()[0]
	if r.Outcome != "cancelled" || r.Status != "error" || r.OutputHash == nil || p.object(*r.OutputHash) != "captured\n" {
		t.Errorf("row %s", r.raw)
	}
	s.send(request(6, "ping", nil))
	s.answer(6, patience)
	if _, err := s.tryAnswer("5", 1); err == nil {
		t.Error("a cancelled call was answered")
	}
}

func TestSlowCallHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	s := p.serve()
	s.call("sh", sh("true")) // warm
	s.send(callLine(2, "sh", sh("sleep 62.5")))
	start := time.Now()
	s.send(request(3, "ping", nil), request(4, "tools/list", nil), callLine(5, "sh", sh("echo hi")))
	for _, id := range []int{3, 4, 5} {
		s.answer(id, patience)
	}
	if took := time.Since(start); took > 2*time.Second { // 0.5 s on a machine that does nothing else
		t.Errorf("answers after %v", took)
	}
	s.send(request(nil, "notifications/cancelled", object{"requestId": 2}))
}

func TestMalformedLinesAreAnsweredAndEndNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	s := p.serve()
	code := func(id string, want int) {
		t.Helper()
		a := s.answer(id, patience)
		if a.Error == nil || a.Error.Code != want || a.Error.Message == "" {
			t.Errorf("id %s: %s, want code %d", id, toJSON(a), want)
		}
	}
	nulls := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.answers["null"])
	}
	for i, line := range []string{"not json", "[]", "{", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, "\xff\xfe"} {
		s.send(line)
		eventually(t, patience, fmt.Sprintf("an answer to %q", line), func() bool { return nulls() == i+1 })
	}
	s.mu.Lock()
	for i, want := range []int{-32700, -32600, -32700, -32600} {
		if a := s.answers["null"][i]; a.Error == nil || a.Error.Code != want {
			t.Errorf("line %d: %s, want code %d", i, toJSON(a), want)
		}
	}
	s.mu.Unlock()
	s.send(`{"jsonrpc":"2.0","id":7,"method":"nope"}`, `{"jsonrpc":"2.0","id":70,"method":"tools/call","params":["a"]}`,
		`{"jsonrpc":"1.0","id":8,"method":"ping"}`, `{"jsonrpc":"2.0","id":9}`, "", "  ", `{"jsonrpc":"2.0","id":10,"method":"ping"}`)
	code("7", -32601)
	code("70", -32602)
	code("8", -32600)
	code("9", -32600)
	if a := s.answer(10, patience); a.Error != nil {
		t.Errorf("ping: %s", toJSON(a))
	}
}

func TestNumbersReachTheToolDigitForDigit(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `
[tools.integer]
description = "A test."
command = ["printf", "%s", "{n}"]
risk = "READ"
[tools.integer.params.n]
type = "integer"
required = true
dash = true
[tools.number]
description = "A test."
command = ["printf", "%s", "{n}"]
risk = "READ"
[tools.number.params.n]
type = "number"
required = true
dash = true
`)
	s := p.serve()
	for _, n := range []string{"9007199254740993", "9223372036854775807", "18446744073709551616", "0.1", "1e2", "-0", "1.10", "123456789012345678901234567890"} {
		for _, tool := range []string{"integer", "number"} {
			f := s.call(tool, object{"n": json.RawMessage(n)})
			whole := !strings.ContainsAny(n, ".")
			if tool == "integer" && !whole {
				expect(t, f, "invalid_arguments")
				continue
			}
			if f.Stdout != n {
				t.Errorf("%s %s: stdout %q %s", tool, n, f.Stdout, f.Outcome)
			}
		}
	}
	for _, r := range p.rows() {
		stored := p.object(r.InputHash)
		if stored == `{"n":9007199254740992}` {
			t.Error("the stored input lost a digit")
		}
	}
	if p.rows()[0].InputHash != sha256Hex(`{"n":9007199254740993}`) {
		t.Errorf("stored input %q", p.object(p.rows()[0].InputHash))
	}
}

func TestLoneSurrogatesAreRefusedNeverReplaced(t *testing.T) {
	t.Parallel()
	p := newPlace(t, printTool)
	s := p.serve()
	s.send(callLine(1, "print", json.RawMessage(`{"s":"a\ud800b"}`)), callLine(2, "print", json.RawMessage(`{"\ud800":"x"}`)),
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x\udcaa","arguments":{}}}`, request(4, "ping", nil))
	s.answer(4, patience)
	eventually(t, patience, "three refusals", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.lines) == 4
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.lines {
		if !utf8.ValidString(line) || strings.Contains(line, "\ufffd") || strings.Contains(line, `"success"`) {
			t.Errorf("answer %q", line)
		}
	}
	if files := grep(p.data, "\ufffd"); len(files) > 0 {
		t.Errorf("U+FFFD in %v", files)
	}
}

func TestBinaryOutputIsStoredAsItIs(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	s := p.serve()
	f := s.call("sh", sh(`printf 'a\377\376\000b\n'`))
	if f.StdoutBytes != 6 || show(f.OutputHash) != "50ee3ddb41446bed8d4f4cba9c20cb112bafc645e63c939434e24791d12d35f5" {
		t.Errorf("%d bytes, hash %s", f.StdoutBytes, show(f.OutputHash))
	}
	if p.object(*f.OutputHash) != "a\xff\xfe\x00b\n" {
		t.Error("the object is not what the tool wrote")
	}
	f = s.call("sh", sh(`printf '\342\202'; sleep 0.3; printf '\254\n'`))
	if f.Stdout != "€\n" || show(f.OutputHash) != "e4c27b5033c47b8ebfe7eb3dda171c56b98ec637ca80bcc302ad50424fd05979" {
		t.Errorf("stdout %q", f.Stdout)
	}
}

func TestFullStderrBlocksNobody(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	cmd := p.command("serve", "--log-level", "debug")
	unread, childErr := pipe(t)
	defer unread.Close()
	cmd.Stderr = childErr
	s := p.start(cmd)
	childErr.Close()
	f := s.facts(s.begin("sh", sh("head -c 1048576 /dev/zero >&2; echo ok")), 10*time.Second)
	if f.Stdout != "ok\n" || f.StderrBytes != 1<<20 {
		t.Errorf("stdout %q, %d bytes of stderr", f.Stdout, f.StderrBytes)
	}
	together(t, 500, func(i int) {
		id := fmt.Sprintf("s%d", i)
		s.send(request(id, "ping", nil), callLine("u"+id, "no_such_tool", nil))
		s.answer(fmt.Sprintf("%q", id), patience)
		s.answer(fmt.Sprintf("%q", "u"+id), patience)
	})
}

func TestIdsAreEchoedAsTheyCame(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	s := p.serve()
	for _, id := range []string{`0`, `""`, `"1"`, `1`, `-1`, `9007199254740993`} {
		s.send(request(json.RawMessage(id), "ping", nil))
		if a := s.answer(id, patience); a.Error != nil {
			t.Errorf("id %s: %s", id, toJSON(a))
		}
	}
	s.send(request(json.RawMessage("null"), "ping", nil))
	if a := s.answer("null", patience); a.Error == nil || a.Error.Code != -32600 {
		t.Errorf("id null: %s", toJSON(a))
	}
	s.send(request(json.RawMessage("1.5"), "ping", nil), request("end", "ping", nil))
	s.answer(`"end"`, patience)
	if _, err := s.tryAnswer("1.5", time.Second); err != nil {
		eventually(t, patience, "an answer to id 1.5", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.answers["null"]) == 2 })
	}
}

func TestIdInFlightCannotBeUsedAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	s := p.serve()
	s.send(callLine(4, "sh", sh("sleep 1; echo first")), callLine(4, "sh", sh("echo second")))
	eventually(t, patience, "two answers", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.answers["4"]) == 2
	})
	s.mu.Lock()
	all := s.answers["4"]
	delete(s.answers, "4") // two answers to one id are right here and nowhere else
	s.mu.Unlock()
	if a := all[0]; a.Error == nil || a.Error.Code != -32600 {
		t.Errorf("the second request: %s", toJSON(a))
	}
	if f, err := factsOf(all[1]); err != nil || f.Stdout != "first\n" {
		t.Errorf("the first request: %+v %v", f, err)
	}
}

func TestBareCallAsFirstLineWorks(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	s := p.serve()
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sh","arguments":{"script":"echo hi"}}}`)
	if f := s.facts(1, patience); f.Stdout != "hi\n" {
		t.Errorf("stdout %q", f.Stdout)
	}
}

func TestEachPublishedVersionIsSpoken(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		s := p.serve()
		s.send(request(0, "initialize", object{"protocolVersion": version, "capabilities": object{}, "clientInfo": object{"name": "t", "version": "1"}}))
		a := s.answer(0, patience)
		if !strings.Contains(string(a.Result), version) {
			t.Errorf("%s: %s", version, toJSON(a))
		}
		s.send(request(nil, "notifications/initialized", nil), request(1, "tools/list", nil), callLine(2, "sh", sh("echo hi")))
		if a := s.answer(1, patience); !strings.Contains(string(a.Result), `"sh"`) {
			t.Errorf("%s: %s", version, toJSON(a))
		}
		s.facts(2, patience)
		s.stdin.Close()
	}
	s := p.serve()
	meta := object{"_meta": object{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": object{"name": "t", "version": "1"}, "io.modelcontextprotocol/clientCapabilities": object{}}}
	s.send(request("d", "server/discover", meta), request("l", "tools/list", meta))
	if a := s.answer(`"d"`, patience); !strings.Contains(string(a.Result), "2026-07-28") {
		t.Errorf("discover: %s", toJSON(a))
	}
	if a := s.answer(`"l"`, patience); !strings.Contains(string(a.Result), `"sh"`) {
		t.Errorf("list: %s", toJSON(a))
	}
}
