package redact

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"toolrun/archive/internal/skip"
)

// The source of Go holds digests, UUIDs, base64, certificates, words that begin like tokens, and a few private keys for
// examples; nothing but the bodies of those may change.
func TestGoSourceStaysButForPrivateKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("reads all of GOROOT/src")
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		skip.For(t, "no go command: ", err)
	}
	key := regexp.MustCompile(`(-----BEGIN [A-Z ]*PRIVATE KEY-----)[^-]+(-----END)`)
	r := New(nil)
	files, bytesRead := 0, 0
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(root)), "src"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		in, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		bytesRead += len(in)
		var out bytes.Buffer
		s := r.Stream(func(b Bytes) error { out.Write(b.Raw()); return nil })
		s.Write(in)
		s.Close()
		if bytes.Equal(in, out.Bytes()) {
			return nil
		}
		t.Logf("%s: %d marks", path, s.Redactions())
		if !bytes.Equal(key.ReplaceAll(in, []byte("$1$2")), key.ReplaceAll(out.Bytes(), []byte("$1$2"))) {
			t.Errorf("%s: more than private keys changed", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files, %d MB", files, bytesRead>>20)
}
