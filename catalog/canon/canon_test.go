package canon

import (
	"math"
	"strings"
	"testing"
)

// The sample of RFC 8785 section 3.2.2 and its canonical form of sections 3.2.3 and 3.2.4.
const rfcSample = `{
  "numbers": [333333333.33333329, 1E30, 4.50,
              2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}`

const rfcSampleWant = `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],` +
	`"string":"€$\u000f\nA'B\"\\\\\"/"}`

func TestCanonicalizeGivesThePublishedForms(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"RFC 8785 section 3.2.2", rfcSample, rfcSampleWant},
		{
			"RFC 8785 section 3.2.3, names in UTF-16 order",
			`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",` +
				`"\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
			`{"\r":"Carriage Return","1":"One","` + "\u0080" + `":"Control","ö":"Latin Small Letter O With Diaeresis",` +
				`"€":"Euro Sign","😀":"Emoji: Grinning Face","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}`,
		},
		{"cyberphone arrays", `[ 56, { "d": true, "10": null, "1": [ ] } ]`, `[56,{"1":[],"10":null,"d":true}]`},
		{
			"cyberphone french",
			`{"peach": "This sorting order", "péché": "is wrong according to French", "pêche": "but canonicalization MUST", "sin":   "ignore locale"}`,
			`{"peach":"This sorting order","péché":"is wrong according to French","pêche":"but canonicalization MUST","sin":"ignore locale"}`,
		},
		{
			"cyberphone structures",
			`{"1": {"f": {"f": "hi","F": 5} ,"\n": 56.0}, "10": { }, "": "empty", "a": { }, "111": [ {"e": "yes","E": "no" } ], "A": { }}`,
			`{"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}`,
		},
		{"cyberphone unicode, not normalized", `{"Unnormalized Unicode":"A\u030a"}`, `{"Unnormalized Unicode":"A` + "\u030a" + `"}`},
		{
			"cyberphone weird",
			`{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\u000a": "Newline", "1": "One", "\u0080": "Control\u007f",` +
				` "\ud83d\ude02": "Smiley", "\u00f6": "Latin Small Letter O With Diaeresis", "\ufb33": "Hebrew Letter Dalet With Dagesh", "</script>": "Browser Challenge"}`,
			`{"\n":"Newline","\r":"Carriage Return","1":"One","</script>":"Browser Challenge","` + "\u0080" + `":"Control` + "\u007f" + `",` +
				`"ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","😂":"Smiley","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}`,
		},
		{"control characters", `"\b\t\n\f\r\u0000\u001f\u2028"`, `"\b\t\n\f\r\u0000\u001f` + "\u2028" + `"`},
		{"digits inside strings are text", `{"1e2":"-0, 1e2 \" 4.50"}`, `{"1e2":"-0, 1e2 \" 4.50"}`},
		{"top-level scalar", " 1e2 ", "100"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := []byte(tt.in)
			got, err := Canonicalize(in)
			if err != nil || string(got) != tt.want {
				t.Errorf("Canonicalize(%s)\n got %s, %v\nwant %s", tt.in, got, err, tt.want)
			}
			if string(in) != tt.in {
				t.Error("Canonicalize changed its input")
			}
		})
	}
}

