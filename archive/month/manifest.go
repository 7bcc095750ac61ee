package month

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"toolrun/archive/internal/jsonl"
	"toolrun/archive/ledger"
)

// Format is the version of what a part is made of.
const Format = 1

// Ref names one part of a sealed month. The first part of a month is 1; later ones hold rows that came late.
type Ref struct {
	Month string // "2026-11", UTC
	Part  int
}

func (r Ref) String() string {
	if r.Part == 1 {
		return r.Month
	}
	return fmt.Sprintf("%s, part %d", r.Month, r.Part)
}

// Names of the files of a part, for Ref.Path.
const (
	ManifestFile = "manifest.json"
	LedgerFile   = "ledger.jsonl.zst"
	RunsFile     = "runs.tar.zst"
	StoreFile    = "store.tar.zst"
	IndexFile    = "index"
	SealFile     = "seal"     // signed note that names the manifest's hash
	leavesFile   = "leaves"   // of a pruned part, in place of its content
	VerifiedFile = "verified" // when verify last found all of it good
)

// Path is the name of a file of the part below archive/: "2026-11/ledger.jsonl.zst", "2026-11/ledger.2.jsonl.zst".
func (r Ref) Path(file string) string {
	if r.Part > 1 {
		ext := file[len(stem(file)):]
		file = stem(file) + "." + strconv.Itoa(r.Part) + ext
	}
	return filepath.Join(r.Month, file)
}

func stem(file string) string {
	for i := range file {
		if file[i] == '.' {
			return file[:i]
		}
	}
	return file
}

var (
	monthForm    = regexp.MustCompile(`^[0-9]{4}-(0[1-9]|1[0-2])$`)
	manifestForm = regexp.MustCompile(`^manifest(?:\.([2-9]|[1-9][0-9]{1,8}))?\.json$`)
)

// Valid tells whether s is a month as archives are named.
func Valid(s string) bool { return monthForm.MatchString(s) }

// Of is the month of a row, by its started_at; "" where that is no time.
func Of(startedAt string) string {
	at := startOf(startedAt)
	if at == "" {
		return ""
	}
	return at[:len("2006-01")]
}

// startOf is a started_at as toolrun writes it, so that such times are in their order as strings; other programs may write
// other forms of RFC 3339. It is "" where that is no time.
func startOf(startedAt string) string {
	if _, err := ledger.ParseTime(startedAt); err == nil {
		return startedAt
	}
	at, err := time.Parse(time.RFC3339, startedAt)
	if err != nil || at.UTC().Year() < 0 || at.UTC().Year() > 9999 {
		return ""
	}
	return ledger.FormatTime(at)
}

// End is the first instant after a month, in UTC.
func End(month string) time.Time {
	at, err := time.Parse("2006-01", month)
	if err != nil {
		return time.Time{}
	}
	return at.AddDate(0, 1, 0)
}

// List returns the parts that are in the folder archive of a data directory, in the order of months and parts: those
// with a manifest.
func List(folder string) ([]Ref, error) {
	months, err := os.ReadDir(folder)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	var refs []Ref
	for _, m := range months {
		if !Valid(m.Name()) {
			continue
		}
		files, err := os.ReadDir(filepath.Join(folder, m.Name())) // which may be a link to where there is room
		if errors.Is(err, unix.ENOTDIR) || errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		from := len(refs)
		for _, f := range files {
			if name := manifestForm.FindStringSubmatch(f.Name()); name != nil {
				part := 1
				if name[1] != "" {
					part, _ = strconv.Atoi(name[1])
				}
				refs = append(refs, Ref{m.Name(), part})
			}
		}
		slices.SortFunc(refs[from:], func(a, b Ref) int { return a.Part - b.Part })
	}
	return refs, nil
}

