package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
)

const trustedName = "trusted"

// trust is a file of trusted/: what a person accepted for one catalog.
type trust struct {
	Catalog     string                 `json:"catalog"` // absolute path
	FilesSHA256 string                 `json:"files_sha256"`
	TrustedAt   string                 `json:"trusted_at"`
	Files       map[string]redact.Text `json:"files"` // their texts then, so that a change can be shown
}

func (d *Dir) trustPath(catalogPath string) string {
	sum := sha256.Sum256([]byte(catalogPath))
	return filepath.Join(d.path, trustedName, hex.EncodeToString(sum[:])+".json")
}

// Trusted returns what was accepted last for the catalog at this absolute path: the hash over all its files, and their
// texts, redacted, by path. A record that cannot be read is no trust.
func (d *Dir) Trusted(catalogPath string) (filesSHA256 string, files map[string]redact.Text, ok bool) {
	b, err := os.ReadFile(d.trustPath(catalogPath))
	if err != nil {
		return "", nil, false
	}
	var t trust
	if err := json.Unmarshal(b, &t); err != nil || t.Catalog != catalogPath || t.FilesSHA256 == "" {
		d.log.Warn("record of trust not readable", "catalog", catalogPath, "err", err)
		return "", nil, false
	}
	return t.FilesSHA256, t.Files, true
}

// Trust accepts the files of a catalog as they are now: written beside, synced, renamed, the folder synced.
func (d *Dir) Trust(catalogPath, filesSHA256 string, files map[string]redact.Text) error {
	if d.Ledger == nil {
		return errReadOnly
	}
	if err := d.trust(catalogPath, filesSHA256, files); err != nil {
		return fmt.Errorf("trust %q: %w", catalogPath, err)
	}
	return nil
}

func (d *Dir) trust(catalogPath, filesSHA256 string, files map[string]redact.Text) error {
	b, err := json.MarshalIndent(trust{catalogPath, filesSHA256, ledger.FormatTime(d.now()), files}, "", "  ")
	if err != nil {
		return err
	}
	path := d.trustPath(catalogPath)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "tmp-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(append(b, '\n')); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := jsonl.Calls.Rename(f.Name(), path); err != nil {
		return err
	}
	return jsonl.SyncDir(filepath.Dir(path))
}
