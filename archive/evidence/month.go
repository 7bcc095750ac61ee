package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"toolrun/archive/internal/late"
)

// MonthSeal is a signed statement of one part of a sealed month, by its manifest. It is a signed note of this text:
// "toolrun-month@v1"; month, a space, part; the SHA-256 of the manifest; and Before, each on a line.
type MonthSeal struct {
	Month    string
	Part     int
	Manifest string // SHA-256 in hex
	Before   string // SHA-256 of the signed note of the seal before it, in hex; of the first 64 zeros
	Signed   string // the note itself, with its signatures
	Line     int    // in the file it was read from
}

const monthHead = "toolrun-month@v1"

// FirstMonth is the Before of the first seal of a month.
var FirstMonth = strings.Repeat("0", 64)

func (m *MonthSeal) text() string {
	return fmt.Sprintf("%s\n%s %d\n%s\n%s\n", monthHead, m.Month, m.Part, m.Manifest, m.Before)
}

// Hash is what the next seal names.
func (m *MonthSeal) Hash() string {
	sum := sha256.Sum256([]byte(m.Signed))
	return hex.EncodeToString(sum[:])
}

var monthForm = late.Regexp(`^` + monthHead + `\n([0-9]{4}-[0-9]{2}) ([1-9][0-9]{0,8})\n([0-9a-f]{64})\n([0-9a-f]{64})\n\n`)

func parseMonth(signed string) (*MonthSeal, error) {
	m := monthForm().FindStringSubmatch(signed)
	if m == nil {
		return nil, errors.New("not a seal of a month")
	}
	part, err := strconv.Atoi(m[2])
	return &MonthSeal{Month: m[1], Part: part, Manifest: m[3], Before: m[4], Signed: signed}, err
}

// Months returns the seals of months in the file of checkpoints, in their order. Nothing is verified.
func Months(dir string) (list []*MonthSeal, err error) {
	for n := range Notes(dir) {
		if n.Line == 0 {
			return nil, n.Err
		}
		if n.Month != nil {
			list = append(list, n.Month)
		}
	}
	return list, nil
}

// lastMonth is the newest seal of a month in the first size bytes of the file of checkpoints, or nil.
func lastMonth(f *os.File, size int64) (last *MonthSeal) {
	notesOf(io.NewSectionReader(f, 0, size), func(n *Note) bool {
		if n.Month != nil {
			last = n.Month
		}
		return true
	})
	return last
}

// signMonth signs the seal of a month, which names the one before it.
func (w *signing) signMonth(m *MonthSeal) (err error) {
	m.Before = FirstMonth
	if last := lastMonth(w.book, w.size); last != nil {
		m.Before = last.Hash()
	}
	m.Signed, err = sign(m.text(), w.signer)
	return err
}
