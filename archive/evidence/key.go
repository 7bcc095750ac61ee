package evidence

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"toolrun/archive/internal/jsonl"
)

// originPrefix begins the origin of every checkpoint; behind it are 16 random hex digits, the id of the data directory.
// The origin is the name of the key too, as C2SP tlog-checkpoint wants it.
const originPrefix = "toolrun/"

// Key is a public key as a signed note names it, for example "toolrun/5d1c…+9a2b3c4d+AbCd…".
type Key struct {
	note.Verifier
	text string
}

// String is the encoded key (C2SP signed-note, "vkey").
func (k *Key) String() string { return k.text }

// ID names the key without telling it: "toolrun/5d1c…+9a2b3c4d".
func (k *Key) ID() string { return fmt.Sprintf("%s+%08x", k.Name(), k.KeyHash()) }

// ParseKey reads an encoded public key, alone or as the only line of a file.
func ParseKey(text string) (*Key, error) {
	text = strings.TrimSpace(text)
	v, err := note.NewVerifier(text)
	if err != nil {
		return nil, fmt.Errorf("public key %.80q: %w", text, err)
	}
	return &Key{v, text}, nil
}

// PublicKey reads the public key of a data directory; ErrNoKey where there is none.
func PublicKey(dir string) (*Key, error) {
	path := filepath.Join(dir, PublicKeyName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoKey
	}
	if err != nil {
		return nil, err
	}
	key, err := ParseKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

// signer is the private key with the public one that belongs to it.
type signer struct {
	note.Signer
	public *Key
}

// parseSigner reads an encoded private key: PRIVATE+KEY+name+hash+base64 of the algorithm and the seed. Errors say nothing
// of what is in it.
func parseSigner(text string) (*signer, error) {
	bad := errors.New("not a signing key")
	s, err := note.NewSigner(text)
	parts := strings.SplitN(text, "+", 5)
	if err != nil || len(parts) != 5 {
		return nil, bad
	}
	seed, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil || len(seed) != 1+ed25519.SeedSize {
		return nil, bad
	}
	public := ed25519.NewKeyFromSeed(seed[1:]).Public().(ed25519.PublicKey)
	encoded, err := note.NewEd25519VerifierKey(s.Name(), public)
	if err != nil {
		return nil, bad
	}
	key, err := ParseKey(encoded)
	if err != nil {
		return nil, bad
	}
	return &signer{s, key}, nil
}

// readSigner reads the private key of a data directory; fs.ErrNotExist where there is none.
func readSigner(dir string) (*signer, error) {
	path := filepath.Join(dir, KeyName)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := parseSigner(string(bytes.TrimSpace(text)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// makeSigner makes a private key under a new random name.
func makeSigner(dir string) (*signer, error) {
	var id [8]byte
	rand.Read(id[:])
	private, _, err := note.GenerateKey(rand.Reader, originPrefix+hex.EncodeToString(id[:]))
	if err != nil {
		return nil, err
	}
	if err := writeWhole(dir, KeyName, private+"\n"); err != nil {
		return nil, err
	}
	return parseSigner(private)
}

// writeWhole gives a small file its content so that it is there whole or not at all, in a power failure too.
func writeWhole(dir, name, text string) error {
	path := filepath.Join(dir, name)
	f, err := jsonl.OpenAppend(path+".new", os.O_TRUNC)
	if err != nil {
		return fmt.Errorf("%w: %w", jsonl.ErrUnavailable, err)
	}
	defer f.Close()
	if err := jsonl.Append(f, 0, []byte(text)); err != nil {
		return err
	}
	if err := jsonl.Calls.Fsync(int(f.Fd())); err != nil {
		return fmt.Errorf("%w: sync %q: %w", jsonl.ErrUnavailable, path, err)
	}
	if err := jsonl.Calls.Rename(path+".new", path); err != nil {
		return fmt.Errorf("%w: %w", jsonl.ErrUnavailable, &os.PathError{Op: "rename", Path: path, Err: err})
	}
	return jsonl.SyncDir(dir)
}
