package ledger

import (
	"strings"

	"toolrun/archive/redact"
)

// MaxArgvBytes bounds the argv of a row; a longer one is an object of the store, which [ArgvHash] names in its place.
const MaxArgvBytes = 4 << 10

const argvHead, argvTail = `{"sha256":"`, `"}`

// ArgvHash is what stands in a row in place of an argv that is too long, or that is not kept. hash is in hex.
func ArgvHash(hash string) (argv redact.JSON) {
	// Our own braces around hex digits, in which nothing is secret. A hash that is none makes null.
	_ = argv.UnmarshalJSON([]byte(argvHead + hash + argvTail))
	return argv
}

// Objects returns the names of the objects that hold what the row does not: input, output, stderr, and an argv that is too
// long. A row whose run kept no content names none.
func (r *Row) Objects() (hashes []string) {
	if r.Payloads != "" {
		return nil
	}
	argv, _ := strings.CutPrefix(string(r.Argv.Raw()), argvHead)
	argv, long := strings.CutSuffix(argv, argvTail)
	if !long {
		argv = ""
	}
	for _, hash := range []string{r.InputHash, string(r.OutputHash), string(r.StderrHash), argv} {
		if hash != "" {
			hashes = append(hashes, hash)
		}
	}
	return hashes
}