// Manifest says what a part holds.
type Manifest struct {
	Format     int             `json:"format"`
	Month      string          `json:"month"`
	Part       int             `json:"part"`
	SealedAt   string          `json:"sealed_at"`
	Rows       int64           `json:"rows"`
	Lines      int64           `json:"lines"` // rows and damaged lines
	Sessions   int64           `json:"sessions"`
	Runs       int64           `json:"runs"`    // traces
	Objects    int64           `json:"objects"` //
	FirstSeq   *int64          `json:"first_seq"`
	LastSeq    *int64          `json:"last_seq"`
	FirstStart string          `json:"first_started_at"`
	LastStart  string          `json:"last_started_at"`
	Ranges     []Range         `json:"ranges"`
	TreeBefore Tree            `json:"tree_before"` // head before its first line
	TreeAfter  Tree            `json:"tree_after"`  // and behind its last
	Files      map[string]File `json:"files"`
	Lost       []Lost          `json:"lost"` // objects that it should hold and that were not there, or not good
}

// Range is lines of the whole ledger that stand together, and the seqs of their rows.
type Range struct {
	ledger.Range
	FirstSeq int64 `json:"first_seq"` // -1 where none of them has one
	LastSeq  int64 `json:"last_seq"`
}

// Tree is a head of the tree.
type Tree struct {
	Size int64  `json:"size"`
	Root string `json:"root"` // base64
}

// File is one file of the part.
type File struct {
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256"`
	Content int64  `json:"content_bytes"` // when decompressed
}

// Lost is an object that a row or a trace of the part names.
type Lost struct {
	Hash string `json:"hash"`
	Why  string `json:"why"` // "missing" or "corrupt"
}

// Ref is the part that the manifest is of.
func (m *Manifest) Ref() Ref { return Ref{m.Month, m.Part} }

// Cut is what the part took out of ledger.jsonl.
func (m *Manifest) Cut(first string, firstBytes int64) ledger.Cut {
	c := ledger.Cut{Month: m.Month, Part: m.Part, First: first, FirstBytes: firstBytes}
	for _, r := range m.Ranges {
		c.Ranges = append(c.Ranges, r.Range)
		c.NextSeq = max(c.NextSeq, r.LastSeq+1)
	}
	return c
}

// encode is the file, and its hash.
func (m *Manifest) encode() (text []byte, sha256Hex string, err error) {
	text, err = json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, "", err
	}
	text = append(text, '\n')
	sum := sha256.Sum256(text)
	return text, hex.EncodeToString(sum[:]), nil
}

// ReadManifest reads the manifest of a part and the hash of its bytes. folder is that of all archives.
func ReadManifest(folder string, r Ref) (m *Manifest, sha256Hex string, err error) {
	path := filepath.Join(folder, r.Path(ManifestFile))
	text, err := jsonl.ReadRegular(path, ledger.MaxManifestBytes)
	if err != nil {
		return nil, "", err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	m = new(Manifest)
	if err := dec.Decode(m); err != nil {
		return nil, "", fmt.Errorf("not a manifest: %w", err)
	}
	if m.Format != Format {
		return nil, "", fmt.Errorf("format %d; this version of toolrun reads %d", m.Format, Format)
	}
	if m.Ref() != r {
		return nil, "", fmt.Errorf("the manifest is of %v", m.Ref())
	}
	sum := sha256.Sum256(text)
	return m, hex.EncodeToString(sum[:]), m.check()
}

func (m *Manifest) check() error {
	end, lines := int64(0), int64(0)
	for _, r := range m.Ranges {
		if r.Line < end || r.Lines < 1 || r.Bytes < r.Lines {
			return errors.New("not a manifest: its ranges are not in order")
		}
		end, lines = r.Line+r.Lines, lines+r.Lines
	}
	if lines != m.Lines {
		return fmt.Errorf("not a manifest: its ranges have %d lines of %d", lines, m.Lines)
	}
	for _, name := range []string{LedgerFile, RunsFile, StoreFile, IndexFile} {
		if _, ok := m.Files[name]; !ok {
			return fmt.Errorf("not a manifest: it has no %s", name)
		}
	}
	return nil
}
