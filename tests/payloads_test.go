package tests

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// With --payloads=hash nothing that a call was told or said is kept, and the hashes are those that it would have had.
func TestOnlyHashesAreKeptOfPayloads(t *testing.T) {
	t.Parallel()
	p := newPlace(t, shTool)
	const told, said, warned = "told-by-the-client-5521", "said-by-the-tool-5522", "warned-by-the-tool-5523"
	script := fmt.Sprintf("# %s\necho said-by-$0-tool-5522 | sed s/sh/the/; echo warned-by-$0-tool-5523 | sed s/sh/the/ >&2; exit 3", told)
	s := p.serve("--payloads=hash")
	f := s.call("sh", sh(script))
	expect(t, f, 3)
	if f.Stdout != said+"\n" || f.Stderr != warned+"\n" {
		t.Errorf("the answer lacks what the tool said: %s", f.Text)
	}
	s.answer(s.begin("invented-5524", object{"x": told}), patience)
	s.stdin.Close()
	s.wait(patience)
	for _, text := range []string{told, said, warned} {
		if files := grep(p.data, text); len(files) > 0 {
			t.Errorf("%s is in %v", text, files)
		}
	}
	rows := p.rows()
	if len(rows) != 2 {
		t.Fatalf("%d rows", len(rows))
	}
	r := rows[0]
	for _, want := range []string{`"payloads":"hash"`, `"input_summary":""`, `"output_summary":""`, `"error_message":"exit status 3"`, sha256Hex(said + "\n"), sha256Hex(warned + "\n"), sha256Hex(toJSON(sh(script)))} {
		if !bytes.Contains(r.raw, []byte(want)) {
			t.Errorf("no %s in %s", want, r.raw)
		}
	}
	if rows[1].Outcome != "unknown_tool" || rows[1].ToolName != "invented-5524" || !strings.Contains(strings.Join(rows[1].Flags, " "), "UNKNOWN_TOOL") {
		t.Errorf("row %s", rows[1].raw)
	}
	if got := p.query("verify"); got.code != 0 {
		t.Errorf("verify: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	p.damaged = true // hashes that open nothing are what was asked for
}
