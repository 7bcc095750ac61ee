package rpc

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMembersOfAMessageAreRawPartsOfItsLine(t *testing.T) {
	line := []byte(` { "params" : {"arguments": {"n" : 1.10e+2, "s":"\u00e9"} , "name":"t\u006fol", "x":[]} ,"id": 007 , "jsonrpc":"2.0","method":"tools\/call"}`)
	line = bytes.Replace(line, []byte("007"), []byte("-12345678901234567890"), 1)
	m, f := new(parser).parse(line)
	if f != nil {
		t.Fatal(f)
	}
	if m.kind != isRequest || m.name != "tool" || m.method != "tools/call" || string(m.arguments) != `{"n" : 1.10e+2, "s":"\u00e9"}` || string(m.id.text) != "-12345678901234567890" {
		t.Errorf("%+v", m)
	}
}

func TestFaultsRepeatNothingOfTheLine(t *testing.T) {
	const secret = "hunter2hunter2"
	for _, line := range []string{
		secret,
		`{"jsonrpc":"2.0","id":1,"` + secret + `":1,"` + secret + `":2}`,
		`{"jsonrpc":"` + secret + `","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["` + secret + `"]}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"toolrun/turn":"` + secret + `"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","NAME":"` + secret + `"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":"` + secret + `"}`,
		`{"s":"` + secret + `\ud800"}`,
	} {
		_, f := new(parser).parse([]byte(line))
		if f == nil || strings.Contains(f.text, secret[:4]) {
			t.Errorf("%s: %+v", line, f)
		}
	}
}

func TestIdOfATooLongLineIsFoundInItsHead(t *testing.T) {
	for head, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{"s":"aaaa`: "7",
		`{"jsonrpc":"2.0","params":{"id":9},"id":"a","x":"aaaa`:                                     `"a"`,
		`{"jsonrpc":"2.0","params":{"id":9,"s":"aaaaa`:                                              "",
		`{"id":1.5,"x":"aaa`:       "",
		`{"id":null,"x":"aaa`:      "",
		`{"id":1,"id":2,"x":"aaaa`: "",
		`{"id":12`:                 "",
		`aaaaaaa`:                  "",
		`[{"id":1`:                 "",
		``:                         "",
	} {
		if got := recoverID([]byte(head)); string(got) != want {
			t.Errorf("%s: %q", head, got)
		}
	}
}

func TestTraceparentIsTakenOnlyWhereItIsOne(t *testing.T) {
	const trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for s, ok := range map[string]bool{
		"00-" + trace + "-" + span + "-01":                    true,
		"00-" + trace + "-" + span + "-00":                    true,
		"cc-" + trace + "-" + span + "-01-what-comes":         true,
		"cc-" + trace + "-" + span + "-01x":                   false,
		"00-" + trace + "-" + span + "-01-x":                  false,
		"ff-" + trace + "-" + span + "-01":                    false,
		"00-" + trace + "-" + span + "-0g":                    false,
		"00-" + strings.ToUpper(trace) + "-" + span + "-01":   false,
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01":  false,
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01": false,
		"00-" + trace + "-" + span:                            false,
		"00_" + trace + "-" + span + "-01":                    false,
		"":                                                    false,
	} {
		gotTrace, gotSpan := traceparent(s)
		if ok && (gotTrace != trace || gotSpan != span) || !ok && gotTrace+gotSpan != "" {
			t.Errorf("%q: %q %q", s, gotTrace, gotSpan)
		}
	}
}

// FuzzParse holds the parser against encoding/json: what it takes is valid, unambiguous for the most lenient reader, and
// its answer is one line of JSON.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"n":1},"_meta":{"toolrun/turn":1,"progressToken":"x","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}}`,
		`{"jsonrpc":"2.0","id":"a","method":"ping","params":null,"x":{"y":[]}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1,"ID":2}`, `[{}]`, `{"id":1,"id":2}`, "\xff", `{"a":"\ud800"}`, `{"_meta":{"x-codex-turn-metadata":{"turn_id":"t"}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, fault := new(parser).parse(line)
		if fault != nil {
			answer := appendError(nil, fault.id, fault.code, fault.text, nil)
			if !json.Valid(answer) || !utf8.Valid(answer) || bytes.ContainsAny(answer, "\n") && !bytes.Contains(fault.id, []byte("\n")) {
				t.Errorf("answer %q", answer)
			}
			return
		}
		var v struct {
			Method *string
			Params json.RawMessage
		}
		if err := json.Unmarshal(line, &v); err != nil || !utf8.Valid(line) {
			t.Fatalf("took %q: %v", line, err)
		}
		if m.kind != isResponse && (v.Method == nil || *v.Method != m.method) {
			t.Errorf("method %q of %q", m.method, line)
		}
		if m.params != nil && !bytes.Equal(m.params, v.Params) {
			t.Errorf("params %q of %q", m.params, line)
		}
		if answer := appendResult(nil, m.id.text, []byte("{}")); !json.Valid(answer) {
			t.Errorf("answer %q", answer)
		}
	})
}
