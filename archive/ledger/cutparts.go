package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"toolrun/archive/evidence"
	"toolrun/archive/internal/jsonl"
)

// ArchiveName is the folder of the sealed months.
const ArchiveName = "archive"

// partName names a part of a sealed month that has a manifest.
type partName struct {
	month string
	part  int
	path  string // of the manifest
}

// sealedParts are the parts that are there.
func sealedParts(dir string) (list []partName, err error) {
	folder := filepath.Join(dir, ArchiveName)
	months, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, m := range months {
		if strings.HasPrefix(m.Name(), ".") {
			continue
		}
		files, _ := os.ReadDir(filepath.Join(folder, m.Name())) // what is no folder has none
		for _, f := range files {
			no, manifest := strings.CutPrefix(strings.TrimSuffix(f.Name(), ".json"), "manifest")
			part, err := strconv.Atoi(strings.TrimPrefix(no, "."))
			if no == "" {
				part, err = 1, nil
			}
			if manifest && err == nil {
				list = append(list, partName{m.Name(), part, filepath.Join(folder, m.Name(), f.Name())})
			}
		}
	}
	return list, err
}

// holdParts holds the cuts that are written down against the parts that were there before they were read: the lines of each
// were taken out, or are still in f. A file of cuts that was cut itself, or is older, would lead a reader past rows.
func (l *layout) holdParts(dir string, f io.ReaderAt, cuts []Cut, parts []partName) error {
	for _, p := range parts {
		if slices.ContainsFunc(cuts, func(c Cut) bool { return c.Month == p.month && c.Part == p.part }) {
			continue
		}
		text, err := os.ReadFile(p.path)
		var manifest struct {
			Ranges []struct {
				Range
				FirstSeq int64 `json:"first_seq"`
			} `json:"ranges"`
		}
		if err != nil || json.Unmarshal(text, &manifest) != nil || len(manifest.Ranges) == 0 {
			continue // a verifier names it
		}
		first := manifest.Ranges[0]
		if at, ok := l.hot(first.Offset); !ok || firstSeq(f, at, first.Bytes) == first.FirstSeq {
			continue // another part has them, of which this one was pruned; or nobody has taken them out yet
		}
		sum := sha256.Sum256(text)
		seals, err := evidence.Months(dir)
		if err != nil {
			return err
		}
		for _, s := range seals {
			if s.Month == p.month && s.Part == p.part && s.Manifest == hex.EncodeToString(sum[:]) {
				return fmt.Errorf("%s does not say which lines were sealed with %s; it is derived: verify --repair-derived", filepath.Join(dir, CutsName), p.path)
			}
		}
	}
	return nil
}

// firstSeq is the seq of the first row of some lines, or -1.
func firstSeq(f io.ReaderAt, at, bytes int64) int64 {
	for line, err := range jsonl.Lines(io.NewSectionReader(f, at, bytes)) {
		if err != nil {
			return -1
		}
		if seq, ok := SeqOf(line.Text); ok {
			return seq
		}
	}
	return -1
}
