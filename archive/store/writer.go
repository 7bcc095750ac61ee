package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"

	"toolrun/archive/redact"
)

// smallBytes is what a Writer keeps in memory before it makes a file.
const smallBytes = 64 << 10

var errFinished = errors.New("object is finished")

// Writer takes an object that arrives in pieces. It is not safe for concurrent use. Exactly one of Finish and Abort ends
// it; after Finish, Abort does nothing, so that it can be deferred.
type Writer struct {
	store *Store
	buf   []byte // not in the file yet
	sum   hash.Hash
	n     int64
	temp  *temp // nil: all is in buf
	err   error // the first failure, or errFinished
}

// New returns a Writer. Nothing is on disk before more than 64 KiB were written.
func (s *Store) New() *Writer { return &Writer{store: s, sum: sha256.New()} }

// Write appends a piece. After an error the object cannot be finished.
func (w *Writer) Write(b redact.Bytes) error {
	if w.err != nil {
		return w.err
	}
	p := b.Raw()
	w.sum.Write(p)
	w.n += int64(len(p))
	if len(w.buf)+len(p) > smallBytes {
		if err := w.spill(); err != nil {
			return w.fail(err)
		}
		if len(p) > smallBytes {
			if err := w.temp.write(p); err != nil {
				return w.fail(err)
			}
			return nil
		}
	}
	w.buf = append(w.buf, p...)
	return nil
}

// spill moves buf to the file.
func (w *Writer) spill() error {
	if w.temp == nil {
		t, err := w.store.create()
		if err != nil {
			return err
		}
		w.temp = t
	}
	err := w.temp.write(w.buf)
	w.buf = w.buf[:0]
	return err
}

// fail ends the Writer and gives back what it holds on disk.
func (w *Writer) fail(err error) error {
	if w.temp != nil {
		w.temp.discard()
		w.temp = nil
	}
	w.buf = nil
	w.err = fmt.Errorf("store object of %d bytes: %w", w.n, err)
	return w.err
}

// Finish stores the object and returns its hash and length.
func (w *Writer) Finish() (hash string, n int64, err error) {
	if w.err != nil {
		return "", 0, w.err
	}
	hash = hex.EncodeToString(w.sum.Sum(nil))
	there, err := w.store.has(hash, w.n)
	if err == nil && !there {
		if err = w.spill(); err == nil {
			err = w.store.commit(w.temp, hash, w.n)
		}
	}
	if err != nil {
		return "", 0, w.fail(err)
	}
	w.Abort()
	return hash, w.n, nil
}

// Abort drops what was not finished.
func (w *Writer) Abort() {
	if w.err == nil {
		w.fail(errFinished)
	}
}
