package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"toolrun/archive/internal/jsonl"
)

// IDsName is the file of used ids: derived, may be deleted, and is made again from the ledger and the run files.
const IDsName = "ids"

// The file is an open-addressing hash table: a header of 16 bytes, magic and count, then a power of two of slots of 8
// bytes. A slot is the first 8 bytes of the SHA-256 of an id, or 0 where it is free.
const (
	idsMagic    = "toolids1"
	idsHeader   = 16
	idsMinSlots = 4096
	idsPage     = 512 // slots read at a time
)

// idSet is the table, open. Whoever calls its methods holds the lock of the ledger.
type idSet struct {
	f     *os.File
	id    fileID
	slots uint64
	count uint64
	dirty bool // written since the last sync
}

var errNoIDs = errors.New("no usable table of ids")

// IDHash is what stands in tables for an id.
func IDHash(id string) uint64 { return idHash(id) }

// RunHash is what stands in tables for a run: of the first 8 digits of its id.
func RunHash(runID string) uint64 { return idHash(runKey(runID)) }

func idHash(id string) uint64 {
	sum := sha256.Sum256([]byte(id))
	return max(binary.LittleEndian.Uint64(sum[:8]), 1)
}

func (s *idSet) close() {
	if s != nil && s.f != nil {
		s.f.Close()
		s.f = nil
	}
}

// openIDs opens the table of dir, or reports errNoIDs where it is missing or of a wrong shape.
func openIDs(dir string) (*idSet, error) {
	path := filepath.Join(dir, IDsName)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errNoIDs
	}
	if err != nil {
		return nil, err
	}
	s := &idSet{f: f}
	var st unix.Stat_t
	var head [idsHeader]byte
	err = unix.Fstat(int(f.Fd()), &st)
	if err == nil {
		_, err = f.ReadAt(head[:], 0)
	}
	if err != nil && err != io.EOF {
		f.Close()
		return nil, err
	}
	s.id = fileID{st.Dev, st.Ino}
	s.slots = uint64(max(st.Size-idsHeader, 0)) / 8
	s.count = binary.LittleEndian.Uint64(head[8:])
	if string(head[:8]) != idsMagic || s.slots < idsMinSlots || s.slots&(s.slots-1) != 0 || s.count > s.slots ||
		st.Size != idsHeader+int64(s.slots)*8 {
		f.Close()
		return nil, errNoIDs
	}
	return s, nil
}

// current tells whether the table is still the one that has the name; another process may have grown it.
func (s *idSet) current(dir string) bool {
	var st unix.Stat_t
	return s != nil && s.f != nil && unix.Stat(filepath.Join(dir, IDsName), &st) == nil && s.id == fileID{st.Dev, st.Ino}
}

// add puts h into the table and reports whether it was new.
func (s *idSet) add(h uint64) (bool, error) {
	var page [idsPage * 8]byte
	for slot, left := h&(s.slots-1), s.slots; left > 0; {
		n := min(idsPage, s.slots-slot, left)
		if _, err := s.f.ReadAt(page[:n*8], idsHeader+int64(slot)*8); err != nil {
			return false, err
		}
		for i := range n {
			switch binary.LittleEndian.Uint64(page[i*8:]) {
			case h:
				return false, nil
			case 0:
				return true, s.put(slot+i, h)
			}
		}
		left -= n
		slot = (slot + n) & (s.slots - 1)
	}
	return false, errNoIDs
}

func (s *idSet) put(slot, h uint64) error {
	var word [8]byte
	// The count may have been raised by another process: what it says now is the truth.
	if _, err := s.f.ReadAt(word[:], 8); err != nil {
		return err
	}
	s.count = binary.LittleEndian.Uint64(word[:]) + 1
	s.dirty = true
	binary.LittleEndian.PutUint64(word[:], h)
	if err := pwrite(s.f, word[:], idsHeader+int64(slot)*8); err != nil {
		return err
	}
	// Killed here: the count is one too low, and the table grows a little later.
	binary.LittleEndian.PutUint64(word[:], s.count)
	return pwrite(s.f, word[:], 8)
}

func pwrite(f *os.File, p []byte, offset int64) error {
	n, err := jsonl.Calls.Pwrite(int(f.Fd()), p, offset)
	if err == nil && n != len(p) {
		err = unix.ENOSPC
	}
	if err != nil {
		return fmt.Errorf("%w: write %q: %w", ErrUnavailable, f.Name(), err)
	}
	return nil
}

// hashes calls f with everything in the table.
func (s *idSet) hashes(f func(uint64)) error {
	var page [idsPage * 8]byte
	for slot := uint64(0); slot < s.slots; slot += idsPage {
		if _, err := s.f.ReadAt(page[:], idsHeader+int64(slot)*8); err != nil {
			return err
		}
		for i := range idsPage {
			if h := binary.LittleEndian.Uint64(page[i*8:]); h != 0 {
				f(h)
			}
		}
	}
	return nil
}

// writeIDs makes a table of the hashes, at most a quarter full, and gives it the name: written beside, synced, renamed.
func writeIDs(dir string, hashes map[uint64]struct{}) (*idSet, error) {
	slots := uint64(idsMinSlots)
	for slots < uint64(len(hashes))*4 {
		slots *= 2
	}
	table := make([]byte, idsHeader+slots*8)
	copy(table, idsMagic)
	binary.LittleEndian.PutUint64(table[8:], uint64(len(hashes)))
	for h := range hashes {
		slot := h & (slots - 1)
		for binary.LittleEndian.Uint64(table[idsHeader+slot*8:]) != 0 {
			slot = (slot + 1) & (slots - 1)
		}
		binary.LittleEndian.PutUint64(table[idsHeader+slot*8:], h)
	}
	path := filepath.Join(dir, IDsName)
	f, err := jsonl.OpenAppend(path+".new", unix.O_TRUNC)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := jsonl.Append(f, 0, table); err != nil {
		return nil, err
	}
	if err := jsonl.Calls.Fsync(int(f.Fd())); err != nil {
		return nil, err
	}
	if err := jsonl.Calls.Rename(path+".new", path); err != nil {
		return nil, &os.PathError{Op: "rename", Path: path, Err: err}
	}
	return openIDs(dir)
}
