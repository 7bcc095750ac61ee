package archive

import (
	"toolrun/archive/redact"
)

// Trusted returns what was accepted for the catalog at this path: the hash over all its files, and their texts then.
func (d *Dir) Trusted(catalogPath string) (filesSHA256 string, files map[string]redact.Text, ok bool) {
	return "", nil, false
}

// Trust accepts the files of a catalog as they are now.
func (d *Dir) Trust(catalogPath, filesSHA256 string, files map[string]redact.Text) error { return nil }
