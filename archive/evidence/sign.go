package evidence

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"toolrun/archive/internal/jsonl"
)

// Options of [Sign].
type Options struct {
	Logger *slog.Logger
	Now    func() time.Time
	Locked func(func() error) error // calls it under the lock of the data directory
}

// Statement is what is to be signed.
type Statement struct {
	Open func() (Source, error) // the ledger
	Size int64                  // up to where it is covered: behind a newline, and synced
	Own  []Leaf                 // lines that this process wrote itself and remembers: they are signed as they were written
	// Seals returns the seals to be signed with it; first tells that nothing was ever signed here.
	Seals func(first bool) ([]Seal, error)
	Month *MonthSeal // nil: none. Before and Signed are set when it is signed
}

// Sign signs a checkpoint of the ledger of the data directory dir, and the seals with it, syncs both and returns the
// checkpoint. Where nothing is new since the newest one, it returns that. Processes sign one after another: each extends
// what the one before signed.
//
// Errors are ErrContradiction, upon which nothing was signed and nothing changed, or else mean that it may work later.
func Sign(dir string, s Statement, o Options) (*Checkpoint, error) {
	book, err := jsonl.OpenAppend(filepath.Join(dir, CheckpointsName), 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", jsonl.ErrUnavailable, err)
	}
	defer book.Close() // and with it the flock
	if _, err := jsonl.Lock(book, unix.LOCK_EX); err != nil {
		return nil, fmt.Errorf("%w: %w", jsonl.ErrUnavailable, err)
	}
	w := &signing{dir: dir, book: book, Options: o}
	if w.size, err = repair(dir, book, o); err != nil {
		return nil, err
	}
	if err := w.keys(); err != nil {
		return nil, err
	}
	if err := w.before(); err != nil {
		return nil, err
	}
	first := w.size == int64(len(w.newest.Note)+1) // nothing but the checkpoint of no rows, with which the keys were made
	tree, err := w.extend(s, false)
	if err != nil {
		return nil, err
	}
	var seals []Seal
	if s.Seals != nil {
		if seals, err = s.Seals(first); err != nil {
			return nil, err
		}
	}
	if tree.N == w.newest.Tree.N && len(seals) == 0 && s.Month == nil {
		return w.newest, nil
	}
	if s.Month != nil {
		if err := w.signMonth(s.Month); err != nil {
			return nil, err
		}
	}
	return w.append(tree, seals, s.Month)
}

// Rebuild makes the hashes of the tree anew from the ledger, as far as it was signed. Hashes that the ledger does not agree
// with are kept where a checkpoint vouches for them: ErrContradiction.
func Rebuild(dir string, ledger func() (Source, error), o Options) error {
	key, err := PublicKey(dir)
	if errors.Is(err, ErrNoKey) {
		return nil // nothing was signed, and the first who signs begins anew
	}
	if err != nil {
		return err
	}
	book, err := os.Open(filepath.Join(dir, CheckpointsName))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrContradiction, err)
	}
	defer book.Close()
	if _, err := jsonl.Lock(book, unix.LOCK_EX); err != nil {
		return err
	}
	newest, err := Newest(dir, key)
	if err != nil {
		return err
	}
	if newest == nil {
		return fmt.Errorf("%w: %s holds no checkpoint any more", ErrContradiction, CheckpointsName)
	}
	w := &signing{Options: o, dir: dir, newest: newest}
	_, err = w.extend(Statement{Open: ledger}, true)
	return err
}

// signing is one use of the right to sign.
type signing struct {
	Options
	dir    string
	book   *os.File
	size   int64
	signer *signer
	newest *Checkpoint
}

// keys reads the key, or makes it on the first use. The order makes a missing piece tell what happened: the private key;
// a checkpoint of no rows by it; the public key. So is there a checkpoint wherever there is a public key. Killed in
// between, the next process goes on where this one ended.
func (w *signing) keys() (err error) {
	w.signer, err = readSigner(w.dir)
	public, noPublic := PublicKey(w.dir)
	if noPublic != nil && !errors.Is(noPublic, ErrNoKey) {
		return fmt.Errorf("%w: %w", ErrContradiction, noPublic)
	}
	switch {
	case err == nil && public != nil && w.signer.public.String() != public.String():
		return fmt.Errorf("%w: %s and %s do not belong together", ErrContradiction, KeyName, PublicKeyName)
	case err == nil && public != nil:
		return nil
	case errors.Is(err, fs.ErrNotExist) && (public != nil || w.size > 0):
		return fmt.Errorf("%w: %s is gone, and only with it can be signed what continues %s", ErrContradiction, KeyName, CheckpointsName)
	case errors.Is(err, fs.ErrNotExist):
		if w.signer, err = makeSigner(w.dir); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("%w: %w", ErrContradiction, err)
	}
	// Killed here: a key that nobody used.
	if w.size == 0 {
		if _, err := w.append(emptyTree(), nil, nil); err != nil {
			return err
		}
	}
	// Killed here: a first checkpoint, whose key is not published yet.
	return writeWhole(w.dir, PublicKeyName, w.signer.public.String()+"\n")
}

// before finds what the next checkpoint must not contradict.
func (w *signing) before() (err error) {
	if w.newest, err = newest(w.book, w.size); err != nil {
		return err
	}
	if w.newest == nil {
		return fmt.Errorf("%w: %s holds no checkpoint any more", ErrContradiction, CheckpointsName)
	}
	if err := w.newest.Verify(w.signer.public); err != nil {
		return fmt.Errorf("%w: the last of %s: %w", ErrContradiction, CheckpointsName, err)
	}
	return nil
}

// append signs seals and checkpoint and writes them as one piece, the checkpoint last.
func (w *signing) append(t Tree, seals []Seal, month *MonthSeal) (*Checkpoint, error) {
	var piece strings.Builder
	for _, seal := range seals {
		signed, err := sign(seal.text(), w.signer)
		if err != nil {
			return nil, err
		}
		piece.WriteString(signed + "\n")
	}
	if month != nil {
		piece.WriteString(month.Signed + "\n")
	}
	sealed := piece.String()
	signed, err := sign(checkpointText(w.signer.Name(), t), w.signer)
	if err != nil {
		return nil, err
	}
	piece.WriteString(signed + "\n")
	if err := jsonl.Append(w.book, w.size, []byte(piece.String())); err != nil {
		return nil, err
	}
	w.size += int64(piece.Len())
	// Killed here: a checkpoint that nobody was told of.
	if err := jsonl.Datasync(w.book); err != nil {
		return nil, err
	}
	return &Checkpoint{Origin: w.signer.Name(), Tree: t, Note: signed, Seals: sealed}, nil
}
