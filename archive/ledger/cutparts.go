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
	"time"

	"golang.org/x/sys/unix"

	"toolrun/archive/evidence"
	"toolrun/archive/internal/jsonl"
)

// ArchiveName is the folder of the sealed months.
const ArchiveName = "archive"

// MaxManifestBytes bounds the manifest of a part: some hundred thousand ranges.
const MaxManifestBytes = 64 << 20

// partName names a part of a sealed month that has a manifest.
type partName struct {
	month string
	part  int
	path  string // of the manifest
}

// sealedParts are the parts that are there. A folder that cannot be looked into counts as one: nobody knows what it holds.
func sealedParts(dir string) (list []partName) {
	folder := filepath.Join(dir, ArchiveName)
	months, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		list = append(list, partName{path: folder})
	}
	for _, m := range months {
		if _, err := time.Parse("2006-01", m.Name()); err != nil {
			continue
		}
		path := filepath.Join(folder, m.Name())
		files, err := os.ReadDir(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			list = append(list, partName{month: m.Name(), path: path})
		}
		for _, f := range files {
			no, manifest := strings.CutPrefix(strings.TrimSuffix(f.Name(), ".json"), "manifest")
			part, err := strconv.Atoi(strings.TrimPrefix(no, "."))
			if no == "" {
				part, err = 1, nil
			}
			if manifest && err == nil {
				list = append(list, partName{m.Name(), part, filepath.Join(path, f.Name())})
			}
		}
	}
	return list
}

// holdParts holds the cuts that are written down against the parts that were there before they were read: the lines of each
// were taken out, or are still in f. A file of cuts that was cut itself, or is older, would lead a reader past rows.
func (l *layout) holdParts(dir string, f io.ReaderAt, cuts []Cut, parts []partName) error {
	for _, p := range parts {
		if slices.ContainsFunc(cuts, func(c Cut) bool { return c.Month == p.month && c.Part == p.part }) {
			continue
		}
		text, err := jsonl.ReadRegular(p.path, MaxManifestBytes)
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
