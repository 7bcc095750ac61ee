package audit

import (
	"crypto/sha256"
	"encoding/hex"

	"toolrun/archive/trace"
)

// argumentsDiffer tells whether the arguments of a tool_call line are not those that its args_sha256 names, which a row
// repeats, and a checkpoint signs.
func argumentsDiffer(line *trace.Line) bool {
	raw := line.Arguments.Raw()
	if line.Payloads != "" || line.Arguments.IsNull() || string(raw) == `{"sha256":"`+line.ArgsSHA256+`"}` {
		return false
	}
	sum := sha256.Sum256(unescapeLineEnds(raw))
	return hex.EncodeToString(sum[:]) != line.ArgsSHA256
}

// lineEnds are what JSONL escapes and canonical JSON does not (FORMAT.md, JSONL).
var lineEnds = map[string]string{`\u0085`: "\u0085", `\u2028`: "\u2028", `\u2029`: "\u2029"}

// unescapeLineEnds gives canonical JSON back the bytes that stand in a line of JSONL as escapes.
func unescapeLineEnds(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '\\' || i+1 == len(raw) {
			out = append(out, raw[i])
			i++
			continue
		}
		if i+6 <= len(raw) {
			if char, ok := lineEnds[string(raw[i:i+6])]; ok {
				out = append(out, char...)
				i += 6
				continue
			}
		}
		out = append(out, raw[i], raw[i+1])
		i += 2
	}
	return out
}