// The table of RFC 8785 appendix B: the IEEE 754 bits of a double and how it is printed.
var appendixB = []struct {
	bits uint64
	want string
}{
	{0x0000000000000000, "0"},
	{0x8000000000000000, "0"},
	{0x0000000000000001, "5e-324"},
	{0x8000000000000001, "-5e-324"},
	{0x7fefffffffffffff, "1.7976931348623157e+308"},
	{0xffefffffffffffff, "-1.7976931348623157e+308"},
	{0x4340000000000000, "9007199254740992"},
	{0xc340000000000000, "-9007199254740992"},
	{0x4430000000000000, "295147905179352830000"},
	{0x44b52d02c7e14af5, "9.999999999999997e+22"},
	{0x44b52d02c7e14af6, "1e+23"},
	{0x44b52d02c7e14af7, "1.0000000000000001e+23"},
	{0x444b1ae4d6e2ef4e, "999999999999999700000"},
	{0x444b1ae4d6e2ef4f, "999999999999999900000"},
	{0x444b1ae4d6e2ef50, "1e+21"},
	{0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
	{0x3eb0c6f7a0b5ed8d, "0.000001"},
	{0x41b3de4355555553, "333333333.3333332"},
	{0x41b3de4355555554, "333333333.33333325"},
	{0x41b3de4355555555, "333333333.3333333"},
	{0x41b3de4355555556, "333333333.3333334"},
	{0x41b3de4355555557, "333333333.33333343"},
	{0xbecbf647612f3696, "-0.0000033333333333333333"},
	{0x43143ff3c1cb0959, "1424953923781206.2"},
}

func TestDoublesPrintAsInRFC8785AppendixB(t *testing.T) {
	for _, tt := range appendixB {
		f := math.Float64frombits(tt.bits)
		if got := string(appendDouble(nil, f)); got != tt.want {
			t.Errorf("double %016x prints as %s, want %s", tt.bits, got, tt.want)
		}
		if got := Number(tt.want); got != tt.want {
			t.Errorf("Number(%s) = %s, want it unchanged", tt.want, got)
		}
	}
}

func TestNumberKeepsEveryDigitThatADoubleWouldChange(t *testing.T) {
	tests := []struct{ in, want string }{
		{"0", "0"},
		{"-0", "0"},
		{"-0.0e5", "0"},
		{"0e99999999", "0"},
		{"7", "7"},
		{"-7", "-7"},
		{"1e2", "100"},
		{"1E2", "100"},
		{"100.0", "100"},
		{"0.1", "0.1"},
		{"0.10", "0.1"},
		{"1e21", "1e+21"},
		{"1e-7", "1e-7"},
		{"9007199254740992", "9007199254740992"},
		{"9007199254740993", "9007199254740993"},
		{"-9007199254740993", "-9007199254740993"},
		{"9007199254740993.0", "9007199254740993.0"},
		{"9223372036854775807", "9223372036854775807"},
		{"18446744073709551615", "18446744073709551615"},
		{"18446744073709551616", "18446744073709551616"},
		{"36028797018963968", "36028797018963968"}, // a double holds it, but RFC 8785 prints ...970
		{"333333333.33333329", "333333333.3333333"},
		{"0.1234567890123456789", "0.1234567890123456789"},
		{"1e400", "1e400"},
		{"1e-400", "1e-400"},
		{"1e99999999999999999999", "1e99999999999999999999"},
		{"5e-324", "5e-324"},
		{"1.7976931348623157e308", "1.7976931348623157e+308"},
		{strings.Repeat("9", 5000), strings.Repeat("9", 5000)},
	}
	for _, tt := range tests {
		if got := Number(tt.in); got != tt.want {
			t.Errorf("Number(%s) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestCanonicalizeRefusesWhatIsNotIJSONAndQuotesNothingOfIt(t *testing.T) {
	tests := []struct{ name, in string }{
		{"empty", ""},
		{"two values", "1 2"},
		{"duplicate name", `{"hunter2":1,"hunter2":2}`},
		{"duplicate name by escape", `{"hunter2":1,"hunte\u00722":2}`},
		{"lone surrogate", `"hunter2\ud800"`},
		{"lone low surrogate in a name", `{"hunter2\udc00":1}`},
		{"invalid UTF-8", "\"hunter2\xff\""},
		{"raw control character", "\"hunter2\n\""},
		{"leading zero", "01"},
		{"cut", `{"hunter2":`},
		{"comment", "// hunter2\n1"},
		{"too deep", strings.Repeat("[", 100000) + strings.Repeat("]", 100000)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Canonicalize([]byte(tt.in))
			if err == nil {
				t.Fatalf("Canonicalize(%q) = %s, want an error", tt.in, got)
			}
			if strings.Contains(err.Error(), "hunte") {
				t.Errorf("the error echoes the input: %v", err)
			}
		})
	}
}

func TestSHA256HexIsThatOfTheBytes(t *testing.T) {
	// The SHA-256 of "[]", the hash of an empty catalog.
	const want = "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
	if got := SHA256Hex([]byte("[]")); got != want {
		t.Errorf("SHA256Hex([]) = %s, want %s", got, want)
	}
}
