package store

import (
	"errors"
	"io"
	"iter"

	"toolrun/archive/redact"
)

// Errors of a look-up.
var (
	ErrMissing = errors.New("object is missing")
	ErrCorrupt = errors.New("object is corrupt: its bytes do not match its name")
)

// Store is the content store below one directory.
type Store struct {
	dir  string
	sync func(path string)
}

// Open returns the store in dir (…/store).
func Open(dir string, sync func(path string)) *Store { return &Store{dir: dir, sync: sync} }

// Put stores c and returns its hash.
func (s *Store) Put(c redact.Content) (hash string, err error) { return "", ErrMissing }

// Writer takes an object that arrives in pieces.
type Writer struct{}

// New returns a Writer.
func (s *Store) New() *Writer { return &Writer{} }

// Write appends a piece.
func (w *Writer) Write(b redact.Bytes) error { return nil }

// Finish stores the object and returns its hash and length.
func (w *Writer) Finish() (hash string, n int64, err error) { return "", 0, nil }

// Abort drops the object; after Finish it does nothing.
func (w *Writer) Abort() {}

// Open returns a reader that verifies while reading: at the end it returns ErrCorrupt in place of io.EOF where the bytes
// do not match the name.
func (s *Store) Open(hash string) (io.ReadCloser, error) { return nil, ErrMissing }

// Verify reads the object and returns nil, ErrMissing or ErrCorrupt (wrapped).
func (s *Store) Verify(hash string) error { return ErrMissing }

// Path returns where the object is or would be.
func (s *Store) Path(hash string) string { return "" }

// All yields hash and path of every object.
func (s *Store) All() iter.Seq2[string, string] { return func(func(string, string) bool) {} }
