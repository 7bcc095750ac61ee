package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
)

// IDTable is the table of ids, read whole.
type IDTable struct{ slots []byte }

// ReadIDs reads the table; nil where there is none.
func ReadIDs(dir string) (*IDTable, error) {
	b, err := os.ReadFile(filepath.Join(dir, IDsName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	slots := (len(b) - idsHeader) / 8
	if !bytes.HasPrefix(b, []byte(idsMagic)) || slots < idsMinSlots || slots&(slots-1) != 0 || len(b) != idsHeader+slots*8 {
		return nil, errNoIDs
	}
	return &IDTable{b[idsHeader:]}, nil
}

// Has tells whether a call id may be told from new ones: it is in the table, or of a form that no client can bring.
func (t *IDTable) Has(callID string) bool {
	return reserved.MatchString(callID) || t.has(idHash(callID))
}

func (t *IDTable) has(h uint64) bool {
	n := uint64(len(t.slots) / 8)
	for slot, left := h&(n-1), n; left > 0; left-- {
		switch binary.LittleEndian.Uint64(t.slots[slot*8:]) {
		case h:
			return true
		case 0:
			return false
		}
		slot = (slot + 1) & (n - 1)
	}
	return false
}
