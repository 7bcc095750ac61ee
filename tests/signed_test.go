package tests

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// noteForm is a signed note of archive/FORMAT.md: three or more lines, an empty one, one signature.
var noteForm = regexp.MustCompile(`(?s)((?:[^\n]+\n)+)\n— (\S+) (\S+)\n\n`)

// checkSigned holds every checkpoint against the ledger, and every seal against its run, with nothing but RFC 6962,
// Ed25519 and what archive/FORMAT.md says.
func checkSigned(data string) (problems []error) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	notes, err := os.ReadFile(filepath.Join(data, "checkpoints"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing ran here
	}
	if err != nil {
		return []error{err}
	}
	key, err := os.ReadFile(filepath.Join(data, "checkpoint.pub"))
	parts := strings.SplitN(strings.TrimSpace(string(key)), "+", 3)
	if err != nil || len(parts) != 3 {
		return []error{fmt.Errorf("public key %q: %w", key, err)}
	}
	public, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || len(public) != 33 || public[0] != 1 {
		return []error{fmt.Errorf("public key %q: %w", key, err)}
	}
	ledger, err := os.ReadFile(filepath.Join(data, "ledger.jsonl"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []error{err}
	}
	lines := bytes.Split(ledger, []byte("\n"))
	lines = lines[:len(lines)-1]
	rest := notes
	for _, m := range noteForm.FindAllSubmatch(notes, -1) {
		rest = bytes.TrimPrefix(rest, m[0])
		text := string(m[1])
		signature, err := base64.StdEncoding.DecodeString(string(m[3]))
		if err != nil || len(signature) != 4+64 || !ed25519.Verify(public[1:], m[1], signature[4:]) || string(m[2]) != parts[0] {
			bad("a note with a bad signature: %s", m[0])
			continue
		}
		var n int
		var id, sum string
		if k, _ := fmt.Sscanf(text, "toolrun-seal@v1\n%s\n%d\n%s\n", &id, &n, &sum); k == 3 {
			trace, err := os.ReadFile(filepath.Join(data, "runs", id+".jsonl"))
			if err != nil || len(trace) != n || sha256Hex(string(trace)) != sum {
				bad("run %s is not what was sealed: %v", id, err)
			}
			continue
		}
		if k, _ := fmt.Sscanf(text, parts[0]+"\n%d\n%s\n", &n, &sum); k != 2 || n > len(lines) {
			bad("a checkpoint of more than the %d lines there are: %s", len(lines), text)
		} else if root := merkleRoot(lines[:n]); base64.StdEncoding.EncodeToString(root[:]) != sum {
			bad("the checkpoint of %d rows is of another ledger", n)
		}
	}
	if len(rest) > 0 {
		bad("checkpoints end in %q", rest)
	}
	return problems
}

// merkleRoot is MTH of RFC 6962 section 2.1.
func merkleRoot(lines [][]byte) [32]byte {
	switch len(lines) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return sha256.Sum256(append([]byte{0}, lines[0]...))
	}
	k := 1
	for 2*k < len(lines) {
		k *= 2
	}
	left, right := merkleRoot(lines[:k]), merkleRoot(lines[k:])
	return sha256.Sum256(append(append([]byte{1}, left[:]...), right[:]...))
}
