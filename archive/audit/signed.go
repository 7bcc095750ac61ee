package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"toolrun/archive/evidence"
)

// Given is a checkpoint that was kept elsewhere; File says where it was read from.
type Given struct {
	*evidence.Checkpoint
	File string
}

// signed is what was signed of this directory, as far as it is valid.
type signed struct {
	key         *evidence.Key // nil where nothing was ever signed, or the key is gone
	checkpoints []Given       // of this directory in their order, then those that were given
	seals       map[string]*evidence.Seal
	reach       int64 // how many lines the longest of them covers
}

// readSigned reads every note of the file of checkpoints, checks the signatures, and those of checkpoints from elsewhere.
func (v *verifier) readSigned() error {
	v.signed.seals = map[string]*evidence.Seal{}
	key, err := evidence.PublicKey(v.d.Path())
	switch {
	case errors.Is(err, evidence.ErrNoKey):
	case err != nil:
		v.find(Finding{Kind: KeyBad, File: evidence.PublicKeyName, Text: err.Error()})
	case v.Key != nil && key.String() != v.Key.String():
		v.find(Finding{Kind: KeyBad, File: evidence.PublicKeyName, Text: fmt.Sprintf("the public key is %s, not %s that was given", key.ID(), v.Key.ID())})
	}
	if v.signed.key = v.Key; v.Key == nil {
		v.signed.key = key
	}
	notes := v.verifiedNotes()
	if v.signed.key == nil && len(notes) > 0 {
		v.find(Finding{Kind: KeyBad, File: evidence.PublicKeyName, Text: "missing, and there are checkpoints"})
	}
	last := int64(0)
	for _, n := range notes {
		switch {
		case n.Err != nil:
			v.find(Finding{Kind: CheckpointBad, File: evidence.CheckpointsName, Line: n.Line, Text: n.Err.Error()})
		case n.Seal != nil:
			v.signed.seals[n.Seal.RunID] = n.Seal
			v.report.Seals++
		case n.Checkpoint.Tree.N < last:
			v.find(Finding{Kind: CheckpointBad, File: evidence.CheckpointsName, Line: n.Line, Text: fmt.Sprintf("of %d rows, behind one of %d", n.Checkpoint.Tree.N, last)})
			fallthrough
		default:
			last = max(last, n.Checkpoint.Tree.N)
			v.signed.checkpoints = append(v.signed.checkpoints, Given{n.Checkpoint, evidence.CheckpointsName})
			v.report.Checkpoints++
		}
	}
	for _, c := range v.Checkpoints {
		if v.signed.key == nil {
			v.find(Finding{Kind: CheckpointBad, File: c.File, Line: c.Line, Text: "no key is known that could have signed it"})
		} else if err := c.Verify(v.signed.key); err != nil {
			v.find(Finding{Kind: CheckpointBad, File: c.File, Line: c.Line, Text: err.Error()})
		} else {
			v.signed.checkpoints = append(v.signed.checkpoints, c)
		}
	}
	for _, c := range v.signed.checkpoints {
		v.signed.reach = max(v.signed.reach, c.Tree.N)
	}
	return nil
}

// verifiedNotes reads the notes and checks their signatures, which takes longer than reading. Where the key is not known
// it is as if nothing were signed.
func (v *verifier) verifiedNotes() []*evidence.Note {
	var notes []*evidence.Note
	for n := range evidence.Notes(v.d.Path()) {
		notes = append(notes, n)
	}
	if v.signed.key == nil {
		return notes
	}
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(notes); i += workers {
				notes[i].Err = notes[i].Verify(v.signed.key)
			}
		})
	}
	wg.Wait()
	return notes
}

// checkSeals holds the file of every run that has ended against its seal.
func (v *verifier) checkSeals() error {
	if v.signed.key == nil && len(v.signed.seals) == 0 {
		return nil // said once, by checkCover
	}
	for _, id := range sortedKeys(v.runs) {
		r, seal := v.runs[id], v.signed.seals[id]
		if r.marked || r.unread {
			continue
		}
		f := Finding{Kind: RunEdited, File: r.path}
		switch {
		case seal == nil:
			f.Kind, f.Text = RunUnsealed, "the run has ended and no seal of its file is signed"
		case r.size < seal.Bytes:
			f.Text = fmt.Sprintf("cut off: %d bytes of the %d that were sealed", r.size, seal.Bytes)
		case r.size > seal.Bytes:
			f.Text = fmt.Sprintf("%d bytes were added after the run had ended", r.size-seal.Bytes)
		case r.sha256 != seal.SHA256:
			f.Text = "its bytes are not those that were sealed when the run ended"
		default:
			continue
		}
		v.find(f)
	}
	for _, id := range sortedKeys(v.signed.seals) {
		if v.runs[id] != nil || v.rows[id] != nil { // else its rows tell that it is missing
			continue
		}
		if _, err := os.Lstat(v.d.RunPath(id)); errors.Is(err, os.ErrNotExist) {
			v.find(Finding{Kind: RunMissing, File: filepath.Join("runs", id+".jsonl"), Text: "the file of a run that was sealed is missing"})
		}
	}
	return nil
}
