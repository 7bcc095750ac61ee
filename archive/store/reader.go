package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Errors of a look-up, wrapped with the hash.
var (
	ErrMissing = errors.New("object is missing")
	ErrCorrupt = errors.New("object is corrupt: its bytes do not match its name")

	errNotRegular = fmt.Errorf("not a regular file: %w", ErrCorrupt)
)

// Reader reads an object and verifies it meanwhile: at its end it returns ErrCorrupt in place of io.EOF where the bytes
// do not match the name. What was read before that is not to be trusted.
type Reader struct {
	file io.ReadCloser
	open func() (io.ReadCloser, error) // it again, from its beginning
	hash string
	sum  hash.Hash
	size int64
	err  error // sticky
}

// Open returns a Reader of the object.
func (s *Store) Open(hash string) (*Reader, error) {
	if !valid(hash) {
		return nil, fmt.Errorf("object %q: not a SHA-256 in small hex digits: %w", hash, ErrMissing)
	}
	file, size, err := s.openFile(hash)
	again := func() (io.ReadCloser, error) { f, _, err := s.openFile(hash); return f, err }
	if errors.Is(err, fs.ErrNotExist) && s.elsewhere != nil {
		file, size, err = s.elsewhere(hash)
		again = func() (io.ReadCloser, error) { f, _, err := s.elsewhere(hash); return f, err }
	}
	switch {
	case err == fs.ErrNotExist, err != nil && s.elsewhere == nil && errors.Is(err, fs.ErrNotExist):
		err = ErrMissing
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w: %w", ErrMissing, err)
	}
	if err != nil {
		return nil, fmt.Errorf("object %s: %w", hash, err)
	}
	return &Reader{file: file, open: again, hash: hash, sum: sha256.New(), size: size}, nil
}

// openFile opens the object in this store.
func (s *Store) openFile(hash string) (io.ReadCloser, int64, error) {
	f, err := os.OpenFile(s.Path(hash), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		err = errNotRegular // a link, which is not followed
	}
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, st.Size(), nil
}

// Elsewhere is where objects are looked for that are not in the store: open returns one and its length, or fs.ErrNotExist.
// It is held against its hash like any other. It is set before the store is used.
func (s *Store) Elsewhere(open func(hash string) (io.ReadCloser, int64, error)) { s.elsewhere = open }

// Has tells whether there is such an object; its bytes are not read.
func (s *Store) Has(hash string) bool {
	r, err := s.Open(hash)
	if err != nil {
		return false
	}
	r.Close()
	return true
}

// Verify reads the object to its end, and begins again.
func (r *Reader) Verify() error {
	if err := drain(r); err != nil {
		return err
	}
	again, err := r.open()
	if err != nil {
		return err
	}
	r.file.Close()
	r.file, r.sum, r.err = again, sha256.New(), nil
	return nil
}

// Size is the length of the file when it was opened.
func (r *Reader) Size() int64 { return r.size }

// Read reads on; see Reader.
func (r *Reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.file.Read(p)
	r.sum.Write(p[:n])
	switch {
	case err == io.EOF && hex.EncodeToString(r.sum.Sum(nil)) != r.hash:
		r.err = fmt.Errorf("object %s: %w", r.hash, ErrCorrupt)
	case err == io.EOF:
		r.err = io.EOF
	case err != nil:
		r.err = fmt.Errorf("object %s: %w", r.hash, err)
	}
	return n, r.err
}

// Close closes the file.
func (r *Reader) Close() error { return r.file.Close() }

// Verify reads the object and returns nil, ErrMissing, ErrCorrupt (wrapped) or why it could not be read.
func (s *Store) Verify(hash string) error {
	_, err := s.Check(hash)
	return err
}

// pieces are buffers of Check.
var pieces = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// Check is Verify, and returns the length of the file. It asks the kernel for no more than it must: a directory has many
// small objects.
func (s *Store) Check(hash string) (size int64, err error) {
	if !valid(hash) {
		return 0, fmt.Errorf("object %q: not a SHA-256 in small hex digits: %w", hash, ErrMissing)
	}
	fd, err := openObject(s.Path(hash))
	if err == unix.ENOENT && s.elsewhere != nil {
		return s.checkElsewhere(hash)
	}
	if err == unix.ENOENT {
		return 0, fmt.Errorf("object %s: %w", hash, ErrMissing)
	}
	if err == unix.ELOOP {
		return 0, fmt.Errorf("object %s: %w", hash, errNotRegular)
	}
	if err != nil {
		return 0, fmt.Errorf("object %s: %w", hash, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, fmt.Errorf("object %s: %w", hash, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0, fmt.Errorf("object %s: %w", hash, errNotRegular)
	}
	piece := pieces.Get().(*[64 << 10]byte)
	defer pieces.Put(piece)
	for sum := sha256.New(); ; {
		n, err := unix.Read(fd, piece[:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return st.Size, fmt.Errorf("object %s: %w", hash, err)
		case n == 0 && hex.EncodeToString(sum.Sum(nil)) != hash:
			return st.Size, fmt.Errorf("object %s: %w", hash, ErrCorrupt)
		case n == 0:
			return st.Size, nil
		default:
			sum.Write(piece[:n])
		}
	}
}

func (s *Store) checkElsewhere(hash string) (size int64, err error) {
	r, err := s.Open(hash)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return r.size, drain(r)
}

func openObject(path string) (fd int, err error) {
	for {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// drain reads on to the end.
func drain(r *Reader) error {
	buf := make([]byte, min(128<<10, r.size+1))
	for {
		if _, err := r.Read(buf); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// ReadRange returns up to length bytes of the object from offset on, and its whole length. It verifies all of the object
// before it returns any of it. An offset behind the end gives no bytes.
func (s *Store) ReadRange(hash string, offset, length int64) (b []byte, size int64, err error) {
	if offset < 0 || length < 0 {
		return nil, 0, fmt.Errorf("object %s: offset %d, length %d: may not be negative", hash, offset, length)
	}
	r, err := s.Open(hash)
	if err != nil {
		return nil, 0, err
	}
	defer r.Close()
	if _, err := io.CopyN(io.Discard, r, offset); err != nil && err != io.EOF {
		return nil, 0, err
	}
	if b, err = io.ReadAll(io.LimitReader(r, length)); err != nil {
		return nil, 0, err
	}
	if err := drain(r); err != nil {
		return nil, 0, err
	}
	return b, r.size, nil
}
