// Package store keeps content by its hash: the object with the lower-case hex SHA-256 h is the file <h[:2]>/<h>.txt.
//
// What it promises: an object appears under its name whole or not at all, by a rename; an object whose length is right is
// kept and not written again, one of a wrong length (left by a power cut) is replaced; any number of processes may put
// the same content at once; a reader learns of a byte that changed. It takes only what package redact made.
//
// An object is written to .tmp-<pid>-<random> in the store's own directory (so that the rename stays in one file
// system), its length is checked, and it is renamed. The writer holds a flock on the temporary file as long as the file
// is there; Sweep removes those that nobody holds, which only a killed writer leaves.
//
// Durability: without a sync callback the file is synced before the rename and the directory after it. With one the
// store does neither and reports each path that has to be synced, once it has its final name: first the object, then the
// directories that changed; the owner syncs them before it promises anything (archive, config.toml durability). Until
// then a power cut may leave an object of wrong length, which nothing that was promised refers to. An object that
// another process put a moment ago is synced or reported as if it were new; one that is older than youth is taken to
// have been written back by the kernel.
//
// What it does not promise: that an object is still right after it was written; Verify tells.
package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"toolrun/archive/internal/jsonl"
	"toolrun/archive/redact"
)

const (
	suffix   = ".txt"
	dirMode  = 0o700
	fileMode = 0o600
)

// Store is the content store below one directory. It is safe for concurrent use, by several processes too.
type Store struct {
	dir  string
	sync func(path string) // nil: sync here

	elsewhere func(hash string) (io.ReadCloser, int64, error) // nil: nowhere
}

// Open returns the store in dir, which is made when the first object is put. sync is called from the goroutine that
// puts; nil means that the store itself syncs.
func Open(dir string, sync func(path string)) *Store { return &Store{dir: dir, sync: sync} }

// Path returns where the object is or would be.
func (s *Store) Path(hash string) string {
	return filepath.Join(s.dir, hash[:min(2, len(hash))], hash+suffix)
}

// Put stores c and returns its hash.
func (s *Store) Put(c redact.Content) (hash string, err error) { return s.put(redact.Raw(c)) }

func (s *Store) put(b []byte) (string, error) {
	sum := sha256.Sum256(b)
	hash := hex.EncodeToString(sum[:])
	if ok, err := s.has(hash, int64(len(b))); ok || err != nil {
		return hash, err
	}
	t, err := s.create()
	if err != nil {
		return "", fmt.Errorf("store %q: %w", hash, err)
	}
	defer t.discard()
	if err := t.write(b); err != nil {
		return "", fmt.Errorf("store %q: %w", hash, err)
	}
	if err := s.commit(t, hash, int64(len(b))); err != nil {
		return "", fmt.Errorf("store %q: %w", hash, err)
	}
	return hash, nil
}

// Recall puts an object into the store again that is only elsewhere now.
func (s *Store) Recall(hash string) error {
	r, err := s.Open(hash)
	if err != nil {
		return err
	}
	defer r.Close()
	t, err := s.create()
	if err != nil {
		return fmt.Errorf("store %q: %w", hash, err)
	}
	defer t.discard()
	buf := make([]byte, 64<<10)
	for size := int64(0); ; {
		n, err := r.Read(buf) // ErrCorrupt at the end
		if werr := t.write(buf[:n]); werr != nil {
			return fmt.Errorf("store %q: %w", hash, werr)
		}
		size += int64(n)
		if err == io.EOF {
			return s.commit(t, hash, size)
		}
		if err != nil {
			return err
		}
	}
}

// has tells whether the object is there in its full length, and sees to it that it lasts; its bytes are not read.
func (s *Store) has(hash string, size int64) (bool, error) {
	var st unix.Stat_t
	path := s.Path(hash)
	if err := unix.Lstat(path, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size != size {
		return false, nil // put tells what is wrong, if it is not just missing
	}
	if time.Since(time.Unix(st.Ctim.Unix())) > youth {
		return true, nil
	}
	if s.sync == nil {
		if err := syncPath(path); err != nil {
			return false, fmt.Errorf("store %q: %w", hash, err)
		}
	}
	if err := s.named(path, true); err != nil {
		return false, fmt.Errorf("store %q: %w", hash, err)
	}
	return true, nil
}

// youth is far longer than the kernel lets a written page or a directory wait (vm.dirty_expire_centisecs: 30 s).
const youth = 10 * time.Minute

// commit gives the written file its name. The steps, and what a crash after each leaves:
// the length is checked – a temporary file; synced – the same; renamed – the object, which a power cut may still take
// back; directories synced – the object.
func (s *Store) commit(t *temp, hash string, size int64) error {
	if st, err := t.file.Stat(); err != nil {
		return err
	} else if st.Size() != size {
		return fmt.Errorf("the file has %d bytes of %d", st.Size(), size)
	}
	if s.sync == nil {
		if err := t.file.Sync(); err != nil {
			return err
		}
	}
	path := s.Path(hash)
	made := false
	err := rename(t.path, path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := jsonl.Calls.Mkdir(filepath.Dir(path), dirMode); err != nil && err != unix.EEXIST {
			return &os.PathError{Op: "mkdir", Path: filepath.Dir(path), Err: err}
		}
		made = true
		err = rename(t.path, path)
	}
	if err != nil {
		return err
	}
	t.renamed = true
	if err := t.file.Close(); err != nil { // a network file system may tell of a full disk only now
		os.Remove(path)
		return err
	}
	return s.named(path, made)
}

// named makes the name of an object durable, or reports what has to be synced: the object, its directory, and if that
// is new the store's.
func (s *Store) named(path string, newDir bool) error {
	if s.sync != nil {
		s.sync(path)
		s.sync(filepath.Dir(path))
		if newDir {
			s.sync(s.dir)
		}
		return nil
	}
	if err := syncPath(filepath.Dir(path)); err != nil || !newDir {
		return err
	}
	return syncPath(s.dir)
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// rename is os.Rename without its look at the target.
func rename(from, to string) error {
	for {
		err := jsonl.Calls.Rename(from, to)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
		}
		return nil
	}
}

// All yields hash and path of every object, in order of the hash. Files that are not named like objects are left out. A
// directory that cannot be read is yielded with the empty hash.
func (s *Store) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		dirs, err := os.ReadDir(s.dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !yield("", s.dir) {
			return
		}
		for _, d := range dirs {
			if len(d.Name()) != 2 || !d.IsDir() {
				continue
			}
			dir := filepath.Join(s.dir, d.Name())
			files, err := os.ReadDir(dir)
			if err != nil && !yield("", dir) {
				return
			}
			for _, f := range files {
				hash, ok := strings.CutSuffix(f.Name(), suffix)
				if ok && valid(hash) && hash[:2] == d.Name() && !yield(hash, s.Path(hash)) {
					return
				}
			}
		}
	}
}

// valid tells whether hash could name an object.
func valid(hash string) bool {
	return len(hash) == hex.EncodedLen(sha256.Size) && strings.Trim(hash, "0123456789abcdef") == ""
}
