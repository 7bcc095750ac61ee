// Package evidence makes the ledger a log that cannot be changed unseen, and takes single rows out of it as receipts.
//
// It keeps an RFC 6962 Merkle tree whose leaf i is the exact bytes of line i+1 of the ledger, without its newline, and
// signs its head: checkpoints (C2SP tlog-checkpoint, Ed25519). Beside them it signs seals: the SHA-256 of the file of a
// run that has ended. Both are signed notes (C2SP signed-note) in one file, to which is only ever appended.
//
// What it promises: a checkpoint is a statement of the whole ledger up to a line, and no two of one directory contradict
// each other; where the next would, nothing is signed and ErrContradiction says why. A [Receipt] is checked with the
// public key alone, anywhere. The hashes of the tree are derived: what is wrong with them is found against the newest
// checkpoint and they are made again from the ledger.
//
// What it does not: whoever may read the signing key may sign anything. Against those only a checkpoint helps that they
// could not reach (FORMAT.md, "What somebody with your user id can still do").
package evidence

import (
	"errors"

	"golang.org/x/mod/sumdb/tlog"
)

// Names in the data directory.
const (
	HashesName      = "hashes"         // of the tree, derived
	CheckpointsName = "checkpoints"    // signed notes; the flock on it is the right to sign
	KeyName         = "checkpoint.key" // private
	PublicKeyName   = "checkpoint.pub"
)

var (
	// ErrContradiction means that the ledger is not what was signed before. Nothing new is signed.
	ErrContradiction = errors.New("the ledger contradicts what was signed")
	// ErrNoKey means that nothing was ever signed in this directory.
	ErrNoKey = errors.New("no public key: nothing was signed here yet")
	// ErrUnverified means that a note or a receipt does not prove what it says.
	ErrUnverified = errors.New("verification failed")
)

// Hash is a node of the tree.
type Hash = tlog.Hash

// Tree is a head of the tree: how many lines, and the root over them.
type Tree = tlog.Tree

// emptyTree is the head of a ledger without lines.
func emptyTree() Tree {
	root, _ := tlog.TreeHash(0, nil) // RFC 6962 section 2.1: the hash of the empty string; it reads nothing and cannot fail
	return Tree{N: 0, Hash: root}
}
