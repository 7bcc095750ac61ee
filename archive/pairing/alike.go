package pairing

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"toolrun/archive/ledger"
	"toolrun/archive/redact"
	"toolrun/archive/transcript"
)

// Named are the tool_call_ids that results name.
func Named(list []*transcript.Transcript) map[string]bool {
	ids := map[string]bool{}
	for _, t := range list {
		for _, c := range t.Calls {
			if id := namedBy(c.Result); id != "" {
				ids[id] = true
			}
		}
	}
	return ids
}

// Alike tells which rows may be calls of messages without ids, session and times, by what a row itself has: the name of the
// tool, and the hash of the arguments where nothing was masked.
func Alike(list []*transcript.Transcript) func(*ledger.Row) bool {
	var all []*transcript.Call
	byHash := map[string][]*transcript.Call{}
	for _, t := range list {
		for _, c := range t.Calls {
			all = append(all, c)
			hash := inputHash(c)
			byHash[hash] = append(byHash[hash], c)
		}
	}
	return func(row *ledger.Row) bool {
		calls := byHash[row.InputHash]
		if row.Redactions > 0 {
			calls = all
		}
		return slices.ContainsFunc(calls, func(c *transcript.Call) bool { return ends(c, row.ToolName.String()) })
	}
}

// inputHash is the input_hash of a call's row where its secrets, if there are any, have a known shape, and RFC 8785 carries its
// numbers: others keep their digits in a row.
func inputHash(c *transcript.Call) string {
	args := c.Args
	if args == nil {
		args = []byte("{}")
	}
	canonical, err := redact.New(nil).Canonical(args, func(b []byte) ([]byte, error) {
		v := jsontext.Value(b)
		err := v.Canonicalize()
		return v, err
	})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(canonical.Raw())
	return hex.EncodeToString(sum[:])
}
