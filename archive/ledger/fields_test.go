package ledger

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"toolrun/archive/redact"
)

func all() (list []Column) {
	for i := range columns {
		list = append(list, Column(i))
	}
	return list
}

// used is a Fields that has seen other lines.
var used Fields

// agree holds Fields against the full parser, and tells whether Fields took the line.
func agree(t *testing.T, line []byte) bool {
	t.Helper()
	var f Fields
	takes := f.Scan(line)
	if used.Scan(line) != takes {
		t.Fatalf("taken by a fresh one: %v, by a used one: %v: %q", takes, !takes, line)
	}
	if !takes {
		return false
	}
	for _, c := range all() {
		if !bytes.Equal(used.Raw(c), f.Raw(c)) {
			t.Fatalf("%s: %q, of a used one %q: %q", columns[c].key, f.Raw(c), used.Raw(c), line)
		}
	}
	row, _, err := parse(line)
	if err != nil {
		t.Fatalf("taken, but %v: %q", err, line)
	}
	for _, f := range []*Fields{&f, &used, &used} {
		part, err := f.Part(all())
		if err != nil || !bytes.Equal(part.Append(nil), row.Append(nil)) {
			t.Fatalf("%v\n%s\n%s", err, part.Append(nil), row.Append(nil))
		}
	}
	return true
}

func TestFieldsTakeWhatAppendWritesAndNothingThatIsNoRow(t *testing.T) {
	full, bare, odd := sample(), &Row{Flags: []string{}, Enforced: []string{}}, sample()
	odd.OutputSummary = redact.Plain("a\x00b\x1b[2J \\\" \u2028 日本 \U0001f600 \\")
	odd.Flags = []string{"A", `B"]`, "C\\", strings.Repeat(`d"\`, longArray)}
	full.Enforced = []string{"view", strings.Repeat("landlock", longArray/8)}
	odd.EstimatedCostUSD = ptr(0.0)
	for _, row := range []*Row{full, bare, odd} {
		line := row.Append(nil)
		if !agree(t, line) {
			t.Errorf("not taken: %s", line)
		}
		step := 1
		if row != odd {
			step = 7
		}
		for i := 0; i < len(line); i += step {
			for _, c := range []byte("\x1f\"\\,}0n\xff") {
				changed := bytes.Clone(line)
				changed[i] = c
				agree(t, changed)
			}
			agree(t, line[:i])
			agree(t, append(bytes.Clone(line[:i]), line[i+1:]...))
		}
		if agree(t, append(line, ' ')) || agree(t, append(line, '}')) {
			t.Error("more than a row is taken")
		}
	}
}

func TestFieldsGiveValuesAsTheyAre(t *testing.T) {
	row := sample()
	row.SessionID, row.Model = redact.Plain("s \"1\" \u2028"), nil
	row.DeclinedBy = redact.JSON{}
	var f Fields
	if !f.Scan(row.Append(nil)) {
		t.Fatal("not taken")
	}
	session := ColumnOf("session_id")
	if !f.Is(session, "s \"1\" \u2028") || f.Is(session, "s") || string(f.Text([]byte("x"), session)) != "xs \"1\" \u2028" {
		t.Errorf("%s", f.Raw(session))
	}
	if model := ColumnOf("model"); f.Is(model, "") || f.Is(model, "null") || len(f.Text(nil, model)) > 0 || string(f.Raw(model)) != "null" {
		t.Error("null is a string")
	}
	if f.Raw(ColumnOf("declined_by")) != nil || string(f.Raw(ColumnOf("duration_ms"))) != "456" {
		t.Error("a key is there that is not, or not what it is")
	}
	part, err := f.Part([]Column{session, ColumnOf("exit_code")})
	if err != nil || part.SessionID.String() != row.SessionID.String() || *part.ExitCode != 1 || part.ToolCallID.String() != "" {
		t.Error(part, err)
	}
}

// An integer over 64 bits and a lone surrogate are for the parser that says what is wrong with them.
func TestFieldsLeaveWhatIsDoubtful(t *testing.T) {
	for _, change := range [][2]string{
		{`"duration_ms":456`, `"duration_ms":18446744073709551615`}, {`"output_summary":"FAIL"`, `"output_summary":"\ud800"`},
		{`"output_summary":"FAIL"`, `"output_summary":"\x"`}, {`"seq":7`, `"seq":07`}, {`"seq":7`, `"seq":-0`}, {`"turn":2,`, ``},
		{`0.000123`, `1e-4`}, {`"known":true`, `"known":null`}, {`"status":"error"`, `"status":null`},
	} {
		line := strings.Replace(string(sample().Append(nil)), change[0], change[1], 1)
		var f Fields
		if f.Scan([]byte(line)) {
			t.Errorf("taken: %s", change[1])
		}
	}
}

func BenchmarkFields(b *testing.B) {
	row := sample()
	row.ApprovedBy, row.DeclinedBy, row.Connections = redact.JSON{}, redact.JSON{}, nil
	line := row.Append(nil)
	b.SetBytes(int64(len(line)))
	var f Fields
	for b.Loop() {
		if !f.Scan(line) {
			b.Fatal("not taken")
		}
	}
}

func TestNumbersAreJudgedAsInWholeRows(t *testing.T) {
	judge := func(number string) {
		text := number + ","
		end := floatEnd([]byte(text), 0)
		s := scanner{rest: number}
		var f *float64
		if ok := s.float(&f) && s.rest == ""; ok != (end == len(number)) {
			t.Errorf("%q: a row takes it: %v, Scan finds its end at %d", number, ok, end)
		}
	}
	for _, number := range []string{"0", "00", "0.", ".", ".5", "", "1", "10", "01", "0.5", "0.50", "1.0", "1.5", "1.5.", "1..5", "1.2.3", "0.000001", "0.0000000000001",
		"123456789012345", "1234567890123456", "12345678901234567", "0.30000000000000004", "0.3000000000000000", "99999999999999.9", "0.1234567890123"} {
		judge(number)
	}
	digits := "0123456789.."
	random := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		number := make([]byte, 1+random.IntN(18))
		for i := range number {
			number[i] = digits[random.IntN(len(digits))]
		}
		judge(string(number))
	}
}
